# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An image registry on the loopback address, with answers that a test sets."""

from __future__ import annotations

import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Answer = tuple[int, dict[str, str], bytes]


class ImageServer:
    """Answers GET by path, and keeps the requests. A path without an answer gets status 404."""

    def __init__(self, certificate: Path | None = None) -> None:
        """With a file that has a certificate and its key, the server uses TLS."""
        self.answers: dict[str, Answer] = {}
        self.authorization = ""
        """The header that all paths below /v2 need, if not empty."""
        self.challenge = ""
        self.asked: list[tuple[str, str]] = []
        """Path and header Authorization of each request."""
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.name = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def put(self, path: str, content: bytes, status: int = 200, **headers: str) -> None:
        """Set an answer."""
        self.answers[path] = (status, headers, content)

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def _handler(server: ImageServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            given = self.headers.get("Authorization", "")
            server.asked.append((self.path, given))
            status, headers, content = server.answers.get(self.path, (404, {}, b"{}"))
            if self.path.startswith("/v2/") and server.authorization not in ("", given):
                status, headers, content = 401, {"WWW-Authenticate": server.challenge}, b"{}"
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_words: Any) -> None:
            pass

    return Handler
