# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A gateway's port for metrics."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ansible_collections.baremetal.inference.plugins.module_utils.engine.swap_settings import Gateway


class FakeGateway(ThreadingHTTPServer):
    """Records methods and paths of requests. Answers with `status` and `body`, which a test may change."""

    def __init__(self, answer: Any) -> None:
        self.status, self.body, self.asked = 200, json.dumps(answer).encode(), list[str]()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(f"{self.command} {self.path}")
                self.send_response(outer.status)
                self.send_header("Content-Length", str(len(outer.body)))
                self.end_headers()
                self.wfile.write(outer.body)

            do_POST = do_GET

            def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002, the name of the base class
                pass

        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def gateway(self) -> Gateway:
        return Gateway("gw1", "127.0.0.1", self.server_port)


@contextmanager
def running(answer: Any) -> Iterator[FakeGateway]:
    """A gateway that answers until the end of the block."""
    server = FakeGateway(answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
