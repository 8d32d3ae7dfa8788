# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake engine with a fixed pace: a token every 10 ms, independent of other work of the processors.

It takes the place of an engine on a GPU. The real engine of the tests shares its processors with gateway and clients:
then a measurement shows the processor time of the gateway, and not its delay.

A second argument gives the engine a prefix cache of this number of blocks. The engine computes the blocks of a prompt
that the cache lacks, one prompt after the other, and reports the tokens that it found in `prompt_tokens_details`, as
vLLM does. The cache forgets the blocks that were unused for longest. Blocks, their speed and the cache are simulated.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from typing import Any

TOKEN_SECONDS = 0.01
"""Seconds between two tokens of one sequence, as for a large model on a fast GPU."""

TOKEN_CHARACTERS, BLOCK_TOKENS = 4, 16
"""Size of a simulated token and block. vLLM has blocks of 16 tokens by default."""

PREFILL_SECONDS = 0.0001
"""Seconds for a token of the prompt that the cache lacks: 10000 tokens a second."""


class PrefixCache:
    """A prefix cache of `blocks` blocks. A block is found only together with all blocks before it."""

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks
        self._kept: OrderedDict[int, None] = OrderedDict()

    def use(self, text: str) -> tuple[int, int]:
        """Keep a prompt. Returns the number of its tokens, and how many of them the cache had."""
        size = TOKEN_CHARACTERS * BLOCK_TOKENS
        chain, found, whole = 0, 0, True
        for start in range(0, len(text) - size + 1, size):
            chain = hash((chain, text[start : start + size]))
            whole = whole and chain in self._kept
            found += whole
            self._kept[chain] = None
            self._kept.move_to_end(chain)
        while len(self._kept) > self.blocks:
            self._kept.popitem(last=False)
        return len(text) // TOKEN_CHARACTERS, found * BLOCK_TOKENS


class Engine:
    """The engine, with or without a prefix cache."""

    def __init__(self, blocks: int = 0) -> None:
        self.cache = PrefixCache(blocks) if blocks else None
        self._computes = asyncio.Lock()

    async def prefill(self, messages: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Compute a prompt. Returns its part of `usage`."""
        if self.cache is None:
            return {"prompt_tokens": 1}
        text = "".join(f"<{message['role']}>{message['content']}" for message in messages)
        async with self._computes:
            number, found = self.cache.use(text)
            await asyncio.sleep((number - found) * PREFILL_SECONDS)
        return {"prompt_tokens": number, "prompt_tokens_details": {"cached_tokens": found}}

    async def answer(self, writer: asyncio.StreamWriter, asked: dict[str, Any]) -> None:
        """A chat's answer, streamed or whole."""
        number, text = asked["max_tokens"], ""
        # `token_bytes` is not part of the API. Large tokens make an answer that fills every buffer.
        size = asked.get("token_bytes", 1)
        head = {"id": "paced", "model": asked["model"]}
        prompt = await self.prefill(asked.get("messages", ()))
        usage = {**prompt, "completion_tokens": number, "total_tokens": prompt["prompt_tokens"] + number}
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

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """The requests of one connection."""
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower():
                _name, found, value = head.partition("content-length:")
                body = await reader.readexactly(int(value.splitlines()[0])) if found else b""
                if body:
                    await self.answer(writer, json.loads(body))
                else:
                    whole(writer, b"{}")
                await writer.drain()
        except (EOFError, ConnectionError):
            pass
        finally:
            writer.close()


async def tokens(number: int, size: int) -> AsyncIterator[str]:
    """Yield each token of `size` bytes at its own time: a late token does not delay the next tokens."""
    clock = asyncio.get_running_loop()
    began = clock.time()
    for index in range(number):
        await asyncio.sleep(max(0.0, began + (index + 1) * TOKEN_SECONDS - clock.time()))
        yield "a" * size


def event(writer: asyncio.StreamWriter, data: str) -> None:
    message = f"data: {data}\n\n".encode()
    writer.write(b"%x\r\n%b\r\n" % (len(message), message))


def whole(writer: asyncio.StreamWriter, body: bytes) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)


async def main(port: int, blocks: int = 0) -> None:
    server = await asyncio.start_server(Engine(blocks).serve, "0.0.0.0", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:3])))
