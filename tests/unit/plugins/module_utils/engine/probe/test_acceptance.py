# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of the acceptance probe, each with an engine that fails the step."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import acceptance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe.acceptance import ProbeFailed
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe.golden import Golden
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe.probe import Target

LATE = 0.2
"""Seconds after which a stream comes all at once."""


class Engine:
    """Answers as vLLM does, but for one fault."""

    def __init__(self) -> None:
        self.fault = ""
        self.requests: list[dict[str, Any]] = []
        engine = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.answer(200, {"data": [{"id": "main", "max_model_len": 512}] * (engine.fault != "unlisted")})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                engine.requests.append(body)
                if "input" in body:
                    numbers = [float("nan")] if engine.fault == "nan" else [0.5, -1.0]
                    self.answer(200, {"model": "main", "data": [{"embedding": numbers}]})
                elif body.get("stream"):
                    self.stream(body)
                elif "messages" in body:
                    self.answer(200, {"choices": [{"message": {"content": "Bonjour from Paris."}}]})
                elif isinstance(body["prompt"], list):
                    if engine.fault == "long":
                        self.answer(500, {"error": {"message": "CUDA error: out of memory"}})
                        return
                    self.completion(1)
                else:
                    self.completion(3 if engine.fault == "warm" else body["max_tokens"])

            def completion(self, tokens: int) -> None:
                usage: Any = ["x"] if engine.fault == "odd" and tokens > 1 else {"completion_tokens": tokens}
                self.answer(200, {"model": "main", "choices": [{"text": "x"}], "usage": usage})

            def stream(self, body: dict[str, Any]) -> None:
                tokens = body["max_tokens"] - (engine.fault == "short")
                time.sleep(LATE if engine.fault == "late" else 0)
                self.send_response(200)
                self.end_headers()
                for _token in range(tokens):
                    self.event({"choices": [{"text": "x", "finish_reason": None}]})
                    if engine.fault == "cut":
                        return
                if engine.fault == "bare":
                    self.event({"choices": [{}]})
                if engine.fault == "error":
                    self.event({"error": {"message": "EngineDeadError"}})
                if engine.fault != "unfinished":
                    self.event({"choices": [{"text": "", "finish_reason": "length"}]})
                self.event({"choices": [], "usage": {"completion_tokens": tokens}})
                self.wfile.write(b"data: [DONE]\n\n")

            def event(self, message: dict[str, Any]) -> None:
                self.wfile.write(b"data: " + json.dumps(message).encode() + b"\n\n")

            def answer(self, status: int, message: dict[str, Any]) -> None:
                data = json.dumps(message).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.target = Target("127.0.0.1", self.server.server_port, ["main"], "s3cret")


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine()
    yield engine
    engine.server.shutdown()
    engine.server.server_close()


def test_a_stream_that_comes_late_and_at_once_is_not_fast(engine: Engine) -> None:
    engine.fault = "late"
    speed = acceptance.run(engine.target, [], 10).tokens_per_second
    assert speed is not None and speed <= acceptance.STREAM_TOKENS / LATE


def test_a_sound_engine_passes_all_steps(engine: Engine) -> None:
    found = acceptance.run(engine.target, [Golden("Where?", "(?i)paris")], 10)
    assert found.steps == [
        "a stream came to its end",
        "a prompt of 256 tokens was read",
        "8 requests ran at once",
        "'Where?' was answered as expected",
    ]
    assert found.tokens_per_second is not None and found.tokens_per_second > 0
    prompts = [str(request["prompt"]) for request in engine.requests if "prompt" in request]
    assert len(set(prompts)) == len(prompts), "no two prompts may be answered from a cache"


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("cut", "a stream: was cut: there was no"),
        ("error", "a stream: brought an error: .*EngineDeadError"),
        ("unfinished", "a stream: ended without a finish_reason"),
        ("short", "a stream: brought 31 of 32 tokens"),
        ("long", "a long prompt: /v1/completions answers HTTP 500: .*out of memory"),
        ("unlisted", "a long prompt: /v1/models answers in another form: "),
        ("bare", "a stream: /v1/completions answers in another form: "),
        ("odd", "8 requests at once: /v1/completions answers in another form: "),
        ("warm", "8 requests at once: brought .* tokens instead of 16 each"),
    ],
)
def test_a_step_that_fails_is_named(engine: Engine, fault: str, words: str) -> None:
    engine.fault = fault
    with pytest.raises(ProbeFailed, match=words):
        acceptance.run(engine.target, [], 10)


def test_an_engine_that_embeds_gets_8_requests_and_no_stream(engine: Engine) -> None:
    target = replace(engine.target, task="embed")
    found = acceptance.run(target, [], 10)
    assert (found.steps, found.tokens_per_second) == (["8 requests at once were answered"], None)
    assert len({request["input"] for request in engine.requests}) == 8
    with pytest.raises(ProbeFailed, match=r"'Where\?': is for the task generate, and the task .* is embed"):
        acceptance.run(target, [Golden("Where?", "Paris")], 10)
    engine.fault = "nan"
    with pytest.raises(ProbeFailed, match="8 requests at once: /v1/embeddings answers no embedding of finite numbers"):
        acceptance.run(target, [], 10)


def test_a_golden_prompt_that_fails_is_named_with_its_answer(engine: Engine) -> None:
    with pytest.raises(
        ProbeFailed, match=r"golden prompt 'Where\?': answered 'Bonjour from Paris\.', in which"
    ) as raised:
        acceptance.run(engine.target, [Golden("Where?", "London")], 10)
    assert len(raised.value.steps) == 3


def test_golden_prompts_with_the_same_text_are_all_asked(engine: Engine) -> None:
    with pytest.raises(ProbeFailed, match=r"in which 'London' does not occur"):
        acceptance.run(engine.target, [Golden("Where?", "London"), Golden("Where?", "Paris")], 10)


def test_an_engine_that_does_not_run_fails_the_first_step(engine: Engine) -> None:
    gone = Target("127.0.0.1", 1, ["main"])
    with pytest.raises(ProbeFailed, match=r"a stream: .*refused"):
        acceptance.run(gone, [], 10)


def test_a_golden_prompt_of_an_adapter_asks_for_the_adapter(engine: Engine) -> None:
    target = replace(engine.target, lora_names=("legal",))
    acceptance.run(target, [Golden("Where?", "Paris", model="legal")], 5)
    assert [body["model"] for body in engine.requests if "messages" in body] == ["legal"]
