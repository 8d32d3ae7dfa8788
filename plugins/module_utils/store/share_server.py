# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The server from which other nodes fetch revisions of the store during a run. Private to the collection.

Runs in a separate unit, as an unprivileged user. systemd stops the unit after the time that the run has set. A list
maps the paths of requests to files: no path of a request reaches the file system, and nothing can be written.
"""

from __future__ import annotations

import hmac
import http
import json
import os
import re
import socket
import sys
from collections.abc import Mapping
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import Any, BinaryIO
from urllib.parse import unquote

from ..core.systemd import Notifier

TIMEOUT = 30
"""Seconds after which a connection without progress is closed."""

_RANGE = re.compile(r"bytes=(\d{1,18})-")


class Handler(BaseHTTPRequestHandler):
    """Answers GET requests that carry the token."""

    timeout = TIMEOUT

    def __init__(self, token: str, files: Mapping[str, str], *arguments: Any) -> None:
        self._token = token
        self._files = files
        super().__init__(*arguments)

    def do_GET(self) -> None:
        shown = self.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(shown, f"Bearer {self._token}".encode()):
            self.send_error(http.HTTPStatus.FORBIDDEN)
            return
        try:
            with Path(self._files[unquote(self.path)]).open("rb") as file:
                self._send(file)
        except (KeyError, FileNotFoundError):
            self.send_error(http.HTTPStatus.NOT_FOUND)

    def _send(self, file: BinaryIO) -> None:
        size = os.fstat(file.fileno()).st_size
        asked = self.headers.get("Range")
        match = _RANGE.fullmatch(asked or "bytes=0-")
        start = int(match[1]) if match else size
        if asked and start >= size:
            self.send_error(http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)
            return
        self.send_response(http.HTTPStatus.PARTIAL_CONTENT if asked else http.HTTPStatus.OK)
        self.send_header("Content-Length", str(size - start))
        self.send_header("Accept-Ranges", "bytes")
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
        self.end_headers()
        if size > start:
            self._give(file, start, size - start)

    def _give(self, file: BinaryIO, start: int, count: int) -> None:
        # The kernel sends the file, without a copy through this process.
        self.connection.sendfile(file, start, count)

    def log_message(self, *_arguments: Any) -> None:
        """Log nothing: the node that fetches reports the progress."""


class Server(ThreadingHTTPServer):
    """Listens on one address of the node, IPv4 or IPv6."""

    daemon_threads = True

    def __init__(self, address: str, port: int, token: str, files: Mapping[str, str]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        super().__init__((address, port), partial(Handler, token, files))

    def server_bind(self) -> None:
        """Bind without the base class's DNS query, which would delay a node that reaches no DNS server."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def handle_error(self, *_arguments: Any) -> None:
        """Log nothing: a client whose connection broke tries again."""


def main() -> int:
    """Serve until systemd stops the unit. Raises OSError if the node does not have the address."""
    # The token comes by standard input: other users of the node can read the arguments and the environment of a unit.
    with Server(**json.load(sys.stdin)) as server:
        Notifier().send(READY=1)
        server.serve_forever()
    return 0
