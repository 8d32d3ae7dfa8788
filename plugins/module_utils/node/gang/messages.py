# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The messages between the supervisors of a gang. Private to the collection. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

LONGEST_TEXT = 300
"""Most characters of a text in a message. A message has one long text at most, which fits into a line."""


@dataclass(frozen=True)
class Message:
    """A message. Each kind is a class of its own, whose fields are texts and numbers."""


@dataclass(frozen=True)
class Beat(Message):
    """Both sides, each second: the sender lives."""


@dataclass(frozen=True)
class Hello(Message):
    """Follower: it has a fresh container and no engine, and waits for `go`."""

    node: str
    rank: int
    digest: str
    release: int
    """The follower's own number of its release."""
    detail: str
    """Why the follower could not do the leader's last Move; empty if it could."""


@dataclass(frozen=True)
class Welcome(Message):
    """Leader: it accepts the follower."""


@dataclass(frozen=True)
class Refused(Message):
    """Leader: it does not accept the follower, and closes the connection."""

    reason: str


@dataclass(frozen=True)
class Move(Message):
    """Leader: the follower has to run another release of the gang, and then say hello again. The leader closes the
    connection."""

    release: int
    """The follower's own number of the release; 0: the follower looks for a release with the digest."""
    digest: str


@dataclass(frozen=True)
class Offers(Message):
    """Follower: the releases that it keeps, by its own numbers. 0: none."""

    active: int
    current: int
    desired: int
    releases: str
    """Number and gang digest of each release, as `3:0123456789ab 4:…`."""


@dataclass(frozen=True)
class Prove(Message):
    """Leader: the gang's release has proved itself. The follower marks its own, and then offers it as current."""

    reason: str
    """Why the release stays where the inventory asks for another one; empty: it does not stay."""
    back: int
    """1 after a rollback, else 0."""


@dataclass(frozen=True)
class Go(Message):
    """Leader: all members are there. Each member starts its engine now."""

    epoch: int


@dataclass(frozen=True)
class Joined(Message):
    """Follower: its engine runs."""

    epoch: int


@dataclass(frozen=True)
class Ready(Message):
    """Leader: the gang answers requests."""

    epoch: int


@dataclass(frozen=True)
class Stopping(Message):
    """Leader: it drains its engine. Followers wait for `down`."""

    reason: str


@dataclass(frozen=True)
class Down(Message):
    """Leader: the gang has ended. Each follower kills its engine."""

    reason: str


@dataclass(frozen=True)
class Exited(Message):
    """Follower: its engine ended by itself, or did not start."""

    epoch: int
    detail: str


@dataclass(frozen=True)
class Leaving(Message):
    """Follower: its unit is being stopped. Its engine runs on until `down`, for a limited time."""

    reason: str


KINDS: dict[str, type[Message]] = {
    kind.__name__.lower(): kind
    for kind in (
        *(Beat, Hello, Welcome, Refused, Move, Offers, Prove),
        *(Go, Joined, Ready, Stopping, Down, Exited, Leaving),
    )
}

_TYPES: dict[str, type] = {"str": str, "int": int}


def encode(message: Message) -> bytes:
    """The JSON of a message, in one line. Long texts are cut."""
    values = {key: value[:LONGEST_TEXT] if isinstance(value, str) else value for key, value in vars(message).items()}
    document = {"t": type(message).__name__.lower(), **values}
    # As \uXXXX, characters beyond ASCII would take up to 12 bytes, and a long text would not fit into a line.
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")


def decode(text: bytes) -> Message:
    """Read a message. Unknown fields are left out. Raises ValueError for any other difference; its message
    says what the sender did."""
    try:
        value = json.loads(text)
    except (RecursionError, ValueError) as error:
        raise ValueError("sent a message that is no JSON") from error
    if not isinstance(value, dict) or not isinstance(value.get("t"), str) or value["t"] not in KINDS:
        raise ValueError("sent a message that this version does not support")
    kind = KINDS[value["t"]]
    return kind(**{item.name: _checked(value.get(item.name), _TYPES[str(item.type)]) for item in fields(kind)})


def _checked(value: Any, expected: type) -> Any:
    """A field of a message, with texts in one line. Raises ValueError if the field has another type."""
    # A bool is an int for isinstance(), and no number here.
    if not isinstance(value, expected) or isinstance(value, bool) != (expected is bool):
        raise ValueError("sent a message with a field of the wrong type")
    return " ".join(value.split())[:LONGEST_TEXT] if isinstance(value, str) else value
