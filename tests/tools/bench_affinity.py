# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measures affinity at the gateway against least connections: questions about documents, which share their beginnings.

Each way of routing has its own replica set of paced engines, whose prefix cache is simulated (paced_engine.py). All
documents fit into the caches of a set together, but not into the cache of one engine.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nodes import ROOT, NodeError

sys.path.insert(0, str(ROOT / "molecule/shared"))

from load import Connection

WAYS = {"least connections": ("spread", None), "affinity": ("together", {"sources": ["prefix"]})}
"""By name: a replica set, and its routing."""

PORT = 4020
"""The port of the first engine."""

ENGINES = 3
DOCUMENTS, DOCUMENT_CHARACTERS = 12, 16384
BLOCKS = 1600
"""Blocks in the cache of an engine: six documents of 256 blocks, and questions."""

CLIENTS, SECONDS, ROUNDS = 6, 10.0, 2
TOKENS = 5
SEED = 20260101

Add = Callable[[str, float, float | None], None]


@dataclass
class Result:
    """The results of one way of routing."""

    first: list[float] = field(default_factory=list)
    """Seconds until the first token of each answer."""
    prompt: int = 0
    cached: int = 0
    """Tokens of the prompts, and how many of them the engines had in their caches."""

    @property
    def share(self) -> float:
        return self.cached / self.prompt


@contextmanager
def engines(host: str) -> Iterator[list[dict[str, Any]]]:
    """The engines of both ways, as the variable gateway_replicas has them. They listen on this machine, on `host`."""
    replicas, processes = [], []
    for way, (name, routing) in enumerate(WAYS.values()):
        for number in range(ENGINES):
            port = PORT + way * ENGINES + number
            command = [sys.executable, str(Path(__file__).with_name("paced_engine.py")), str(port), str(BLOCKS)]
            processes.append(subprocess.Popen(command))
            replica = {"host": f"paced{number}", "address": host, "name": name, "model": f"model-{name}", "port": port}
            replicas.append({**replica, **({"routing": routing} if routing else {})})
    try:
        yield replicas
    finally:
        for process in processes:
            process.terminate()
            process.wait()


def bench(gateway: str, headers: dict[str, str], add: Add) -> None:
    """Measure both ways by turns through the gateway at `gateway`, HOST:PORT. Raises NodeError if a request failed."""
    results = {way: Result() for way in WAYS}
    for number in range(ROUNDS + 1):
        for way, (name, _routing) in WAYS.items():
            # The first round fills the caches.
            result = results[way] if number else Result()
            asyncio.run(_questions(gateway, headers, name, result, number))
    base = statistics.mean(results["least connections"].first)
    for way, result in results.items():
        seconds = statistics.mean(result.first)
        what = f"{DOCUMENTS} documents, first token: {way}, {result.share:.0%} cached"
        add(what, seconds, None if way == "least connections" else seconds / base)


async def _questions(gateway: str, headers: dict[str, str], name: str, result: Result, seed: int) -> None:
    ends = time.monotonic() + SECONDS
    clients = (_client(gateway, headers, name, result, SEED + 100 * seed + number, ends) for number in range(CLIENTS))
    await asyncio.gather(*clients)


async def _client(gateway: str, headers: dict[str, str], name: str, result: Result, seed: int, ends: float) -> None:
    """One client, which asks about random documents, in the same order in each way."""
    host, _colon, port = gateway.partition(":")
    connection, chance = Connection(host, int(port)), random.Random(seed)
    while time.monotonic() < ends:
        document = chance.randrange(DOCUMENTS)
        question = f"Question {chance.getrandbits(64)} about it?"
        await _ask(connection, headers, name, [_text(document), question], result)
    connection.close()


def _text(document: int) -> str:
    return f"Document {document}. ".ljust(16) * (DOCUMENT_CHARACTERS // 16)


async def _ask(connection: Connection, headers: dict[str, str], name: str, texts: list[str], result: Result) -> None:
    roles = ("system", "user")
    body = {
        "model": name,
        "messages": [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)],
        "max_tokens": TOKENS,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    began, first = time.monotonic(), 0.0
    status, answer = await connection.post("/v1/chat/completions", headers, json.dumps(body).encode())
    text = b""
    while part := await answer.chunk():
        text += part
        if not first and b'"content"' in text:
            first = time.monotonic() - began
    if not answer.keep:
        connection.close()
    if status != 200 or not first:
        raise NodeError(f"{name} answered {status}: {text[:300]!r}")
    events = (line.removeprefix(b"data: ") for line in text.split(b"\n\n") if line.startswith(b"data: {"))
    (usage,) = (found["usage"] for event in events if "usage" in (found := json.loads(event)))
    result.first.append(first)
    result.prompt += usage["prompt_tokens"]
    result.cached += usage["prompt_tokens_details"]["cached_tokens"]
