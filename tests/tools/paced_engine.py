# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake engine with a fixed pace: a token every 10 ms, independent of other work of the processors.

It takes the place of an engine on a GPU. The real engine of the tests shares its processors with gateway and clients:
then a measurement shows the processor time of the gateway, and not its delay.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

TOKEN_SECONDS = 0.01
"""Seconds between two tokens of one sequence, as for a large model on a fast GPU."""


async def tokens(number: int, size: int) -> AsyncIterator[str]:
    """Send each token of `size` bytes at its own time: a late token does not delay the next tokens."""
    clock = asyncio.get_running_loop()
    began = clock.time()
    for index in range(number):
        await asyncio.sleep(max(0.0, began + (index + 1) * TOKEN_SECONDS - clock.time()))
        yield "a" * size


async def answer(writer: asyncio.StreamWriter, asked: dict[str, Any]) -> None:
    """A chat's answer, streamed or whole."""
    number, text = asked["max_tokens"], ""
    # Not part of the API: an answer that fills every buffer.
    size = asked.get("token_bytes", 1)
    head = {"id": "paced", "model": asked["model"]}
    usage = {"prompt_tokens": 1, "completion_tokens": number, "total_tokens": number + 1}
    if not asked.get("stream"):
        async for token in tokens(number, size):
            text += token
        choice = {"index": 0, "finish_reason": "length", "message": {"role": "assistant", "content": text}}
        whole(writer, json.dumps({**head, "choices": [choice], "usage": usage}).encode())
        return
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    left = number
    async for token in tokens(number, size):
        left -= 1
        choice = {"index": 0, "delta": {"content": token}, "finish_reason": None if left else "length"}
        event(writer, json.dumps({**head, "choices": [choice]}))
        await writer.drain()
    event(writer, json.dumps({**head, "choices": [], "usage": usage}))
    event(writer, "[DONE]")
    writer.write(b"0\r\n\r\n")


def event(writer: asyncio.StreamWriter, data: str) -> None:
    message = f"data: {data}\n\n".encode()
    writer.write(b"%x\r\n%b\r\n" % (len(message), message))


def whole(writer: asyncio.StreamWriter, body: bytes) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """The requests of one connection."""
    try:
        while head := (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower():
            _name, found, value = head.partition("content-length:")
            body = await reader.readexactly(int(value.splitlines()[0])) if found else b""
            if body:
                await answer(writer, json.loads(body))
            else:
                whole(writer, b"{}")
            await writer.drain()
    except (EOFError, ConnectionError):
        pass
    finally:
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "0.0.0.0", int(sys.argv[1]))
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
