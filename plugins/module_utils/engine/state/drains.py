# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drains: intents to keep requests away from an instance, with owner, reason and end. Private to the collection.

This file only records drains. The agent reports them to gateways, which obey.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from ...core import files
from ...core.paths import Paths

SCHEMA = 1

RECOVERY = "recovery"
"""The owner of a drain by the recovery, which drains an instance when it gives up."""

UPDATE = "update"
"""The owner of a drain by an update."""

GANG = "gang"
"""The owner of a drain that the leader of a gang records before the gang ends, because a member's unit is stopped."""

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
"""Seconds in the units of a duration."""


@dataclass(frozen=True)
class Drain:
    """An intent. Times are ISO 8601 with their zone; `until` None: until an operator or a program ends the drain."""

    owner: str
    reason: str
    since: str
    until: str | None = None

    def __str__(self) -> str:
        end = f"until {self.until}" if self.until else "until undrained"
        return f"drained by {self.owner} {end}: {self.reason}"


@dataclass(frozen=True)
class Outcome:
    """An instance after a command: the drain in force, and whether the command changed anything."""

    instance: str
    drain: Drain | None
    changed: bool


class Held(Exception):
    """Instances are drained by another owner, whose drain must stay."""

    def __init__(self, foreign: Mapping[str, Drain]) -> None:
        drained = "; ".join(f"{name} is already {drain}" for name, drain in foreign.items())
        super().__init__(f"{drained}. Nothing was changed: wait, or take the drain over with --force")


def read(paths: Paths, name: str, now: datetime) -> Drain | None:
    """The drain in force; None where there is none, or the drain has expired.

    A damaged file counts as a drain without end: its owner wanted no requests here.
    """
    path = paths.drain(name)
    try:
        value = files.read_json(path)
        if value is None and not path.exists():
            return None
        drain = _from_json(value)
        return None if drain.until and parse_time(drain.until) <= now else drain
    except (OSError, ValueError) as error:
        return Drain("unknown", f"{path} is damaged ({error}); inferctl undrain {name} removes it", "unknown")


def is_drained(paths: Paths, name: str, now: datetime) -> bool:
    """Whether a drain of the instance is in force."""
    return read(paths, name, now) is not None


def _from_json(value: Any) -> Drain:
    """Read a drain. Raises ValueError where the value is no drain of this schema."""
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        raise ValueError(f"is no drain of schema {SCHEMA}")
    owner, reason, since, until = (value.get(key) for key in ("owner", "reason", "since", "until"))
    if not (isinstance(owner, str) and isinstance(reason, str) and isinstance(since, str)):
        raise ValueError("lacks owner, reason or since")
    if until is not None and not isinstance(until, str):
        raise ValueError("until is no text")
    return Drain(owner, reason, since, until)


def drain(
    paths: Paths, names: Iterable[str], wanted: Drain, *, force: bool = False, check: bool = False
) -> list[Outcome]:
    """Record a drain for each of these instances. `since` stays from the owner's first drain.

    With `check`, only returns what would change. Without `force`, raises Held before the first change if another owner
    has drained one of the instances. Raises OSError.
    """
    now = parse_time(wanted.since)
    present = {name: read(paths, name, now) for name in names}
    foreign = {name: found for name, found in present.items() if found and found.owner != wanted.owner}
    if foreign and not force:
        raise Held(foreign)
    outcomes = []
    for name, found in present.items():
        own = found if found and found.owner == wanted.owner else wanted
        intent = replace(wanted, since=own.since)
        path, text = paths.drain(name), files.to_json({"schema": SCHEMA, "instance": name, **asdict(intent)})
        changed = not files.same(path, text) if check else files.write(path, text)
        outcomes.append(Outcome(name, intent, changed))
    return outcomes


def undrain(paths: Paths, name: str, owner: str | None, now: datetime, *, check: bool = False) -> Outcome:
    """End a drain; with `owner`, only a drain of that owner. With `check`, only returns what would change.

    Raises OSError.
    """
    present = read(paths, name, now)
    if present is not None and owner is not None and present.owner != owner:
        return Outcome(name, present, False)
    # The file of an expired drain goes too, and does not count as a change.
    if not check:
        files.write(paths.drain(name), None)
    return Outcome(name, None, present is not None)


def names(paths: Paths) -> list[str]:
    """The instances with the file of a drain, in force or expired."""
    try:
        return sorted(path.name for path in paths.drains.iterdir() if not path.name.startswith("."))
    except OSError:
        return []


def parse_time(text: str) -> datetime:
    """Read a time in ISO 8601 with its zone. Raises ValueError, whose message says what is missing."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no time in ISO 8601, such as 2026-12-24T18:00:00+01:00") from error
    if time.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone: write {text}Z for UTC, or {text}+01:00")
    return time


def parse_duration(text: str) -> timedelta:
    """A duration such as 90s, 30m, 2h, 1d or 1h30m. Raises ValueError."""
    total = 0
    digits = ""
    for character in text:
        if character in UNITS and digits:
            total += int(digits) * UNITS[character]
            digits = ""
        elif character.isdecimal() and character.isascii():
            digits += character
        else:
            digits = "?"
            break
    if digits or not total:
        raise ValueError(f"{text!r} is no duration, such as 30m, 2h or 1h30m (units: {', '.join(UNITS)})")
    try:
        return timedelta(seconds=total)
    except OverflowError as error:
        raise ValueError(f"{text!r} is too long: write a shorter duration") from error


def format_time(time: datetime) -> str:
    """A time in the recorded form: UTC, with seconds."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
