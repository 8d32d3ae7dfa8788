# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests for a token from replica sets, at a fake gateway on a socket."""

from __future__ import annotations

import socketserver
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.gateway import answers as module

ANSWERS = {
    b'"main"': (200, b"{}"),
    b'"vectors"': (404, b'{"detail": "Not Found"}'),
    b'"gone"': (404, b'{"error": {"code": "model_not_found"}}'),
    b'"page"': (404, b"<html>"),
    b"lone": (503, b'{"error": {"code": "no_engine"}}'),
}


class Gateway(BaseHTTPRequestHandler):
    """Serves the models `main`, which makes text, and `vectors`, which makes no text. No other model has an engine."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status, text = next((ANSWERS[name] for name in ANSWERS if name in body), ANSWERS[b"lone"])
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_words: object) -> None:
        pass

    def address_string(self) -> str:
        return "local"


@pytest.fixture
def gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(module, "LOCAL_SOCKET", str(tmp_path / "s"))
    with socketserver.UnixStreamServer(str(tmp_path / "s"), Gateway) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield
        server.shutdown()
        thread.join()


def test_a_token_is_an_answer(gateway: None) -> None:
    assert module.ask("main", 5) == ""


def test_a_refusal_of_an_engine_without_completions_is_an_answer(gateway: None) -> None:
    assert module.ask("vectors", 5) == module.NO_TEXT
    # An error of the gateway itself or of another program is not the answer of an engine.
    assert module.ask("gone", 5) == '404: {"error": {"code": "model_not_found"}}'
    assert module.ask("page", 5) == "404: <html>"


def test_a_refusal_is_quoted(gateway: None) -> None:
    assert module.ask("lone", 5) == '503: {"error": {"code": "no_engine"}}'


def test_a_gateway_without_a_socket_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOCAL_SOCKET", str(tmp_path / "none"))
    assert "No such file" in module.ask("main", 1)


def test_a_name_that_hangs_delays_no_other_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """`late` answers the second request. The request to `gone` takes all of the time."""
    asked: list[str] = []

    def ask(name: str, seconds: float) -> str:
        asked.append(name)
        if name == "gone":
            time.sleep(seconds)
        if name == "vectors":
            return module.NO_TEXT
        return "" if asked.count(name) == 2 else "503"

    monkeypatch.setattr(module, "ask", ask)
    monkeypatch.setattr(module, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(module, "server_states", lambda: {"set_out": {"one": "DRAIN"}})
    found = module.ask_all(["gone", "late", "out", "vectors"], time.monotonic() + 1)
    assert found == module.Answers(
        answered=["late", "vectors"], textless=["vectors"], drained=["out"], unanswered={"gone": "503"}
    )
    assert module.ask_all([], 0).unanswered == {}


def test_a_gateway_without_a_control_socket_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONTROL_SOCKET", "/nowhere/admin.sock")
    assert "/nowhere/admin.sock: " in module.ask_all(["main"], 0).unanswered["main"]


@pytest.mark.parametrize(
    ("states", "wanted"),
    [
        ({"one": "DRAIN (agent)", "two": "MAINT"}, True),
        ({"one": "DRAIN", "two": "DOWN"}, False),
        ({"one": "UP"}, False),
        ({}, False),
    ],
)
def test_a_set_is_drained_if_all_of_its_engines_are_drained_or_in_maintenance(
    states: dict[str, str], wanted: bool
) -> None:
    assert module.is_drained("main", states) is wanted


def test_the_report_names_each_set_with_its_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = module.Answers([], [], [], {"main": "503: no_engine", "lone": "503"})
    monkeypatch.setattr(module, "server_states", lambda: {"set_main": {"one": "DOWN", "two": "MAINT"}})
    assert module.report(silent).splitlines()[1:] == [
        "- main: 503: no_engine State of its engines: one DOWN, two MAINT",
        "- lone: 503 State of its engines: none",
    ]
    monkeypatch.undo()
    monkeypatch.setattr(module, "CONTROL_SOCKET", "/nowhere/admin.sock")
    assert module.report(silent).endswith("- lone: 503 State of its engines: none")
    assert module.report(module.Answers(["main"], [], [], {})) == ""
