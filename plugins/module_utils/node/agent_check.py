# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers HAProxy's agent-check. Private to the collection.

HAProxy connects, sends the text of `agent-send`, and reads one line. The first line of the text is the instance's name,
the second the gateway's name. A question without a gateway's name is no check: it comes from gateway.lua, or from a
gateway before version 0.2. A third line names which of an engine's two servers is meant: Endpoint.words, separated by
blanks. Source: HAProxy's configuration manual, `agent-check`. Before a description, the answer must have a blank:
HAProxy does not understand `down#why` (measured with 2.6).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from ..engine.probe import health
from ..engine.state.drains import Drain

READ_LIMIT = 2.0
"""Seconds within which the question must arrive."""

_LONGEST = 256
"""Most bytes of a reason."""

_LONGEST_QUESTION = 1024
"""Most bytes of a question: the names of instance and gateway, and endpoints."""

UP = "up ready"
"""`ready` ends our own `drain`. With `up` alone, the server would stay drained."""


def reply(verdict: str, detail: str, drain: Drain | None, *, stale: bool) -> str:
    """The answer to a gateway. A verdict that is unknown or too old does not stop requests."""
    if drain is not None:
        return "drain"
    if stale or verdict == health.UNKNOWN or verdict in health.SERVING:
        return UP
    return f"down #{verdict}: {_plain(detail)}"


ELSEWHERE = "down #the engine listens elsewhere"
"""The answer for one of an engine's two servers: the running release does not listen there."""


@dataclass(frozen=True)
class Question:
    """A question of a gateway."""

    instance: str
    gateway: str = ""
    """The gateway that checks; empty if this is no check."""
    endpoints: tuple[str, ...] = ()
    """Where the server in question listens (Endpoint.words); empty if the engine has one server."""


def _plain(text: str) -> str:
    """The text as printable ASCII without `#`, so that it ends neither the line nor the description early."""
    kept = (character if character.isascii() and character.isprintable() else " " for character in text)
    return " ".join("".join(kept).replace("#", " ").split())[:_LONGEST]


async def _question(reader: asyncio.StreamReader) -> Question:
    """The question that arrives; empty if nothing arrives."""
    received = b""
    while b"\n" not in received and len(received) < _LONGEST_QUESTION:
        part = await reader.read(_LONGEST_QUESTION)
        if not part:
            break
        received += part
    # Without a line break at its end, the last line may be incomplete, and is left out.
    instance, gateway, endpoints, *_more = [*received.decode(errors="replace").split("\n")[:-1], "", "", ""]
    return Question(instance.strip(), gateway.strip(), tuple(endpoints.split()))


async def serve(answer: Callable[[Question], str], address: str, port: int) -> asyncio.Server:
    """Answer questions with `answer`. Raises OSError if the address or port cannot be used."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A gateway that disconnects or sends nothing affects no other gateway.
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
