# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HAProxy's agent-check: an instance's name comes in, what to do with it goes out. Private to the collection.

HAProxy sends what `agent-send` says when it is connected, and reads one line. The second line of a question is the
gateway's name. A question without that name is no check (gateway.lua), or comes from a gateway of before version 0.2.
The third line, where an engine has two servers, says for which: Endpoint.words, with a blank between several.
Source: HAProxy's configuration manual, `agent-check`. A description is parted by a blank: `down#why` is not understood
(measured with 2.6).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from ..engine.probe import health
from ..engine.state.drains import Drain

READ_LIMIT = 2.0
"""Seconds in which the name must have come."""

_LONGEST = 256
"""Bytes of a reason."""

_LONGEST_QUESTION = 1024
"""Bytes of the names of an instance and of a gateway, and of endpoints."""

UP = "up ready"
"""`ready` takes back our own `drain`, which `up` alone would leave in force."""


def reply(verdict: str, detail: str, drain: Drain | None, *, stale: bool) -> str:
    """The answer to the gateway. A verdict that is unknown or too old takes no instance out of service."""
    if drain is not None:
        return "drain"
    if stale or verdict == health.UNKNOWN or verdict in health.SERVING:
        return UP
    return f"down #{verdict}: {_plain(detail)}"


ELSEWHERE = "down #the engine listens elsewhere"
"""For the one of two servers that is not the release that runs."""


@dataclass(frozen=True)
class Question:
    """What a gateway asks for."""

    instance: str
    gateway: str = ""
    """The gateway that asks; empty where this is no check."""
    endpoints: tuple[str, ...] = ()
    """What of the instance is meant, where that is said: Endpoint.words."""


def _plain(text: str) -> str:
    """Text that ends no line and no description early: printable ASCII without the sign of a description."""
    kept = (character if character.isascii() and character.isprintable() else " " for character in text)
    return " ".join("".join(kept).replace("#", " ").split())[:_LONGEST]


async def _question(reader: asyncio.StreamReader) -> Question:
    """What is asked for; empty where nothing came."""
    received = b""
    while b"\n" not in received and len(received) < _LONGEST_QUESTION:
        part = await reader.read(_LONGEST_QUESTION)
        if not part:
            break
        received += part
    # What no line break ends may be cut off.
    instance, gateway, endpoints, *_more = [*received.decode(errors="replace").split("\n")[:-1], "", "", ""]
    return Question(instance.strip(), gateway.strip(), tuple(endpoints.split()))


async def serve(answer: Callable[[Question], str], address: str, port: int) -> asyncio.Server:
    """Answer questions by `answer`. Raises OSError where nothing can listen there."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A gateway that goes away, or says nothing, is no concern of anybody else.
        with contextlib.suppress(OSError):
            try:
                async with asyncio.timeout(READ_LIMIT):
                    question = await _question(reader)
                    if question.instance:
                        writer.write(f"{answer(question)}\n".encode())
                        await writer.drain()
            finally:
                writer.close()

    return await asyncio.start_server(talk, address, port, limit=_LONGEST_QUESTION)
