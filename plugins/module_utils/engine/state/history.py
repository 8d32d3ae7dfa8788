# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The releases that an instance has served with, in order. Private to the collection."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ...core import files
from ...core.paths import Paths
from . import pins, releases, swaps

SCHEMA = 1

KEPT = 50
"""The most entries that a file keeps."""


@dataclass(frozen=True)
class Served:
    """A release that has proved itself. `since` is ISO 8601 in UTC. None: not measured."""

    release: int
    since: str
    load_seconds: float | None = None
    tokens_per_second: float | None = None
    """Of a single request, measured by the acceptance probe of the swap to this release."""


def read(paths: Paths, name: str) -> list[Served]:
    """The entries, oldest first; empty where the file is missing or damaged."""
    try:
        value = files.read_json(paths.history(name))
        entries = value["served"] if value["schema"] == SCHEMA else []
        served = [Served(**entry) for entry in entries]
    except (OSError, ValueError, TypeError, KeyError):
        return []
    return served if all(map(_sound, served)) else []


def _sound(entry: Served) -> bool:
    """Whether an entry has values of the right types."""
    speeds = (entry.load_seconds, entry.tokens_per_second)
    numbers = all(speed is None or isinstance(speed, int | float) for speed in speeds)
    return isinstance(entry.release, int) and isinstance(entry.since, str) and numbers


def add(paths: Paths, name: str, entry: Served) -> bool:
    """Record that a release serves from now on. If it is the last entry already, only its measured values change.

    Returns whether anything changed. Raises OSError.
    """
    entries = read(paths, name)
    if entries and entries[-1].release == entry.release:
        last = entries.pop()
        entry = Served(
            entry.release,
            last.since,
            entry.load_seconds if entry.load_seconds is not None else last.load_seconds,
            entry.tokens_per_second if entry.tokens_per_second is not None else last.tokens_per_second,
        )
    served: list[dict[str, Any]] = [asdict(item) for item in [*entries, entry][-KEPT:]]
    return files.write_json(paths.history(name), {"schema": SCHEMA, "served": served})


def previous(paths: Paths, name: str, running: int | None) -> int | None:
    """The last release on this node that served before the running one: the target of a rollback."""
    kept = set(releases.numbers(paths, name))
    for entry in reversed(read(paths, name)):
        if entry.release != running and entry.release in kept:
            return entry.release
    return None


def back_target(paths: Paths, name: str, active: int | None, desired: int | None) -> int | None:
    """The target of a rollback. A repeated rollback has the same target.

    A release that a rollback has brought, or was about to bring, stays the target. On a node that an update has not
    reached, the target is the release that runs.
    """
    swap = swaps.read(paths, name)
    if swap and swap.step != swaps.DAMAGED:
        return swap.target if swap.back else swap.origin
    pin = pins.in_force(paths, name, desired)
    if pin and pin.back:
        return pin.release
    if not pin and desired is not None and active != desired:
        return active
    return previous(paths, name, active)


def superseded(paths: Paths, keep: int) -> list[tuple[str, int]]:
    """The releases that no rollback needs any more, by instance and number; empty where `keep` is 0.

    Each instance keeps its active, current and desired release, those of a pin and a swap, the last `keep` that served,
    and the newest `keep`. Raises OSError, and ValueError where a desired state is damaged.
    """
    return [(name, number) for name in releases.names(paths) for number in _superseded(paths, name, keep)]


def _superseded(paths: Paths, name: str, keep: int) -> list[int]:
    kept = releases.numbers(paths, name)
    if keep < 1:
        return []
    pin, swap = pins.read(paths, name), swaps.read(paths, name)
    used = {releases.active_number(paths, name), releases.current_number(paths, name)}
    used |= {releases.desired_number(paths, name)}
    used |= {pin.release, pin.instead_of} if pin else set()
    used |= {swap.origin, swap.target} if swap else set()
    served = dict.fromkeys(entry.release for entry in reversed(read(paths, name)) if entry.release in kept)
    used |= {*list(served)[:keep], *kept[-keep:]}
    return [number for number in kept if number not in used]


def last(paths: Paths, name: str, number: int) -> Served | None:
    """The entry of the last time that a release served; None where it has not served."""
    return next((entry for entry in reversed(read(paths, name)) if entry.release == number), None)
