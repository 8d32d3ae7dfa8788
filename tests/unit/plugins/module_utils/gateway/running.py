# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real HAProxy with the gateway's files, and engines that answer with their names."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ansible_collections.baremetal.inference.plugins.module_utils.gateway.files import Plan

SECONDS = 20.0

CHAT = "/v1/chat/completions"


def wait(what: str, condition: Callable[[], bool]) -> None:
    """Wait until a condition is true. Raises TimeoutError."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.02)


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


class Engine:
    """An engine that answers with its own name after `seconds`. `most` is the greatest number of requests at a time.

    `fails`: the status is 500. `breaks`: streams break off, and other requests get no answer. `streams`: answers are
    streams.
    """

    def __init__(self, name: str) -> None:
        self.name, self.seconds, self.running, self.most = name, 0.0, 0, 0
        self.fails = self.breaks = self.streams = False
        self._lock = threading.Lock()
        engine = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_words: Any) -> None:
                pass

            def do_GET(self) -> None:
                self._answer("{}")

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                with engine.during():
                    time.sleep(engine.seconds)
                if engine.breaks and not engine.streams:
                    self.close_connection = True
                else:
                    self._answer(json.dumps({"engine": engine.name}), 500 if engine.fails else 200)

            def _answer(self, text: str, status: int = 200) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "text/event-stream" if engine.streams else "application/json")
                self.send_header("Content-Length", str(len(text) + engine.breaks))
                self.end_headers()
                self.wfile.write(text.encode())
                self.close_connection = engine.breaks

        class Server(ThreadingHTTPServer):
            request_queue_size = 64
            daemon_threads = True

            def handle_error(self, _request: Any, _address: Any) -> None:
                """Print nothing: a health check closes its connection before it has read the answer."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = int(self.server.server_address[1])
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def during(self) -> Any:
        engine = self

        class Count:
            def __enter__(self) -> None:
                with engine._lock:
                    engine.running += 1
                    engine.most = max(engine.most, engine.running)

            def __exit__(self, *_error: object) -> None:
                with engine._lock:
                    engine.running -= 1

        return Count()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class Haproxy:
    """HAProxy with the files of a plan, in a directory of its own."""

    def __init__(self, plan: Plan, directory: Path, port: int, metrics_port: int, key: str) -> None:
        self.directory, self.port, self.metrics_port, self.key = directory, port, metrics_port, key
        self.log = directory / "log"
        here = {
            "log /dev/log len 8192": "log stdout len 8192 format raw",
            "    chroot /var/lib/haproxy\n": "",
            # The account haproxy exists only where the package was installed.
            "user haproxy\n": f"uid {os.getuid()}\n",
            "group haproxy\n": f"gid {os.getgid()}\n",
            "/var/lib/haproxy": str(directory),
            "/run/haproxy": str(directory),
            "bind 0.0.0.0:": "bind 127.0.0.1:",
            "abns@gateway-peers": f"abns@gateway-peers-{port}",
        }
        config = plan.config
        for old, new in here.items():
            assert old in config, old
            config = config.replace(old, new)
        for name, text in {"haproxy.cfg": config, **plan.maps, **plan.files}.items():
            (directory / name).write_text(text)
        command = ["haproxy", "-db", "-f", str(directory / "haproxy.cfg")]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        wait("HAProxy", self._serves)

    def _serves(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        return all(_listens(port) for port in (self.port, self.metrics_port))

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()

    def ask(self, path: str = CHAT, headers: dict[str, str] | None = None, **body: Any) -> str:
        """The name of the engine that answers a request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        given = {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}", **(headers or {})}
        connection.request("POST", path, json.dumps({"model": "chat", **body}), given)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        assert answer.status == 200, text
        return str(json.loads(text)["engine"])

    def post(self, key: str, request_id: str) -> tuple[int, dict[str, str], str]:
        """Status, headers and text of the answer to a request. A text that breaks off is empty."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        given = {"Content-Type": "application/json", "Authorization": f"Bearer {key}", "X-Request-ID": request_id}
        connection.request("POST", CHAT, json.dumps({"model": "chat"}), given)
        answer = connection.getresponse()
        try:
            text = answer.read().decode()
        except http.client.IncompleteRead:
            text = ""
        connection.close()
        return answer.status, dict(answer.getheaders()), text

    def give_up(self, key: str, request_id: str) -> None:
        """Send a request, and close the connection before the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        given = {"Content-Type": "application/json", "Authorization": f"Bearer {key}", "X-Request-ID": request_id}
        connection.request("POST", CHAT, json.dumps({"model": "chat"}), given)
        time.sleep(0.3)
        connection.close()

    def deaths(self, query: str = "") -> list[dict[str, Any]]:
        """The deaths that the gateway has recorded; with a query, after a node's report."""
        connection = http.client.HTTPConnection("127.0.0.1", self.metrics_port, timeout=SECONDS)
        connection.request("POST" if query else "GET", f"/deaths{query}")
        found = json.loads(connection.getresponse().read())["deaths"]
        connection.close()
        return list(found)

    def ask_at_once(self, requests: list[dict[str, Any]]) -> list[str]:
        """The engines that answer requests, which are sent at the same time."""
        with ThreadPoolExecutor(len(requests)) as pool:
            return list(pool.map(lambda body: self.ask(**body), requests))

    def view(self) -> dict[str, Any]:
        """What nodes see of the set `chat`."""
        # HAProxy keeps the text for 0.1 s.
        time.sleep(0.15)
        connection = http.client.HTTPConnection("127.0.0.1", self.metrics_port, timeout=SECONDS)
        connection.request("GET", "/sets/chat")
        found = dict(json.loads(connection.getresponse().read()))
        connection.close()
        return found

    def command(self, words: str) -> str:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.directory / "admin.sock"))
            connection.sendall(f"{words}\n".encode())
            connection.shutdown(socket.SHUT_WR)
            parts = []
            while part := connection.recv(65536):
                parts.append(part)
        return b"".join(parts).decode().strip()

    def lines(self) -> list[dict[str, Any]]:
        """The lines of the request log."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]
