# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clients that a swap loses more easily than those of load.py: slow uploads, slow readers, late answers, and HTTP/2."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from load import Load, Report, Shape, tls_of

UPLOAD_SECONDS = 15.0
"""Seconds from the headers of a slow upload to its body."""

LATE_TOKENS = 800
"""Tokens of a late answer: the engine sends nothing for 8 s, as while it prepares a long prompt or pictures."""

BIG_TOKENS, BIG_BYTES = 60, 500_000
"""A slow reader's answer of 30 MB fills every buffer between engine and client."""

READ_BYTES, READ_SECONDS = 65536, 0.02
"""The slow reader reads 3 MB per second."""

SHORT = (Shape(True, 20), Shape(False, 20), Shape(True, 100))

H2_REQUESTS = 30
"""Requests of one HTTP/2 connection."""


def loads(urls: Sequence[str], models: tuple[str, ...] = ("main",), clients: int = 5) -> list[Load]:
    """Clients on kept connections, at each gateway. In an old process, each connection gets one more answer."""
    return [Load(url, models, clients, shapes=SHORT, pause_seconds=0.3) for url in urls]


def request(tokens: int, model: str = "main", **more: Any) -> bytes:
    messages = [{"role": "user", "content": "Who are you?"}]
    return json.dumps({"model": model, "messages": messages, "max_tokens": tokens, **more}).encode()


async def _opened(url: str, room: int = 0) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to a gateway. `room`: bytes of the kernel's buffer for answers."""
    parts = urlsplit(url)
    assert parts.hostname and parts.port
    if not room:
        return await asyncio.open_connection(parts.hostname, parts.port, ssl=tls_of(url))
    channel = socket.socket()
    channel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    channel.setblocking(False)
    await asyncio.get_running_loop().sock_connect(channel, (parts.hostname, parts.port))
    return await asyncio.open_connection(sock=channel)


def _head(body: bytes) -> bytes:
    fixed = "POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json"
    return f"{fixed}\r\nContent-Length: {len(body)}\r\n\r\n".encode()


async def _answer(reader: asyncio.StreamReader, pause: float = 0.0) -> dict[str, Any]:
    """A whole answer, which `pause` makes slow. Raises ValueError, EOFError, OSError."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    status, size = int(head.split(" ")[1]), int(head.partition("content-length:")[2].splitlines()[0])
    body = bytearray()
    while len(body) < size:
        part = await reader.read(READ_BYTES)
        if not part:
            raise EOFError(f"status {status}: the answer ends after {len(body)} of {size} bytes")
        body += part
        if pause:
            await asyncio.sleep(pause)
    if status != 200:
        raise ValueError(f"status {status}: {bytes(body[:200]).decode(errors='replace')}")
    return dict(json.loads(body))


async def upload(url: str) -> None:
    """The body comes long after the headers, when the engines are in another state."""
    reader, writer = await _opened(url)
    body = request(5)
    writer.write(_head(body))
    await writer.drain()
    await asyncio.sleep(UPLOAD_SECONDS)
    writer.write(body)
    await _answer(reader)
    writer.close()


async def late(url: str) -> None:
    """An answer that begins 8 s after the request."""
    reader, writer = await _opened(url)
    body = request(LATE_TOKENS)
    writer.write(_head(body) + body)
    await _answer(reader)
    writer.close()


async def slow_reader(url: str) -> None:
    """A client that reads a big answer for 10 s after the engine has generated it."""
    reader, writer = await _opened(url, READ_BYTES)
    body = request(BIG_TOKENS, token_bytes=BIG_BYTES)
    writer.write(_head(body) + body)
    answer = await _answer(reader, READ_SECONDS)
    assert len(answer["choices"][0]["message"]["content"]) == BIG_TOKENS * BIG_BYTES
    writer.close()


@dataclass
class Background(ABC):
    """Clients in a separate thread."""

    report: Report = field(default_factory=Report, init=False)
    _stopping: threading.Event = field(default_factory=threading.Event, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _error: Exception | None = field(default=None, init=False)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> Report:
        """Wait for the end of all requests in flight. Returns the report. Raises an error of the clients themselves."""
        self._stopping.set()
        assert self._thread
        self._thread.join()
        if self._error:
            raise self._error
        return self.report

    def _run(self) -> None:
        try:
            self._work()
        except Exception as error:
            # Without this, clients that end early would look like clients without failures.
            self._error = error

    @abstractmethod
    def _work(self) -> None:
        """Send requests until `_stopping` is set."""


@dataclass
class Arrivals(Background):
    """Requests at each gateway, each on its own connection. `every`: seconds from one start to the next."""

    urls: Sequence[str]
    kind: Callable[[str], Awaitable[None]]
    every: float

    def _work(self) -> None:
        asyncio.run(self._all())

    async def _all(self) -> None:
        running = []
        while not self._stopping.is_set():
            running += [asyncio.create_task(self._one(url)) for url in self.urls]
            await asyncio.sleep(self.every)
        await asyncio.gather(*running)

    async def _one(self, url: str) -> None:
        began = time.monotonic()
        try:
            await self.kind(url)
            self.report.succeeded += 1
        except Exception as error:
            # Whatever the error is: a request without a right answer has failed.
            self.report.failures.append(f"{error or type(error).__name__} [after {time.monotonic() - began:.2f} s]")


@dataclass
class Http2(Background):
    """curl with HTTP/2: connections with several requests at once, one connection after the other."""

    url: str

    def _work(self) -> None:
        while not self._stopping.is_set():
            self._connection()

    def _connection(self) -> None:
        """The requests of one connection; a stream ends by [DONE]."""
        body = request(40, stream=True).decode()
        done = subprocess.run(
            [
                *("curl", "--silent", "--insecure", "--http2", "--no-buffer"),
                *("--parallel", "--parallel-max", "4", "--max-time", "150"),
                *("--header", "Content-Type: application/json", "--data", body),
                *("--write-out", "%{stderr}\nanswer %{http_code} %{http_version} %{exitcode} %{errormsg}\n"),
                f"{self.url}/v1/chat/completions?number=[1-{H2_REQUESTS}]",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        # curl also writes a progress meter.
        lines = [line for line in done.stderr.splitlines() if line.startswith("answer ")]
        bad = [line for line in lines if not line.startswith("answer 200 2 0 ")]
        self.report.failures += bad
        if missing := H2_REQUESTS - len(lines):
            self.report.failures += [f"curl has ended with {done.returncode}"] * missing
        ended = done.stdout.count("data: [DONE]")
        if not bad and ended != H2_REQUESTS:
            self.report.failures += ["a stream without its [DONE]"] * (H2_REQUESTS - ended)
        self.report.succeeded += len(lines) - len(bad)
