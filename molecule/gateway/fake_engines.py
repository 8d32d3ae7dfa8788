#!/usr/bin/env python3
# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fake engines and their agent: the view that a gateway has of a node.

`fake_engines.py ADDRESS NAME=PORT:MODEL ...` serves each engine on ADDRESS and the agent on port 5004. Every engine
reads orders at /control (a JSON object, see Engine.orders), and answers with the counts of its requests, the last
request and the orders.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from contextlib import suppress
from typing import Any

AGENT_PORT = 5004


class Engine:
    """One engine: its orders, and the requests that it got."""

    def __init__(self, name: str, model: str, host: str) -> None:
        self.name = name
        self.names = [name, model]
        self.host = host
        self.orders: dict[str, Any] = {"health": 200, "agent": "up ready", "status": 200, "token_seconds": 0.005}
        self.running = 0
        self.served = 0
        self.aborted = 0
        self.last: dict[str, Any] = {}

    def report(self) -> dict[str, Any]:
        counts = {"running": self.running, "served": self.served, "aborted": self.aborted}
        return {**counts, "last": self.last, "orders": self.orders}

    # --- HTTP

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while await self._one(reader, writer):
                pass
        writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _version = head[0].split(" ")
        headers = {key.lower(): value for key, _, value in (line.partition(": ") for line in head[1:] if line)}
        body = await _body(reader, headers)
        if path == "/control":
            self.orders.update(json.loads(body or b"{}"))
            await _answer(writer, 200, self.report())
        elif path == "/health":
            await _answer(writer, self.orders["health"], None)
        elif method == "POST":
            self.last = {"path": path, "headers": headers, "body_bytes": len(body)}
            if headers.get("content-type", "").startswith("multipart/form-data"):
                # Of several fields with the same name, the last one counts.
                names = re.findall(rb'; name="model"\r\n\r\n(.*?)\r\n--', body)
                body = json.dumps({"model": names[-1].decode(), "max_tokens": 1}).encode()
            await self._generate(reader, writer, path, body)
        else:
            await _answer(writer, 404, {"error": {"message": "Not Found"}})
        return headers.get("connection", "").lower() != "close"

    async def _generate(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, body: bytes
    ) -> None:
        request = json.loads(body)
        if request.get("model") not in self.names:
            await _answer(writer, 404, {"error": {"message": f"no model {request.get('model')}", "code": 404}})
            return
        if self.orders["status"] != 200:
            await _answer(writer, self.orders["status"], {"error": {"message": "as ordered"}})
            return
        self.running += 1
        work = asyncio.create_task(self._tokens(writer, request, path))
        # A client sends nothing between its request and the answer: if the connection is readable, the client has
        # closed the connection.
        gone = asyncio.create_task(reader.read(1))
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                self.aborted += 1
                raise ConnectionResetError
            work.result()
            self.served += 1
        finally:
            self.running -= 1
            for task in (work, gone):
                task.cancel()
                with suppress(asyncio.CancelledError, ConnectionError):
                    await task

    async def _tokens(self, writer: asyncio.StreamWriter, request: dict[str, Any], path: str) -> None:
        count, stream = request.get("max_tokens", 16), request.get("stream", False)
        chat = path.endswith("/chat/completions")
        base = {
            "id": "x",
            "object": "chat.completion.chunk" if stream else "chat.completion",
            # As in vLLM: the answer has the first name of the engine, also for a request with another name.
            "model": self.names[0],
        }
        usage = {"prompt_tokens": 1, "completion_tokens": count, "total_tokens": count + 1}
        text = f"I am {self.name} on {self.host}."
        if not stream:
            await asyncio.sleep(count * self.orders["token_seconds"])
            content = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
            choice = {"index": 0, "finish_reason": "length", **content}
            await _answer(writer, 200, {**base, "choices": [choice], "usage": usage})
            return
        head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        writer.write(head.encode())
        for index in range(count):
            await asyncio.sleep(self.orders["token_seconds"])
            word = text if index == 0 else " x"
            part = {"delta": {"content": word}} if chat else {"text": word}
            choice = {"index": 0, "finish_reason": "length" if index == count - 1 else None, **part}
            await _event(writer, json.dumps({**base, "choices": [choice]}))
        if (request.get("stream_options") or {}).get("include_usage"):
            await _event(writer, json.dumps({**base, "choices": [], "usage": usage}))
        await _event(writer, "[DONE]")
        writer.write(b"0\r\n\r\n")
        await writer.drain()


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding") != "chunked":
        return await reader.readexactly(int(headers.get("content-length", 0)))
    parts = []
    while size := int(await reader.readline(), 16):
        parts.append(await reader.readexactly(size))
        await reader.readline()
    await reader.readline()
    return b"".join(parts)


async def _answer(writer: asyncio.StreamWriter, status: int, value: Any) -> None:
    body = b"" if value is None else json.dumps(value).encode()
    head = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()


async def _event(writer: asyncio.StreamWriter, text: str) -> None:
    data = f"data: {text}\n\n".encode()
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
    await writer.drain()


def agent(engines: dict[str, Engine]) -> Any:
    """The handler of HAProxy's agent-checks."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        name = (await reader.readline()).decode().strip()
        writer.write(f"{engines[name].orders['agent'] if name in engines else 'up'}\n".encode())
        writer.close()

    return handle


async def main(address: str, declared: list[str]) -> None:
    engines = {}
    for word in declared:
        name, _, rest = word.partition("=")
        port, _, model = rest.partition(":")
        engines[name] = Engine(name, model, address)
        await asyncio.start_server(engines[name].handle, address, int(port), limit=16 << 20)
    await asyncio.start_server(agent(engines), address, AGENT_PORT)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
