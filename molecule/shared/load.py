#!/usr/bin/env python3
# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clients that send requests all the time, and count failures.

Clients of benchmarks count a stream that was cut after its first token as a success. Here, a request fails on: a broken
connection, a status other than 2xx, an error within a stream, a stream without [DONE], an answer without finish_reason,
too few tokens, another model's name, or a wrong text. No request is sent twice.

As a library: `Load(url, …)` runs in a separate thread until `stop()` returns the report. As a command:
`load.py URL --model main --seconds 30`.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

SHOWN = 300
"""Number of characters of an answer that a failure quotes."""


class FailedRequest(Exception):
    """The reason why a request failed."""


@dataclass(frozen=True)
class Shape:
    """A kind of request."""

    stream: bool
    tokens: int


SHAPES = (Shape(True, 20), Shape(False, 20), Shape(True, 150), Shape(False, 150))


@dataclass(frozen=True)
class Stream:
    """Times of the tokens of a streamed answer, in seconds since the request."""

    first: float
    last: float
    tokens: int


@dataclass
class Report:
    """The results of a load. Times are in seconds."""

    succeeded: int = 0
    tokens: int = 0
    """The tokens of all successful requests."""
    failures: list[str] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    texts: Counter[str] = field(default_factory=Counter)
    """The number of times that each right answer came, if the load has right answers."""
    clock_step: float = 0.0
    """How far this machine's clock was set during the load. After more than 10 s forward, HAProxy 2.6 may close idle
    connections (docs/gateway.md)."""

    def quantile(self, share: float) -> float:
        """The latency that this share of the successful requests did not exceed, in seconds."""
        ordered = sorted(self.latencies)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0.0

    @property
    def first_token(self) -> float:
        """The mean time until a streamed answer's first token."""
        return sum(stream.first for stream in self.streams) / len(self.streams)

    @property
    def between_tokens(self) -> float:
        """The mean time between two tokens of streamed answers."""
        gaps = sum(stream.tokens - 1 for stream in self.streams)
        return sum(stream.last - stream.first for stream in self.streams) / gaps

    def __str__(self) -> str:
        reasons = Counter(reason.partition(" [")[0] for reason in self.failures)
        lines = [f"{self.succeeded} succeeded, {len(self.failures)} failed, p50 {self.quantile(0.5):.3f} s"]
        if abs(self.clock_step) >= 1:
            lines.append(f"meanwhile, this machine's clock was set by {self.clock_step:+.1f} s")
        return "\n".join([*lines, *(f"{count} x {reason}" for reason, count in reasons.most_common())])


