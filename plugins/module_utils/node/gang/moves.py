# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A follower's own releases: which it keeps, and how it follows its leader to another one. Private to the collection.

The leader decides which release of the gang runs. A follower moves only to a release that was staged on its own node,
and only if that release has the leader's gang digest. A move is on disk before it is made. A follower that dies in
between says hello with the release that it has, and the leader orders the same move again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from ...core import files, systemd
from ...core.paths import Paths
from ...engine import activation
from ...engine.gang.members import DIGEST_DIGITS
from ...engine.state import pins, releases
from ...engine.state.drains import format_time
from .messages import LONGEST_TEXT, Move, Offers, Prove

SCHEMA = 1

TRIES = 3
"""How often a follower moves to the same release without a pause."""

PAUSE = 60.0
"""Seconds between further moves to the same release, because each move restarts the unit."""

Say = Callable[[str], None]


class Own:
    """The releases of a follower. No method raises anything, since an exception would end an engine that serves."""

    def __init__(self, paths: Paths, name: str, number: int, say: Say, clock: Callable[[], float] = time.time) -> None:
        """`number`: the release that this process runs."""
        self._paths = paths
        self._name = name
        self._number = number
        self._say = say
        self._clock = clock
        self._digests: dict[int, str] = {}

    def offers(self) -> Offers:
        """The releases that this node keeps. A damaged release is left out: the leader must not count on it."""
        kept = {number: digest for number in self._numbers() if (digest := self._digest(number))}
        words = ""
        for number in sorted(kept, reverse=True):
            word = f"{number}:{kept[number][:DIGEST_DIGITS]}"
            if len(words) + len(word) < LONGEST_TEXT:
                words = f"{words} {word}".strip()
        active = releases.active_number(self._paths, self._name) or 0
        current = releases.current_number(self._paths, self._name) or 0
        return Offers(active, current, self._desired(), words)

    def prove(self, proof: Prove) -> None:
        """Mark the release that runs as proven, and set or remove its pin as the leader does for its own release."""
        paths, name, number = self._paths, self._name, self._number
        try:
            releases.commit(paths, name, number)
            if proof.reason:
                pins.settle(paths, name, number, proof.reason, format_time(datetime.now(UTC)), back=bool(proof.back))
            else:
                pins.loosen(paths, name, number)
        except (OSError, ValueError) as error:
            self._say(f"release {number} cannot be marked as proven: {error}")

    def move(self, wanted: Move) -> str:
        """Install the leader's release, and have systemd start the unit again with it. Returns why this is not
        possible, or an empty text."""
        number = wanted.release or self._find(wanted.digest)
        if not number or self._digest(number) != wanted.digest:
            return (
                f"has no release with the gang digest {wanted.digest[:DIGEST_DIGITS]}: run baremetal.inference.site for"
                " this node, which stages the release of the inventory (docs/gangs.md: A member is refused)"
            )
        try:
            tries = self._count(number, wanted.digest)
            if tries is None:
                tries = self._recorded().get("tries")
                return f"has moved {tries} times to release {number}, and tries again once a minute"
            self._say(f"moves to release {number}, as its leader says{f', try {tries}' if tries > 1 else ''}")
            activation.restart(self._paths, self._name, number)
        except (releases.ReleaseError, systemd.SystemdError, OSError, ValueError) as error:
            return f"cannot move to release {number}: {error}"
        return ""

    def arrived(self) -> None:
        """The leader has accepted this node: the last move is over."""
        try:
            files.write(self._paths.gang_move(self._name), None)
        except OSError as error:
            self._say(f"{self._paths.gang_move(self._name)} cannot be removed: {error}")

    def unmoved(self) -> str:
        """What a move before this process has left undone, for the first hello; empty if nothing."""
        found = self._recorded()
        if not found or found.get("release") == self._number:
            return ""
        return f"did not arrive at release {found.get('release')}"

    def _count(self, number: int, digest: str) -> int | None:
        """Record the next try of a move; None if it is too early for one. Raises OSError."""
        found = self._recorded()
        same = found.get("release") == number and found.get("digest") == digest
        tries, last = (found["tries"], found["at"]) if same else (0, 0.0)
        if tries >= TRIES and 0 <= self._clock() - last < PAUSE:
            return None
        record = {"schema": SCHEMA, "release": number, "digest": digest, "tries": tries + 1, "at": self._clock()}
        files.write_json(self._paths.gang_move(self._name), record)
        return int(tries) + 1

    def _recorded(self) -> dict[str, Any]:
        """The recorded move; empty without one, or where the file is damaged."""
        try:
            value = files.read_json(self._paths.gang_move(self._name))
        except (OSError, ValueError):
            return {}
        sound = isinstance(value, dict) and value.get("schema") == SCHEMA
        numbers = sound and all(isinstance(value.get(key), int | float) for key in ("release", "tries", "at"))
        return value if numbers else {}

    def _find(self, digest: str) -> int:
        """The release with a gang digest: the one that the inventory asks for, or else the newest; 0 without one."""
        matching = [number for number in self._numbers() if self._digest(number) == digest]
        desired = self._desired()
        return desired if desired in matching else max(matching, default=0)

    def _desired(self) -> int:
        try:
            return releases.desired_number(self._paths, self._name) or 0
        except (OSError, ValueError):
            return 0

    def _numbers(self) -> list[int]:
        try:
            return releases.numbers(self._paths, self._name)
        except OSError:
            return []

    def _digest(self, number: int) -> str:
        """The gang digest of a release that can be installed; empty without one. A release never changes."""
        if number not in self._digests:
            try:
                releases.verify(self._paths, self._name, number)
                gang = releases.load(self._paths, self._name, number).gang
            except (releases.ReleaseError, OSError):
                return ""
            self._digests[number] = gang.digest if gang else ""
        return self._digests[number]
