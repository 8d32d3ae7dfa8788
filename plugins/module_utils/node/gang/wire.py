# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines of the gang's channel: their length, seal and order. Private to the collection. Pure.

Each side opens with a line that has the version and a nonce. Both nonces and the gang's key make the key of the
connection. Each further line is sealed: an HMAC over sender, number of the line, and message. So a line that was
changed, repeated, moved, or recorded from another connection has no valid seal. The channel does not encrypt: it
carries no secret.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re

VERSION = 1

LONGEST = 2048
"""Most bytes of a line. A sender of more loses the connection before the line is read further."""

NONCE_BYTES = 16

LEADER, FOLLOWER = "leader", "follower"
"""The two ends of a connection. A line of one end is not accepted as a line of the other end."""

_NONCE = re.compile(rf"[0-9a-f]{{{2 * NONCE_BYTES}}}")
_MAC_DIGITS = 64


class WireError(Exception):
    """The other end does not use this protocol, or lacks the key."""


def gang_key(secret: bytes, instance: str) -> bytes:
    """The key of a gang, from the site's secret."""
    return hmac.digest(secret, b"baremetal.inference gang\0" + instance.encode(), hashlib.sha256)


def opening(nonce: str) -> bytes:
    """The first line of each side."""
    return json.dumps({"v": VERSION, "nonce": nonce}).encode() + b"\n"


def read_opening(line: bytes) -> str:
    """The nonce of the other side's first line. Raises WireError."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or "v" not in value:
        raise WireError("does not use the protocol of gangs")
    if value["v"] != VERSION:
        version = value["v"] if isinstance(value["v"], int) else "unknown"
        raise WireError(f"uses version {version} of the protocol of gangs, and this node uses version {VERSION}")
    nonce = value.get("nonce")
    if not isinstance(nonce, str) or not _NONCE.fullmatch(nonce):
        raise WireError("sends no nonce")
    return nonce


def connection_key(key: bytes, leader_nonce: str, follower_nonce: str) -> bytes:
    """The key of one connection. Each connection has another key, since each side has made its nonce for it."""
    return hmac.digest(key, f"connection\0{leader_nonce}\0{follower_nonce}".encode(), hashlib.sha256)


class Seal:
    """Seals the lines of one end, or opens them at the other end."""

    def __init__(self, key: bytes, sender: str) -> None:
        self._key = key
        self._sender = sender
        self._number = 0

    def close(self, message: bytes) -> bytes:
        """The sealed line of the next message."""
        return self._mac(message).encode() + b" " + message + b"\n"

    def open(self, line: bytes) -> bytes:
        """The message of the next line. Raises WireError."""
        given, message = line[:_MAC_DIGITS], line[_MAC_DIGITS + 1 :]
        if not hmac.compare_digest(given, self._mac(message).encode()):
            raise WireError("has another key, or the line was changed on its way")
        return message

    def _mac(self, message: bytes) -> str:
        head = f"{self._sender}\0{self._number}\0".encode()
        self._number += 1
        return hmac.digest(self._key, head + message, hashlib.sha256).hex()


class Lines:
    """Cuts received bytes into lines."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are complete now, without their ends. Raises WireError if a line is too long."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if any(len(line) > LONGEST for line in (*lines, self._rest)):
            raise WireError(f"sends a line of more than {LONGEST} bytes")
        return lines
