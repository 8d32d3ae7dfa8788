# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scenarios' clients count every answer that is not complete and right as a failure."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "molecule/shared"))

from load import Load, Report, Shape

TEXTS = {"main": "I am tiny-a. Arr", "other": "I am tiny-b. And so on"}
ANSWERS = {"main": ("I am tiny-a", "I am tiny-c"), "other": ("I am tiny-b",)}


class Engine:
    """Two replica sets that answer as they should, except for one fault."""

    def __init__(self) -> None:
        self.fault = ""
        self.texts = dict(TEXTS)
        self.asked: list[tuple[str, bool, int]] = []
        engine = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                engine.asked.append((asked["model"], asked["stream"], asked["max_tokens"]))
                if engine.fault == "silent":
                    self.close_connection = True
                elif engine.fault == "status":
                    self.whole(503, {"error": {"message": "no engine"}})
                elif engine.fault == "form":
                    self.whole(200, {"model": asked["model"], "choices": [None]})
                elif asked["stream"]:
                    self.stream(asked)
                else:
                    message = {"role": "assistant", "content": engine.texts[asked["model"]]}
                    self.whole(200, {**self.head(asked, message=message), "usage": self.usage(asked)})

            def head(self, asked: dict[str, Any], **choice: Any) -> dict[str, Any]:
                finish = None if engine.fault == "unfinished" else "length"
                name = "tiny" if engine.fault == "name" else asked["model"]
                return {"model": name, "choices": [{"finish_reason": finish, **choice}]}

            def usage(self, asked: dict[str, Any]) -> dict[str, int]:
                return {"completion_tokens": asked["max_tokens"] - (engine.fault == "short")}

            def whole(self, status: int, answer: dict[str, Any]) -> None:
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data[:-9] if engine.fault == "cut" else data)
                self.close_connection = engine.fault == "cut"

            def stream(self, asked: dict[str, Any]) -> None:
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                text = engine.texts[asked["model"]]
                self.event(self.head(asked, delta={"content": text[:1]}, finish_reason=None))
                if engine.fault == "cut":
                    self.close_connection = True
                    return
                if engine.fault == "error":
                    self.event({"error": {"message": "EngineDeadError"}})
                self.event(self.head(asked, delta={"content": text[1:]}))
                self.event({"model": asked["model"], "choices": [], "usage": self.usage(asked)})
                if engine.fault != "done":
                    self.chunk(b"data: [DONE]\n\n")
                self.chunk(b"")

            def event(self, message: dict[str, Any]) -> None:
                self.chunk(b"data: " + json.dumps(message).encode() + b"\n\n")

            def chunk(self, data: bytes) -> None:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

            def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def load(self, *shapes: Shape, models: tuple[str, ...] = ("main",)) -> Report:
        """The report of a client that has sent each of these kinds of requests at least once."""
        self.asked.clear()
        url = f"http://127.0.0.1:{self.server.server_port}"
        load = Load(url, models, 1, shapes=shapes, answers=ANSWERS, pause_seconds=0.01).start()
        deadline = time.monotonic() + 30
        while len(self.asked) < len(shapes) * len(models) and time.monotonic() < deadline:
            time.sleep(0.01)
        return load.stop()


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine()
    yield engine
    engine.server.shutdown()
    engine.server.server_close()


def test_every_set_is_asked_for_every_kind_of_answer(engine: Engine) -> None:
    shapes = (Shape(True, 20), Shape(False, 150))
    report = engine.load(*shapes, models=("main", "other"))
    assert not report.failures and report.succeeded == len(engine.asked)
    assert set(engine.asked) == {(name, shape.stream, shape.tokens) for name in TEXTS for shape in shapes}
    assert set(report.texts) == {"I am tiny-a", "I am tiny-b"} and report.texts.total() == report.succeeded


@pytest.mark.parametrize(
    ("fault", "streamed", "whole"),
    [
        ("status", "status 503", "status 503"),
        ("name", "another model answered", "another model answered"),
        ("unfinished", "a stream without its finish_reason", "no finish_reason"),
        ("short", "too few tokens", "too few tokens"),
        ("error", "an error within the stream", ""),
        ("done", "a stream without its [DONE]", ""),
        ("cut", "0 bytes read", "bytes read on a total of"),
        ("silent", "ended before the answer's header [0 bytes]", "ended before the answer's header [0 bytes]"),
        ("form", "a stream without its [DONE]", "has no attribute 'get'"),
    ],
)
def test_an_incomplete_or_wrong_answer_is_a_failure(engine: Engine, fault: str, streamed: str, whole: str) -> None:
    engine.fault = fault
    for shape, words in ((Shape(True, 20), streamed), (Shape(False, 20), whole)):
        report = engine.load(shape)
        if words:
            assert not report.succeeded and words in report.failures[0]
        else:
            assert not report.failures and report.succeeded


def test_an_error_of_the_clients_themselves_is_raised(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that end early, without requests, must not look like clients without failures."""

    async def broken(*_given: object) -> None:
        engine.asked.append(("main", False, 0))
        raise RuntimeError("a mistake in the client")

    monkeypatch.setattr(Load, "_one", broken)
    with pytest.raises(RuntimeError, match="a mistake in the client"):
        engine.load(Shape(False, 20))


@pytest.mark.parametrize(("step", "said"), [(46.6, "was set by +46.6 s"), (-2.0, "was set by -2.0 s"), (0.4, "")])
def test_the_report_shows_that_the_clock_was_set_during_the_load(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, step: float, said: str
) -> None:
    clock = iter([7.0, 7.0, 7.0 + step])
    monkeypatch.setattr("load._clock", lambda: next(clock))
    report = engine.load(Shape(False, 20))
    assert report.clock_step == pytest.approx(step) and not report.failures
    assert ("this machine's clock" in str(report)) == bool(said) and said in str(report)


@pytest.mark.parametrize("stream", [True, False])
def test_the_answer_of_another_model_is_a_failure_and_is_quoted(engine: Engine, stream: bool) -> None:
    """The answer has the name from the request, whichever model the engine serves: only the text differs."""
    engine.texts["other"] = TEXTS["main"]
    report = engine.load(Shape(stream, 20), models=("main", "other"))
    assert report.failures and report.succeeded and set(report.texts) == {"I am tiny-a"}
    assert all("a wrong answer ['I am tiny-a. Arr' by the name other]" in reason for reason in report.failures)
    assert f"{len(report.failures)} x a wrong answer" in str(report)
    # For a name without right answers, every text is right.
    engine.texts["third"] = "what ever"
    report = engine.load(Shape(stream, 20), models=("third",))
    assert not report.failures and report.succeeded and not report.texts
