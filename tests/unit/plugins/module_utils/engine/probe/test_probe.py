# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The probe of a start: which process has the port, which models are listed, and one token."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import probe
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe.probe import Target, Verdict, WrongAnswer

from ...conftest import FakeProc

PID = 100
"""The first process of the engine's container."""


class ApiServer:
    """An API server that answers from a table of paths, and keeps the last request to each path."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, Any]] = {
            "/v1/models": (200, {"data": [{"id": "main"}, {"id": "tiny-a"}]}),
            "/v1/completions": (
                200,
                {"model": "main", "choices": [{"text": "x"}], "usage": {"completion_tokens": 1}},
            ),
        }
        self.requests: dict[str, dict[str, Any]] = {}
        self.keys: set[str | None] = set()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.keys.add(self.headers.get("Authorization"))
                length = int(self.headers.get("Content-Length", 0))
                server.requests[self.path] = json.loads(self.rfile.read(length) or "{}")
                status, body = server.answers[self.path]
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_POST = do_GET

            def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 (the base class names it so)
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server(proc: FakeProc) -> Iterator[ApiServer]:
    """A server that is a process of its container."""
    server = ApiServer()
    proc.process(PID, namespace=2, inode=77)
    proc.listen(server.port, inode=77)
    yield server
    server.close()


def check(server: ApiServer, proc: FakeProc, key: str = "", task: str = "generate") -> Verdict:
    target = Target("127.0.0.1", server.port, ["main", "tiny-a"], key, task=task)
    return probe.check(target, PID, proc.root)


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ({"model": "main", "data": [{"embedding": [0.5, -1.0]}]}, Verdict(True, "answered an embedding request")),
        ({"model": "x", "data": [{"embedding": [0.5]}]}, "/v1/embeddings answers for model 'x' instead of 'main' or"),
        ({"model": "main", "data": [{"embedding": [float("nan")]}]}, "/v1/embeddings answers no embedding of finite"),
    ],
)
def test_an_engine_gets_the_request_of_its_task(
    server: ApiServer, proc: FakeProc, answer: dict[str, Any], verdict: Verdict | str
) -> None:
    server.answers = {**server.answers, "/v1/embeddings": (200, answer), "/v1/completions": (404, {})}
    found = check(server, proc, task="embed")
    assert found == verdict if isinstance(verdict, Verdict) else (not found.ready and verdict in found.message)
    assert server.requests["/v1/embeddings"]["model"] == "main"


def test_a_transcription_is_right_without_the_name_of_the_model() -> None:
    probe.judge({"text": "hm"}, Target("::", 5005, ["main"], task="transcribe"))


def test_an_engine_that_makes_a_token_is_ready(server: ApiServer, proc: FakeProc) -> None:
    assert check(server, proc, "secret-key-1") == Verdict(True, "answered a completion")
    assert server.keys == {"Bearer secret-key-1"}
    assert server.requests["/v1/completions"]["model"] == "main"


def test_without_a_key_no_authorization_is_sent(server: ApiServer, proc: FakeProc) -> None:
    assert check(server, proc).ready
    assert server.keys == {None}


def test_another_process_on_the_port_is_named_and_gets_no_request(server: ApiServer, proc: FakeProc) -> None:
    proc.process(999, namespace=3, inode=77)
    found = check(server, proc)
    assert not found.ready and "taken by another process: pid 999 (python3 -m server): stop it" in found.message
    assert server.requests == {}


def test_a_port_without_a_listener_or_with_an_unknown_listener_is_not_ready(server: ApiServer, proc: FakeProc) -> None:
    proc.lines.clear()
    proc.listen(server.port, inode=99)
    assert "cannot be found in /proc" in check(server, proc).message
    proc.lines.clear()
    (proc.root / "net/tcp").write_text("header\n")
    assert check(server, proc).message == f"the engine does not listen on 127.0.0.1:{server.port} yet"


def test_an_engine_that_goes_away_gives_no_answer(server: ApiServer, proc: FakeProc) -> None:
    server.close()
    found = check(server, proc)
    assert not found.ready and found.message.startswith(f"no answer on 127.0.0.1:{server.port}: ")


@pytest.mark.parametrize(
    ("path", "answer", "words"),
    [
        ("/v1/models", (200, {"data": [{"id": "tiny-a"}]}), "/v1/models lacks main; it lists tiny-a"),
        ("/v1/models", (200, {}), "/v1/models lacks main, tiny-a; it lists nothing"),
        ("/v1/models", (200, {"data": None}), "/v1/models lacks main, tiny-a; it lists nothing"),
        ("/v1/models", (401, b""), "/v1/models answers HTTP 401: empty body"),
        ("/v1/models", (200, b"[]"), "/v1/models answers no JSON object: []"),
        ("/v1/models", (200, b"{"), "/v1/models answers no JSON object: {"),
        ("/v1/completions", (500, b"EngineCore\n has  died"), "/v1/completions answers HTTP 500: EngineCore has died"),
        ("/v1/completions", (200, {"model": "x"}), "answers for model 'x' instead of 'main' or 'tiny-a'"),
        (
            "/v1/completions",
            (200, {"model": "main", "choices": []}),
            "/v1/completions does not answer exactly one token",
        ),
    ],
)
def test_a_wrong_answer_is_not_ready(
    server: ApiServer, proc: FakeProc, path: str, answer: tuple[int, Any], words: str
) -> None:
    server.answers[path] = answer
    found = check(server, proc)
    assert not found.ready and words in found.message


@pytest.mark.parametrize("tokens", [0, 2, None])
def test_an_answer_must_have_exactly_one_token(tokens: int | None) -> None:
    answer = {"model": "main", "choices": [{"text": "x"}], "usage": {"completion_tokens": tokens}}
    with pytest.raises(WrongAnswer, match="does not answer exactly one token"):
        probe.judge(answer, Target("::", 5005, ["main"]))


def test_no_two_prompts_begin_alike() -> None:
    target = Target("::", 5005, ["main"])
    bodies = [json.loads(probe.request_body(target, "main").data) for _time in range(2)]
    assert bodies[0]["prompt"][:12] != bodies[1]["prompt"][:12]
    assert all((body["max_tokens"], body["temperature"]) == (1, 0) for body in bodies)


@pytest.mark.parametrize(
    ("address", "connect", "shown"),
    [
        ("0.0.0.0", "127.0.0.1", "0.0.0.0:5005"),
        ("::", "::1", "[::]:5005"),
        ("192.0.2.7", "192.0.2.7", "192.0.2.7:5005"),
    ],
)
def test_an_engine_on_all_interfaces_is_asked_on_the_loopback(address: str, connect: str, shown: str) -> None:
    target = Target(address, 5005, ["main"])
    assert (target.connect_address, str(target)) == (connect, shown)


def test_each_adapter_must_be_listed_and_answer_for_itself(server: ApiServer, proc: FakeProc) -> None:
    target = Target("127.0.0.1", server.port, ["main", "tiny-a"], lora_names=("legal",))
    assert "/v1/models lacks legal" in probe.check(target, PID, proc.root).message
    server.answers["/v1/models"] = (200, {"data": [{"id": "main"}, {"id": "tiny-a"}, {"id": "legal"}]})
    # This engine answers for its model, whatever name the request has.
    assert "answers for model 'main' instead of 'legal'" in probe.check(target, PID, proc.root).message
    assert server.requests["/v1/completions"]["model"] == "legal"


def test_an_adapter_answers_with_its_own_name() -> None:
    answer = {"model": "legal", "choices": [{"text": "x"}], "usage": {"completion_tokens": 1}}
    target = Target("::", 5005, ["main"], lora_names=("legal",))
    probe.judge(answer, target, lora_name="legal")
    with pytest.raises(WrongAnswer, match="answers for model 'legal' instead of 'main'"):
        probe.judge(answer, target)
