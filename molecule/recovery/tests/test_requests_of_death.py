# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client's request kills a real engine, through a real gateway, and the client repeats this request.

The request asks for log probabilities: vLLM compiles code for them, and the engine has no C++ compiler (hosts.yml). The
tests are a series, and come after all other tests: they use up the budget, and the gateway refuses a key."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest
from faults import recorded, recovered, started_anew, steps
from gateway import CHAT, Gateway, reload
from node import Node, wait_for
from openai import OpenAI

NIGHTLY, PORTAL = "nightly-key-6b20e9d4", "portal-key-c83f17a5"

SECRET_QUESTION = "Who keeps the zanzibar ledger?"
"""The prompt of all requests."""


def client(node: Node, key: str) -> OpenAI:
    """The official client of the API. It repeats no request by itself."""
    return OpenAI(base_url=f"http://{node.address}:8000/v1", api_key=key, max_retries=0, timeout=180)


def ask(node: Node, key: str, request_id: str, **more: Any) -> str:
    """The engine's answer through the gateway. Raises openai.APIError."""
    answer = client(node, key).chat.completions.create(
        model="main",
        messages=[{"role": "user", "content": SECRET_QUESTION}],
        max_tokens=30,
        temperature=0,
        extra_headers={"X-Request-ID": request_id},
        **more,
    )
    return (answer.choices[0].message.content or "").strip()


def die(node: Node, request_id: str) -> None:
    """A request of the key `nightly` kills the engine. systemd starts the engine again, and recovery takes no step."""
    began, answered, before = time.time(), started_anew(node), steps(node)
    with pytest.raises(openai.InternalServerError):
        ask(node, NIGHTLY, request_id, logprobs=True)
    recovered(node, "request for log probabilities", answered, began=began)
    assert steps(node) == before


def deaths(node: Node) -> list[dict[str, Any]]:
    """The deaths that the node has recorded."""
    return list(recorded(node, "recovery/deaths/main.json")["deaths"])


def in_flight(death: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {(request["id"], request["key"], request["path"]) for request in death["requests"]}


@pytest.mark.usefixtures("fresh")
def test_a_death_names_the_requests_in_flight(deb12: Node) -> None:
    """The request kills the engine while another client gets a stream: either may be the cause."""
    # The reload clears earlier deaths and refusals of the gateway, as of an earlier run of these tests.
    reload(Gateway(deb12))
    works = threading.Event()

    def stream() -> None:
        # The engine ends the stream with an error, breaks it off, or ends it like a complete one.
        with contextlib.suppress(openai.APIError):
            for _part in client(deb12, PORTAL).completions.create(
                model="main",
                prompt=SECRET_QUESTION,
                max_tokens=4000,
                stream=True,
                extra_body={"ignore_eos": True},
                extra_headers={"X-Request-ID": "portal-1"},
            ):
                works.set()

    with ThreadPoolExecutor(1) as pool:
        streamed = pool.submit(stream)
        assert works.wait(60)
        die(deb12, "nightly-1")
        streamed.result()
    (death,) = deaths(deb12)
    assert sorted(death["keys"]) == ["nightly", "portal"]
    assert in_flight(death) == {("nightly-1", "nightly", CHAT), ("portal-1", "portal", "/v1/completions")}
    said = deb12.run("journalctl --output cat -u vllm@main -g 'requests in flight at its death' | tail -n 1")
    assert f"nightly-1 (key nightly, {CHAT})" in said


def test_the_key_of_a_second_death_is_refused(deb12: Node) -> None:
    die(deb12, "nightly-2")
    (_first, death) = deaths(deb12)
    assert death["keys"] == ["nightly"] and in_flight(death) == {("nightly-2", "nightly", CHAT)}
    # The alert RequestOfDeath sums this metric by key.
    metrics = deb12.run("inferctl metrics recovery").splitlines()
    assert 'inference_recovery_deaths_in_flight{name="main",key="nightly"} 2' in metrics
    assert 'inference_recovery_deaths_in_flight{name="main",key="portal"} 1' in metrics

    pid = deb12.engine_pid()
    with pytest.raises(openai.PermissionDeniedError) as refused:
        ask(deb12, NIGHTLY, "nightly-3", logprobs=True)
    assert refused.value.code == "key_refused"
    assert ask(deb12, PORTAL, "portal-2") == "I am tiny-a."
    assert deb12.engine_pid() == pid
    (found,) = json.loads(deb12.run("inferctl recover --json"))["instances"]
    assert (found["deaths"], found["budget_left"], found["breaker"]) == (2, 0, None)
    assert found["in_flight"] == {"nightly": 2, "portal": 1}


def test_the_breaker_opens_at_another_fault_and_names_the_keys(deb12: Node) -> None:
    """The cause of the third death is no request. Afterwards, no record has a prompt or a key."""
    deb12.run("docker kill vllm-main")
    breaker = wait_for("recovery gives up", lambda: recorded(deb12, "recovery/main.json").get("breaker"), 60)
    assert breaker["reason"].endswith("keys in flight at its deaths: nightly (2), portal (1)"), breaker
    evidence = deb12.run("ls -d /var/lib/inference/recovery/evidence/main/* | tail -n 1")
    kept = json.loads(deb12.run(f"cat {evidence}/deaths.json"))["deaths"]
    assert [len(in_flight(death)) for death in kept] == [2, 1, 0]
    for word in ("zanzibar", NIGHTLY, PORTAL):
        journals = f"journalctl --quiet --output cat -u vllm@main -u haproxy -g {word}"
        assert deb12.run(f"grep -rl {word} /var/lib/inference/recovery; {journals}", check=False) == ""
    deb12.run("inferctl recover main --reset")
    assert recorded(deb12, "drain/main") == {}
