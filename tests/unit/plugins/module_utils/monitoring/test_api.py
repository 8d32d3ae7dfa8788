# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to Prometheus on its own machine."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.monitoring import api
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.api import NoAnswer, Server
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.settings import INTERNAL_USER


class Prometheus(BaseHTTPRequestHandler):
    """Answers by path, and records the header Authorization."""

    answers: ClassVar[dict[str, tuple[int, str]]] = {
        "/-/ready": (200, "ready"),
        "/api/v1/rules": (200, '{"status": "success", "data": {"groups": []}}'),
        "/api/v1/none": (200, "<html>"),
        "/api/v1/list": (200, "[]"),
        "/forbidden": (403, " no\n"),
    }
    authorization: str | None = None

    def do_GET(self) -> None:
        type(self).authorization = self.headers["Authorization"]
        status, text = self.answers[self.path]
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_words: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Prometheus) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_request_names_the_internal_user_only_with_a_password(url: str) -> None:
    assert Server(url).text("/-/ready") == "ready" and Prometheus.authorization is None
    assert Server(url, "word").text("/-/ready") == "ready"
    assert Prometheus.authorization == "Basic " + base64.b64encode(f"{INTERNAL_USER}:word".encode()).decode()


def test_the_method_data_returns_the_data_of_an_answer(url: str) -> None:
    assert Server(url).data("/api/v1/rules") == {"groups": []}


@pytest.mark.parametrize("path", ["/api/v1/none", "/api/v1/list", "/-/ready"])
def test_an_answer_of_another_program_is_an_error(url: str, path: str) -> None:
    with pytest.raises(NoAnswer, match=f"{path}: this is no answer of Prometheus' API"):
        Server(url).data(path)


def test_the_error_of_a_refused_request_has_the_answer_and_no_password(url: str) -> None:
    with pytest.raises(NoAnswer, match=r"/forbidden: 403: no$") as caught:
        Server(url, "word").text("/forbidden")
    assert "word" not in str(caught.value)


def test_a_server_that_does_not_answer_is_an_error() -> None:
    with pytest.raises(NoAnswer, match=r"127\.0\.0\.1:1/-/ready"):
        Server("http://127.0.0.1:1").text("/-/ready")


def test_a_request_to_https_uses_tls(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "SECONDS", 0.5)
    with pytest.raises(NoAnswer, match=r"(?i)ssl"):
        Server(url.replace("http:", "https:")).text("/-/ready")
