# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node's lock: one run at a time changes what serves. Private to the collection.

A run that is cut off leaves its lock, which names the run and its playbook. The holder renews the lock again and again,
each time with the time of the next renewal. After that time the lock is stale.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta

from ...core import files
from ...core.paths import Paths
from .drains import format_time, parse_time

SCHEMA = 1

BY_HAND = "inferctl swap"
"""The holder of the lock during a swap that no playbook has started."""


@dataclass(frozen=True)
class Lock:
    """The lock and its holder. Times are ISO 8601 in UTC."""

    run_id: str
    user: str
    host: str
    """The controller's name."""
    playbook: str
    since: str
    until: str
    """The time by which a holder that lives renews the lock."""
    process: str = ""
    """The process on the controller, in the words of playbook_process; empty where unknown."""

    def stale(self, now: datetime) -> bool:
        return parse_time(self.until) < now

    def __str__(self) -> str:
        return (
            f"run {self.run_id} of {self.playbook} by {self.user} on {self.host}, since {self.since}, last sign of life"
            f" valid until {self.until}"
        )


class Locked(Exception):
    """Another run holds the lock; the message says what to do."""

    def __init__(self, words: str, holder: Lock) -> None:
        super().__init__(words)
        self.holder = holder


def read(paths: Paths) -> Lock | None:
    """The lock, also a stale one; None where it is free. Raises ValueError where the file is damaged, OSError."""
    value = files.read_json(paths.lock)
    if value is None:
        return None
    if not isinstance(value, dict) or value.pop("schema", None) != SCHEMA:
        raise ValueError(f"{paths.lock} is no lock of schema {SCHEMA}: remove it once no playbook runs on this node")
    try:
        lock = Lock(**value)
        parse_time(lock.until)
        # Versions up to 0.1.0 recorded a file name: update_model.yml, or update-model.yml.
        if lock.playbook.endswith(".yml"):
            name = lock.playbook.removesuffix(".yml").replace("-", "_")
            lock = replace(lock, playbook=f"baremetal.inference.{name}")
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"{paths.lock} is damaged ({error}): remove it once no playbook runs on this node") from error
    return lock


def held(paths: Paths, now: datetime) -> Lock | None:
    """The lock if it is in force. A damaged lock never counts: it would have no end."""
    try:
        lock = read(paths)
    except (OSError, ValueError):
        return None
    return None if lock is None or lock.stale(now) else lock


def refuse_while_held(paths: Paths, now: datetime) -> None:
    """Refuse a run that itself takes no lock. Raises Locked, ValueError where the file is damaged, OSError."""
    found = read(paths)
    if found and not found.stale(now):
        raise Locked(f"this node is locked by {found}. {_patience(found)}.", found)


def take(
    paths: Paths, wanted: Lock, now: datetime, take_over: str = "", *, check: bool = False
) -> tuple[bool, Lock | None]:
    """Take the lock, or renew it. Returns whether the holder changed, and the lock that was taken over, if any.

    The same playbook takes a stale lock over. With `take_over`, the id of the run that holds the lock, any run takes
    the lock over. Raises Locked, ValueError where the file is damaged, OSError.
    """
    with _guard(paths, check):
        return _take(paths, wanted, now, take_over, check)


def _take(paths: Paths, wanted: Lock, now: datetime, take_over: str, check: bool) -> tuple[bool, Lock | None]:
    found = read(paths)
    adopted = None
    if found and found.run_id == wanted.run_id:
        wanted = replace(wanted, since=found.since)
    elif found:
        if found.run_id != take_over and not (found.stale(now) and found.playbook == wanted.playbook):
            raise Locked(_refusal(found, wanted, now), found)
        adopted = found
    if not check:
        files.write_json(paths.lock, {"schema": SCHEMA, **asdict(wanted)})
    return found is None or adopted is not None, adopted


def _refusal(found: Lock, wanted: Lock, now: datetime) -> str:
    if not found.stale(now):
        advice = _patience(found)
    elif found.playbook == BY_HAND:
        advice = (
            "The swap was cut off, or has ended without releasing the lock: inferctl status shows which. Then:"
            f" {wanted.playbook} with -e take_lock={found.run_id}"
        )
    else:
        advice = (
            f"The run has given no sign of life since. Run {found.playbook} again, which goes on from where it stopped"
        )
        # inferctl swap has no option for that.
        if wanted.playbook != BY_HAND:
            advice += (
                f"; or, if nothing of that run must be finished, {wanted.playbook} with -e take_lock={found.run_id}"
            )
    return f"this node is locked by {found}. {advice}."


def _patience(found: Lock) -> str:
    if found.playbook == BY_HAND:
        return "Wait: a swap ends by itself, and inferctl status shows its step"
    return (
        f"Wait until that run ends. If the run was killed: run {found.playbook} again, which goes on from where it"
        f" stopped, with -e take_lock={found.run_id}"
    )


def release(paths: Paths, run_id: str, *, check: bool = False) -> bool:
    """Release the lock, if this run holds it. Returns whether this run held it. Raises ValueError and OSError."""
    with _guard(paths, check):
        found = read(paths)
        if found is None or found.run_id != run_id:
            return False
        if not check:
            files.write(paths.lock, None)
        return True


@contextmanager
def _guard(paths: Paths, check: bool) -> Iterator[None]:
    """Keep other processes from taking or releasing the lock until this process has written it. Raises OSError."""
    if check:
        yield
        return
    paths.state.mkdir(parents=True, exist_ok=True)
    with paths.lock_guard.open("w", encoding="ascii") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def until(now: datetime, seconds: float) -> str:
    """The time `seconds` after `now`, as a lock records its end."""
    return format_time(now + timedelta(seconds=seconds))
