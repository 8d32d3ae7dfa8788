# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An engine in the process of the test. Tests change its faults while the engine runs."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

METRICS = """\
# HELP vllm:generation_tokens_total Number of generation tokens processed.
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{{engine="0",model_name="tiny-a"}} {generation}
vllm:prompt_tokens_total{{engine="0",model_name="tiny-a"}} 300.0
vllm:kv_cache_usage_perc{{engine="0",model_name="tiny-a"}} {cache}
process_start_time_seconds 1.7e+09
"""


class Engine:
    """Answers as vLLM does. `delay` in seconds; a hung worker is a delay beyond any limit."""

    def __init__(self, name: str = "main", port: int = 0) -> None:
        self.delay = 0.0
        self.status = 200
        self.model = name
        """The name in its answers, also for a request with another name. vLLM answers with the first of its names."""
        self.key = ""
        self.raw = b""
        """Bytes that are sent in place of an answer to a completion."""
        self.frozen = threading.Event()
        """While this is set, no request gets an answer."""
        self.generation = 0.0
        self.cache = 0.0
        self.works = False
        """Whether the counter of generated tokens rises with each scrape."""
        self.metrics = METRICS
        self.scrapes = 0
        self.completions: list[dict[str, object]] = []
        engine = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def thaw(self) -> None:
                while engine.frozen.is_set():
                    time.sleep(0.01)

            def do_GET(self) -> None:
                self.thaw()
                engine.scrapes += 1
                engine.generation += engine.works
                text = engine.metrics.format(generation=engine.generation, cache=engine.cache)
                # In chunks, as prometheus_client's answers come out of uvicorn.
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                data = text.encode()
                self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data) if data else b"0\r\n\r\n")

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                engine.completions.append(request)
                self.thaw()
                if engine.key and self.headers.get("Authorization") != f"Bearer {engine.key}":
                    self.answer(401, b'{"error": "Unauthorized"}')
                    return
                deadline = time.monotonic() + engine.delay
                while time.monotonic() < deadline and engine.delay:
                    time.sleep(0.01)
                if engine.raw:
                    self.wfile.write(engine.raw)
                    self.close_connection = True
                    return
                if engine.status != 200:
                    self.answer(engine.status, b'{"error": {"message": "no"}}')
                    return
                body = {"model": engine.model, "choices": [{"text": "x"}]}
                self.answer(200, json.dumps({**body, "usage": {"completion_tokens": 1}}).encode())

            def handle(self) -> None:
                # A client may close the connection in the middle of an answer.
                try:
                    super().handle()
                except OSError:
                    self.close_connection = True

            def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self.frozen.clear()
        self.delay = 0.0
        self._server.shutdown()
        self._server.server_close()
