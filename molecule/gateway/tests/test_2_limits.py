# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rights of keys, limits of keys, and full engines."""

from __future__ import annotations

import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from gateway import CHAT, KEY, Answer, Gateway, body
from load import tls_of


def together(gateway: Gateway, count: int, **given: object) -> list[Answer]:
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda _number: gateway.ask(**given), range(count)))  # type: ignore[arg-type]


@pytest.mark.parametrize("key", ["", "wrong", "EVERYTHING-key-3f81c2"])
def test_without_a_known_key_no_request_passes(gateway: Gateway, key: str) -> None:
    answer = gateway.ask(key=key)
    assert (answer.status, answer.error["code"]) == (401, "invalid_api_key")
    assert answer.headers["www-authenticate"] == "Bearer"


def test_a_key_reaches_only_its_engines(gateway: Gateway) -> None:
    """A right belongs to engines, by each of their names."""
    found = {
        model: gateway.ask(data=body(model), key="narrow-key-90ab4417").status
        for model in ("main", "tiny-a", "lone", "tiny-b")
    }
    assert found == {"main": 200, "tiny-a": 200, "lone": 403, "tiny-b": 403}
    assert gateway.ask(data=body("lone"), key="narrow-key-90ab4417").error["code"] == "model_not_allowed"


def test_two_models_in_a_body_do_not_extend_the_rights_of_a_key(gateway: Gateway) -> None:
    """HAProxy reads the first key `model`, an engine the last one: the engine must have both names."""
    data = b'{"model": "main", "max_tokens": 1, "model": "lone"}'
    assert gateway.ask(data=data, key="narrow-key-90ab4417").status == 404


def test_a_key_has_a_limit_of_requests_per_minute(gateway: Gateway) -> None:
    gateway.command("clear table limits key slow")
    answers = [gateway.ask(key="slow-key-77120cd9e") for _ in range(9)]
    assert [answer.status for answer in answers] == [200] * 5 + [429] * 4
    assert answers[-1].error["code"] == "rate_limit_exceeded"
    assert int(answers[-1].headers["retry-after"]) > 0
    assert gateway.ask().status == 200


def test_a_key_has_a_limit_of_requests_at_a_time(gateway: Gateway) -> None:
    gateway.engine(port=5006, token_seconds=0.5)
    answers = together(gateway, 4, data=body("lone", 4), key="single-key-5d0e61a2")
    refused = [answer for answer in answers if answer.status == 429]
    assert sorted(answer.status for answer in answers) == [200, 200, 429, 429]
    assert refused[0].error["code"] == "concurrency_limit_exceeded" and refused[0].headers["retry-after"] == "1"
    assert gateway.ask(data=body("lone", 1), key="single-key-5d0e61a2").status == 200


def test_full_engines_queue_and_then_refuse(gateway: Gateway) -> None:
    """4 requests at the engine, 4 in the queue: others get 503 at once. Queued requests get 503 after 5 s."""
    gateway.engine(port=5006, token_seconds=1.5)
    began = time.monotonic()
    answers = together(gateway, 12, data=body("lone", 2))
    busy = [answer for answer in answers if answer.status == 503]
    assert len([answer for answer in answers if answer.status == 200]) == 8
    assert {answer.error["code"] for answer in busy} == {"engines_busy"} and busy[0].headers["retry-after"]
    assert time.monotonic() - began < 30
    gateway.engine(port=5006, token_seconds=4)
    waited = [answer for answer in together(gateway, 8, data=body("lone", 2)) if answer.status == 503]
    assert len(waited) == 4 and {answer.error["code"] for answer in waited} == {"no_engine"}
    assert waited[0].headers["retry-after"]


def test_a_client_without_a_key_fills_no_buffer(gateway: Gateway) -> None:
    """The gateway answers 401 after the header alone, and reads no body."""
    context = tls_of(gateway.url)
    assert context
    with context.wrap_socket(socket.create_connection((gateway.address, 8000), 20)) as client:
        client.sendall(f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: 8000000\r\n\r\n".encode())
        assert client.recv(100).startswith(b"HTTP/1.1 401")


def test_keys_of_clients_are_on_the_host_as_checksums_alone(gateway: Gateway) -> None:
    assert (
        gateway.node.run(
            f"grep --recursive --files-with-matches '{KEY}' /etc /var/lib/haproxy /var/lib/inference", check=False
        )
        == ""
    )
    assert gateway.node.run("stat --format %a /etc/haproxy/keys.map /etc/haproxy/engines.map").split() == ["600", "600"]
