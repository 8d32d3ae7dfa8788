# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Warm-up prompts: sent in order, by the model's task, and part of the probe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import warm_up
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe.probe import Target, Verdict

from .test_probe import ApiServer


@pytest.fixture
def server() -> Iterator[ApiServer]:
    server = ApiServer()
    server.answers["/v1/chat/completions"] = (200, {"model": "main", "choices": [{"message": {"content": "x"}}]})
    server.answers["/v1/embeddings"] = (200, {"model": "main", "data": [{"embedding": [0.5]}]})
    yield server
    server.close()


def run(server: ApiServer, *prompts: Mapping[str, Any], task: str = "generate") -> tuple[Verdict, list[str]]:
    said: list[str] = []
    target = Target("127.0.0.1", server.port, ["main", "tiny-a"], "the-key", task=task)
    verdict, seconds = warm_up.run(target, prompts, said.append)
    assert 0 <= seconds < 60
    return verdict, said


def test_one_prompt_is_counted_in_the_singular(server: ApiServer) -> None:
    verdict, _said = run(server, {"prompt": "Once upon"})
    assert verdict == Verdict(True, "warmed up by 1 prompt")


def test_texts_and_chats_are_sent_in_order(server: ApiServer) -> None:
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    verdict, said = run(server, {"prompt": "Once upon"}, {"messages": chat, "max-tokens": 5})
    assert verdict == Verdict(True, "warmed up by 2 prompts")
    assert said == ["warm-up prompt 1 of 2", "warm-up prompt 2 of 2"]
    assert server.requests["/v1/completions"] == {
        "model": "main",
        "prompt": "Once upon",
        "max_tokens": 1,
        "temperature": 0,
    }
    sent = server.requests["/v1/chat/completions"]
    assert (sent["messages"], sent["max_tokens"]) == (chat, 5)
    assert server.keys == {"Bearer the-key"}


def test_another_task_gets_its_own_request(server: ApiServer) -> None:
    verdict, _said = run(server, {"prompt": "a text"}, task="embed")
    assert verdict.ready and server.requests["/v1/embeddings"]["input"] == "a text"
    verdict, _said = run(server, {"messages": [{"role": "user", "content": "x"}]}, task="embed")
    assert not verdict.ready and verdict.final and "this model's task is embed: write prompt" in verdict.message
    server.answers["/v1/embeddings"] = (200, {"model": "main", "data": [{"embedding": []}]})
    verdict, _said = run(server, {"prompt": "a text"}, task="embed")
    assert not verdict.ready and not verdict.final


@pytest.mark.parametrize(("status", "final"), [(400, True), (404, True), (429, False), (500, False), (503, False)])
def test_a_prompt_that_fails_is_named_and_ends_the_warm_up(server: ApiServer, status: int, final: bool) -> None:
    server.answers["/v1/chat/completions"] = (status, {"error": "too long"})
    prompts: list[Mapping[str, Any]] = [
        {"prompt": "a"},
        {"messages": [{"role": "user", "content": "b"}]},
        {"prompt": "c"},
    ]
    verdict, said = run(server, *prompts)
    assert (verdict.ready, verdict.final) == (False, final)
    assert verdict.message.startswith(f"warm-up prompt 2 of 3: /v1/chat/completions answers HTTP {status}")
    assert len(said) == 2


def test_an_engine_that_does_not_run_is_not_ready(server: ApiServer) -> None:
    server.close()
    verdict, _said = run(server, {"prompt": "a"})
    assert not verdict.ready and not verdict.final and "no answer on 127.0.0.1" in verdict.message


def test_an_answer_without_a_choice_is_reported(server: ApiServer) -> None:
    server.answers["/v1/completions"] = (200, {"choices": []})
    assert "answers without a choice" in run(server, {"prompt": "a"})[0].message
