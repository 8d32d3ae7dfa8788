# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small server with the API of a hub. It answers requests for ranges of a file."""

from __future__ import annotations

import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "0123456789" * 4
SHARD = "model-00001-of-00002.safetensors"


class FakeHub(ThreadingHTTPServer):
    """The repository acme/tiny. As at a real hub, the weights come from another host."""

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), HubHandler)
        self.root = root
        self.token = ""
        self.ranges = True
        self.requests: list[tuple[str, str]] = []
        """Path and Authorization of each request."""
        self.sent = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class HubHandler(BaseHTTPRequestHandler):
    server: FakeHub

    def do_GET(self) -> None:
        path, authorization = self.path.partition("?")[0], self.headers.get("Authorization", "")
        self.server.requests.append((path, authorization))
        files = f"/acme/tiny/resolve/{COMMIT}/"
        if not path.startswith("/cdn/") and self.server.token and authorization != f"Bearer {self.server.token}":
            self.send_error(401)
        elif path == f"/api/models/acme/tiny/revision/{COMMIT}":
            found = [file for file in sorted(self.server.root.rglob("*")) if file.is_file()]
            root = self.server.root
            listed = [{"rfilename": each.relative_to(root).as_posix(), "size": each.stat().st_size} for each in found]
            self._send(200, json.dumps({"siblings": listed}).encode())
        elif path.startswith(files) and path.endswith(".safetensors"):
            self.send_response(302)
            # Another name of the same machine, which a client takes for another host.
            self.send_header("Location", f"http://localhost:{self.server.server_port}/cdn/{path.removeprefix(files)}")
            self.end_headers()
        elif path.startswith((files, "/cdn/")):
            self._file(self.server.root / path.removeprefix(files).removeprefix("/cdn/").replace("%20", " "))
        else:
            self.send_error(404)

    def _file(self, path: Path) -> None:
        content = path.read_bytes()
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if asked and self.server.ranges:
            self._send(206, content[int(asked[1]) : int(asked[2]) + 1])
        else:
            self._send(200, content)

    def _send(self, status: int, content: bytes) -> None:
        self.server.sent += len(content)
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        try:
            self.wfile.write(content)
        except OSError:
            # The client has read enough, and has closed the connection.
            self.close_connection = True

    def log_message(self, *_arguments: object) -> None:
        """Print nothing."""