class Connection:
    """One keep-alive connection, HTTP/1.1."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        self.host, self.port, self.tls = host, port, tls
        self.writer: asyncio.StreamWriter | None = None

    async def post(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, AnswerBody]:
        """Send a request; returns status and body. Raises OSError, EOFError, ValueError."""
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection(self.host, self.port, ssl=self.tls)
        lines = {"Host": f"{self.host}:{self.port}", "Content-Length": str(len(body)), **headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self.writer.write(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + body)
        await self.writer.drain()
        try:
            received = await self.reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            # The words of IncompleteReadError are the same for a body that breaks off.
            raise EOFError(f"the connection ended before the answer's header [{len(error.partial)} bytes]") from error
        status, *rest = received.decode("latin-1").splitlines()
        answer = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in rest)}
        return int(status.split(" ")[1]), AnswerBody(self.reader, answer)

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
            self.writer = None


def tls_of(url: str, trusted: str = "") -> ssl.SSLContext | None:
    """The TLS context of clients; None for a URL without TLS. `trusted` is the certificate of a CA in PEM. Without
    `trusted`, clients accept any certificate."""
    if not url.startswith("https:"):
        return None
    context = ssl.create_default_context(cadata=trusted or None)
    if trusted:
        # Python 3.13 sets this flag by default.
        context.verify_flags |= ssl.VERIFY_X509_STRICT
    else:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class AnswerBody:
    """The rest of an answer."""

    def __init__(self, reader: asyncio.StreamReader, headers: dict[str, str]) -> None:
        self.reader = reader
        self.headers = headers
        self.keep = headers.get("connection", "").lower() != "close"
        self.chunked = headers.get("transfer-encoding", "").lower() == "chunked"

    async def chunk(self) -> bytes:
        """The next part of the answer; empty at its end. Raises EOFError if the connection ends before."""
        if not self.chunked:
            size = int(self.headers.get("content-length", "0"))
            self.headers["content-length"] = "0"
            return await self.reader.readexactly(size)
        size = int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16)
        data = await self.reader.readexactly(size)
        await self.reader.readexactly(2)
        return data

    async def whole(self) -> bytes:
        parts = []
        while part := await self.chunk():
            parts.append(part)
        return b"".join(parts)


def _check(answer: dict[str, Any], model: str, tokens: int) -> str:
    """The text of a complete answer. Raises FailedRequest."""
    choice = answer["choices"][0]
    if answer.get("model") != model:
        raise FailedRequest(f"another model answered [{answer.get('model')}]")
    if not choice.get("finish_reason"):
        raise FailedRequest("no finish_reason")
    if answer["usage"]["completion_tokens"] < tokens:
        raise FailedRequest(f"too few tokens [{answer['usage']['completion_tokens']} of {tokens}]")
    return str(choice["message"]["content"])


async def _read_stream(body: AnswerBody, model: str, tokens: int, began: float) -> tuple[str, Stream | None]:
    """The text of a streamed answer, and its times. Raises FailedRequest."""
    text, finish, used, pending, done = "", None, 0, b"", False
    times: list[float] = []
    while part := await body.chunk():
        *events, pending = (pending + part).split(b"\n\n")
        for event in events:
            data = event.removeprefix(b"data: ").strip()
            if data == b"[DONE]":
                done = True
                continue
            if not event.startswith(b"data: "):
                continue
            message = json.loads(data)
            if "error" in message:
                raise FailedRequest(f"an error within the stream [{data[:SHOWN].decode()}]")
            if message.get("model") != model:
                raise FailedRequest(f"another model answered [{message.get('model')}]")
            for choice in message["choices"]:
                # The first message names a role, and has no token.
                if choice["delta"].get("content"):
                    text += choice["delta"]["content"]
                    times.append(time.monotonic() - began)
                finish = choice.get("finish_reason") or finish
            used = (message.get("usage") or {}).get("completion_tokens", used)
    if not done or not finish:
        raise FailedRequest(f"a stream without its {'finish_reason' if done else '[DONE]'}")
    if used < tokens:
        raise FailedRequest(f"too few tokens [{used} of {tokens}]")
    return text, Stream(times[0], times[-1], used) if times else None


def _clock() -> float:
    """How far the machine's clock is from the time since its start. Changes only when the clock is set."""
    return time.time() - time.monotonic()


