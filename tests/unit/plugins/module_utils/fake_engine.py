# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for vLLM: an API server whose faults are chosen by a JSON document in its first argument."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

OPTIONS: dict[str, Any] = json.loads(sys.argv[1])


class Handler(BaseHTTPRequestHandler):
    def answer(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def authorized(self) -> bool:
        key = OPTIONS.get("key")
        if key and self.headers.get("Authorization") != f"Bearer {key}":
            self.answer(401, {"error": "Unauthorized"})
            return False
        return True

    def do_GET(self) -> None:
        if self.authorized():
            self.answer(200, {"data": [{"id": name} for name in OPTIONS.get("names", ["main", "tiny-a"])]})

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.authorized():
            return
        if OPTIONS.get("die_on_completion"):
            os._exit(0)
        time.sleep(OPTIONS.get("completion_seconds", 0))
        if OPTIONS.get("status"):
            self.answer(OPTIONS["status"], {"error": {"message": "EngineCore encountered an issue"}})
            return
        if OPTIONS.get("chat_status") and self.path == "/v1/chat/completions":
            self.answer(OPTIONS["chat_status"], {"error": {"message": "no chat template"}})
            return
        tokens = OPTIONS.get("tokens", request["max_tokens"])
        # As in vLLM: the answer has the first name of the engine, also for a request with another name.
        body = {"model": OPTIONS.get("model", "main"), "choices": [{"text": "x"}]}
        self.answer(200, {**body, "usage": {"completion_tokens": tokens}})

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        pass


def main() -> None:
    if OPTIONS.get("ignore_term"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGTERM, lambda number, frame: os._exit(0))
    if "exit_after" in OPTIONS:
        time.sleep(OPTIONS["exit_after"])
        sys.exit(OPTIONS.get("code", 0))
    if OPTIONS.get("never_listens"):
        time.sleep(600)
    time.sleep(OPTIONS.get("load_seconds", 0))
    ThreadingHTTPServer(("127.0.0.1", OPTIONS["port"]), Handler).serve_forever()


if __name__ == "__main__":
    main()
