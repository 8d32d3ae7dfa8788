# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One HTTP request to an engine, with a time limit for the whole request. Private to the collection.

http.client limits only each single read: a server that sends a byte now and then blocks its caller for ever. So asyncio
sends and receives, with a limit for the whole request. http.client only parses.
"""

from __future__ import annotations

import asyncio
import http.client
import io
from dataclasses import dataclass

from ..adapters.contract import Body
from .probe import Target, headers

LARGEST_ANSWER = 8 * 1024**2
"""Bytes. An engine's /metrics has about 100 KiB; another process on the port might send without end."""


@dataclass(frozen=True)
class Answer:
    """Status and body of an answer."""

    status: int
    body: bytes


class _Received:
    """Received bytes, for http.client, which expects a socket to read from."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def makefile(self, mode: str) -> io.BytesIO:
        return io.BytesIO(self._raw)


async def ask(target: Target, method: str, path: str, body: Body | None, limit: float) -> Answer:
    """Send a request and read its answer, within `limit` seconds.

    Raises TimeoutError, OSError, or HTTPException where the answer is not HTTP or too long.
    """
    async with asyncio.timeout(limit):
        reader, writer = await asyncio.open_connection(target.connect_address, target.port, limit=LARGEST_ANSWER)
        try:
            writer.write(_request(target, method, path, body))
            return parse(await _read(reader), method)
        finally:
            # Close at once: the rest of an answer that came too late is not read.
            writer.transport.abort()


def _request(target: Target, method: str, path: str, body: Body | None) -> bytes:
    data = b"" if body is None else body.data
    fields = {**headers(target, body), "Host": str(target), "Connection": "close", "Content-Length": str(len(data))}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return "\r\n".join(lines).encode() + data


async def _read(reader: asyncio.StreamReader) -> bytes:
    """Read until the engine closes the connection. Raises HTTPException above LARGEST_ANSWER."""
    received = bytearray()
    while chunk := await reader.read(65536):
        received += chunk
        if len(received) > LARGEST_ANSWER:
            raise http.client.HTTPException(f"answers more than {LARGEST_ANSWER} bytes")
    return bytes(received)


def parse(raw: bytes, method: str) -> Answer:
    """Parse an answer. Raises ConnectionError where the answer is empty, HTTPException where it is no HTTP."""
    if not raw:
        raise ConnectionResetError("closed the connection without an answer")
    response = http.client.HTTPResponse(_Received(raw), method=method)  # type: ignore[arg-type]
    try:
        response.begin()
        return Answer(response.status, response.read())
    except ValueError as error:
        raise http.client.HTTPException(f"no HTTP: {error}") from error