class Load:
    """Clients that send one request after the other until the load stops. Each client has its own connection.

    Without `keep`, each request has a new connection, like requests of a gateway: a busy engine may close an idle
    connection at the moment of the next request.

    `models` are names of replica sets. An engine answers with its first name, so the answer to a model's own name would
    count as an answer of another model. Only the text shows which model has answered: `answers` has the right
    beginnings for each name. For a name without entries, every text is right. `others` are more URLs with the same
    path: each client uses one of the URLs. `trusted`, for an https URL: the certificate (PEM) of the CA that must have
    signed the server's certificate.
    """

    def __init__(
        self,
        url: str,
        models: tuple[str, ...] = ("main",),
        clients: int = 8,
        key: str = "",
        shapes: tuple[Shape, ...] = SHAPES,
        answers: Mapping[str, Sequence[str]] | None = None,
        pause_seconds: float = 0.0,
        keep: bool = True,
        others: Sequence[str] = (),
        trusted: str = "",
    ) -> None:
        self.parts = urlsplit(url)
        self.urls = (url, *others)
        self.models = models
        self.clients = clients
        self.headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        if not keep:
            self.headers["Connection"] = "close"
        self.shapes = shapes
        self.answers = answers or {}
        self.pause_seconds = pause_seconds
        self.trusted = trusted
        self.report = Report()
        self._stopping = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._clock = _clock()

    def start(self) -> Load:
        self._clock = _clock()
        self._thread.start()
        return self

    def stop(self) -> Report:
        """Wait for the end of all requests in flight. Returns the report. Raises an error of the clients themselves."""
        self._stopping.set()
        self._thread.join()
        self.report.clock_step = _clock() - self._clock
        if self._error:
            raise self._error
        return self.report

    def during(self, action: Callable[[], Any], seconds_after: float = 2.0) -> Report:
        """Run an action under load. Returns the report. Raises the action's exception after the end of the load."""
        self.start()
        try:
            time.sleep(1)
            action()
            time.sleep(seconds_after)
        finally:
            self.stop()
        return self.report

    def _run(self) -> None:
        try:
            asyncio.run(self._all())
        except Exception as error:
            # Without this, clients that end early would look like clients without failures.
            self._error = error

    async def _all(self) -> None:
        await asyncio.gather(*(self._client(number) for number in range(self.clients)))

    async def _client(self, number: int) -> None:
        url = self.urls[number % len(self.urls)]
        parts, tls = urlsplit(url), tls_of(url, self.trusted)
        assert parts.hostname
        connection = Connection(parts.hostname, parts.port or (443 if tls else 80), tls)
        work = itertools.islice(itertools.cycle(itertools.product(self.models, self.shapes)), number, None)
        for model, shape in work:
            if self._stopping.is_set():
                break
            began = time.monotonic()
            try:
                await self._one(connection, model, shape)
                self.report.succeeded += 1
                # With ignore_eos, the engine generates exactly the requested number of tokens.
                self.report.tokens += shape.tokens
                self.report.latencies.append(time.monotonic() - began)
            except (OSError, EOFError, ValueError, TypeError, AttributeError, LookupError, FailedRequest) as error:
                self.report.failures.append(f"{error or type(error).__name__} [after {time.monotonic() - began:.2f} s]")
                connection.close()
            if self.pause_seconds:
                await asyncio.sleep(self.pause_seconds)
        connection.close()

    async def _one(self, connection: Connection, model: str, shape: Shape) -> None:
        body: dict[str, Any] = {
            "model": model,
            "messages": [{"role": "user", "content": "Who are you?"}],
            "max_tokens": shape.tokens,
            "temperature": 0,
            "ignore_eos": True,
            "stream": shape.stream,
        }
        if shape.stream:
            body["stream_options"] = {"include_usage": True}
        path = f"{self.parts.path.rstrip('/')}/v1/chat/completions"
        began = time.monotonic()
        status, answer = await connection.post(path, self.headers, json.dumps(body).encode())
        if not 200 <= status < 300:
            raise FailedRequest(f"status {status} [{(await answer.whole())[:SHOWN].decode(errors='replace')}]")
        if shape.stream:
            text, stream = await _read_stream(answer, model, shape.tokens, began)
            if stream:
                self.report.streams.append(stream)
        else:
            text = _check(json.loads(await answer.whole()), model, shape.tokens)
        if not answer.keep:
            connection.close()
        self._judge(model, text)

    def _judge(self, model: str, text: str) -> None:
        """Raise FailedRequest unless a text begins like one of the right answers. Later text may differ."""
        if right := self.answers.get(model):
            given = next((one for one in right if text.startswith(one)), None)
            if given is None:
                raise FailedRequest(f"a wrong answer [{text[:SHOWN]!r} by the name {model}]")
            self.report.texts[given] += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--key", default="")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--close", action="store_true", help="a connection for each request")
    arguments = parser.parse_args()
    models = tuple(arguments.model or ["main"])
    load = Load(arguments.url, models, arguments.clients, arguments.key, keep=not arguments.close).start()
    time.sleep(arguments.seconds)
    report = load.stop()
    print(report)
    return bool(report.failures)


if __name__ == "__main__":
    raise SystemExit(main())
