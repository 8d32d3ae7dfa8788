# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One end of a connection between two supervisors: handshake, beats and silence. Private to the collection. Pure.

The caller moves the bytes and passes the time. No call here blocks, so one thread serves all connections.
"""

from __future__ import annotations

from .messages import Beat, Hello, Message, decode, encode
from .wire import FOLLOWER, LEADER, Lines, Seal, WireError, connection_key, opening, read_opening

BEAT = 1.0
"""Seconds between two beats."""

SILENCE = 10.0
"""Seconds without a line after which the other end counts as gone."""

HELLO_LIMIT = 5.0
"""Seconds within which a new connection must have proved that it has the key."""

LONGEST_QUEUE = 64 << 10
"""Most bytes that wait for an end that does not read. The beats of a minute take less than a tenth of them."""


class LinkError(Exception):
    """The connection is of no more use. The message says what the other end did."""


class Link:
    """One end. `output` are the bytes to send; the caller removes what it has sent."""

    def __init__(self, end: str, key: bytes, nonce: str, now: float, hello: Hello | None = None) -> None:
        """`nonce` must be new and random. A follower says `hello` as soon as it has the leader's nonce."""
        self.output = bytearray()
        self.proved = False
        """Whether the other end has proved that it has the key."""
        self._end = end
        self._key = key
        self._nonce = nonce
        self._hello = hello
        self._lines = Lines()
        self._sender: Seal | None = None
        self._reader: Seal | None = None
        self._began = now
        self._heard = now
        self._beat = now
        if end == LEADER:
            self.output += opening(nonce)

    def receive(self, data: bytes, now: float) -> list[Message]:
        """The messages in received bytes, without beats. Raises LinkError."""
        try:
            return [message for line in self._lines.feed(data) if (message := self._line(line, now))]
        except (WireError, ValueError) as error:
            raise LinkError(str(error)) from error

    def send(self, message: Message) -> None:
        """Queue a message. Before the handshake there is no known receiver: raises LinkError."""
        if self._sender is None:
            raise LinkError("is not connected yet")
        self.output += self._sender.close(encode(message))

    def tick(self, now: float) -> None:
        """Queue a beat if one is due. Raises LinkError if the other end is silent or does not read."""
        if not self.proved and now - self._began >= HELLO_LIMIT:
            raise LinkError(f"did not prove itself within {HELLO_LIMIT:.0f} s")
        if now - self._heard >= SILENCE:
            raise LinkError(f"was silent for {SILENCE:.0f} s")
        if self.proved and now - self._beat >= BEAT:
            self._beat = now
            self.send(Beat())
        if len(self.output) > LONGEST_QUEUE:
            raise LinkError("does not read what it is sent")

    def due(self) -> float:
        """When tick() must be called next."""
        return min(self._heard + SILENCE, self._beat + BEAT) if self.proved else self._began + HELLO_LIMIT

    def _line(self, line: bytes, now: float) -> Message | None:
        if self._reader is None:
            self._open(read_opening(line))
            return None
        message = decode(self._reader.open(line))
        # A stranger that sends lines without a seal is not heard: only sealed lines end the silence.
        self.proved, self._heard = True, now
        return None if isinstance(message, Beat) else message

    def _open(self, nonce: str) -> None:
        nonces = (self._nonce, nonce) if self._end == LEADER else (nonce, self._nonce)
        key = connection_key(self._key, *nonces)
        other = FOLLOWER if self._end == LEADER else LEADER
        self._sender, self._reader = Seal(key, self._end), Seal(key, other)
        if self._hello is not None:
            self.output += opening(self._nonce)
            self.send(self._hello)
