#!/usr/bin/env python3
# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A web server with resume, and a small hub, from which a node fetches the models of a test. Runs on the node.

remote_models.py PORT DIRECTORY LOG [ADDRESS]: the server offers every file below DIRECTORY at the file's path, and
DIRECTORY/hub as the repository acme/tiny at COMMIT, which requires TOKEN. If the file DIRECTORY/slow exists, it holds
a number of bytes: the server breaks off each answer larger than SMALL after that many bytes and one second. LOG gets a
line for each request: method, path, range, status.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "hf_test-token-5c1d"
REPOSITORY = "acme/tiny"
SMALL = 100_000


class Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD."""

    protocol_version = "HTTP/1.1"
    root: Path
    log: Path

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        path = self.path.partition("?")[0]
        api, files = f"/api/models/{REPOSITORY}/", f"/{REPOSITORY}/resolve/{COMMIT}/"
        if path.startswith((api, files)) and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._send(401, b'{"error": "who are you?"}', body)
        elif path == f"{api}revision/{COMMIT}":
            siblings = [{"rfilename": name, "size": size} for name, size in self._repository().items()]
            about = {"id": REPOSITORY, "modelId": REPOSITORY, "sha": COMMIT, "private": False, "siblings": siblings}
            self._send(200, json.dumps({**about, "tags": [], "downloads": 0, "likes": 0}).encode(), body)
        elif path == f"{api}tree/{COMMIT}":
            tree = [
                {"type": "file", "path": name, "size": size, "oid": hashlib.sha1(name.encode()).hexdigest()}
                for name, size in self._repository().items()
            ]
            self._send(200, json.dumps(tree).encode(), body)
        elif path.startswith(files):
            self._file(self.root / "hub" / path.removeprefix(files), body, {"X-Repo-Commit": COMMIT})
        else:
            self._file(self.root / path.lstrip("/"), body, {})

    def _repository(self) -> dict[str, int]:
        root = self.root / "hub"
        files = [file for file in sorted(root.rglob("*")) if file.is_file()]
        return {file.relative_to(root).as_posix(): file.stat().st_size for file in files}

    def _file(self, file: Path, body: bool, headers: dict[str, str]) -> None:
        if not file.is_file():
            self._send(404, b"{}", body, {"X-Error-Code": "EntryNotFound"})
            return
        content = file.read_bytes()
        headers |= {"ETag": f'"{hashlib.sha256(content).hexdigest()}"', "Accept-Ranges": "bytes"}
        asked = self.headers.get("Range", "")
        if asked:
            start = int(asked.removeprefix("bytes=").partition("-")[0])
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
            self._send(206, content[start:], body, headers)
        else:
            self._send(200, content, body, headers)

    def _send(self, status: int, content: bytes, body: bool, headers: dict[str, str] | None = None) -> None:
        with self.log.open("a") as log:
            log.write(f"{self.command} {self.path} {self.headers.get('Range', '-')} {status}\n")
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if not body:
            return
        slow = self.root / "slow"
        if slow.exists() and len(content) > SMALL:
            self.wfile.write(content[: int(slow.read_text())])
            self.wfile.flush()
            time.sleep(1)
            self.close_connection = True
            return
        self.wfile.write(content)

    def log_message(self, *_arguments: object) -> None:
        """Print nothing: LOG has a line for the request already."""


def main() -> None:
    Handler.root, Handler.log = Path(sys.argv[2]), Path(sys.argv[3])
    address = sys.argv[4] if len(sys.argv) > 4 else "127.0.0.1"
    ThreadingHTTPServer((address, int(sys.argv[1])), Handler).serve_forever()


if __name__ == "__main__":
    main()
