# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A request ends at its limits of time and size, whatever the server does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from http.client import HTTPException

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.adapters.contract import Body, json_body
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import http
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe.http import Answer
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe.probe import Target

from ...http_engine import Engine


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine()
    yield engine
    engine.close()


def ask(engine: Engine, method: str, path: str, body: Body | None = None, limit: float = 10) -> Answer:
    target = Target("127.0.0.1", engine.port, ["main"], engine.key)
    return asyncio.run(http.ask(target, method, path, body, limit))


def test_a_request_sends_its_body_and_its_key(engine: Engine) -> None:
    engine.key = "secret-key-1"
    found = ask(engine, "POST", "/v1/completions", json_body(prompt="x"))
    assert found.status == 200 and json.loads(found.body)["model"] == "main"
    assert engine.completions == [{"prompt": "x"}]


def test_an_answer_in_chunks_is_read(engine: Engine) -> None:
    found = ask(engine, "GET", "/metrics")
    assert found.status == 200 and found.body.endswith(b"process_start_time_seconds 1.7e+09\n")


def test_a_server_that_does_not_answer_is_a_timeout(engine: Engine) -> None:
    engine.frozen.set()
    with pytest.raises(TimeoutError):
        ask(engine, "GET", "/metrics", limit=0.05)


def test_an_answer_above_the_limit_is_an_error(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "LARGEST_ANSWER", 1000)
    engine.raw = b"x" * 100_000
    with pytest.raises(HTTPException, match="more than 1000 bytes"):
        ask(engine, "POST", "/v1/completions", json_body(prompt="x"))


def test_a_port_without_a_listener_refuses_the_connection(engine: Engine) -> None:
    engine.close()
    with pytest.raises(ConnectionRefusedError):
        ask(engine, "GET", "/metrics")


def test_a_connection_that_is_closed_is_no_answer() -> None:
    with pytest.raises(ConnectionResetError, match="without an answer"):
        http.parse(b"", "GET")


def test_an_answer_has_a_status_and_a_body() -> None:
    assert http.parse(b"HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno", "GET") == Answer(503, b"no")


@pytest.mark.parametrize(
    "raw", [b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"]
)
def test_an_answer_that_is_not_http_is_an_error(raw: bytes) -> None:
    with pytest.raises(HTTPException):
        http.parse(raw, "GET")
