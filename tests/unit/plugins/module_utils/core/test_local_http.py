# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP over a Unix socket, against a real server."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.local_http import LocalConnection


class Handler(BaseHTTPRequestHandler):
    """Answers with the path and the host that were asked for."""

    def do_GET(self) -> None:
        body = f"{self.path} of {self.headers['Host']}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "a socket has no address"

    def log_message(self, *_arguments: object) -> None:
        """Print nothing."""


@pytest.fixture
def served(short_tmp: Path) -> Iterator[Path]:
    """A socket at which a server listens."""
    path = short_tmp / "http.sock"
    with socketserver.ThreadingUnixStreamServer(str(path), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.005})
        thread.start()
        yield path
        server.shutdown()
        thread.join()


def test_a_request_reaches_the_socket(served: Path) -> None:
    connection = LocalConnection(served, 5)
    connection.request("GET", "/_ping")
    answer = connection.getresponse()
    assert (answer.status, answer.read()) == (200, b"/_ping of localhost")
    connection.close()


def test_the_socket_has_the_timeout(served: Path) -> None:
    connection = LocalConnection(served, 2.5)
    connection.connect()
    assert connection.sock.gettimeout() == 2.5
    connection.close()


def test_a_socket_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        LocalConnection(tmp_path / "nothing.sock", 1).request("GET", "/")
