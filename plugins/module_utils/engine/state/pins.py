# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which release an instance must run: the inventory's, unless a pin names another release. Private to the collection.

A rollback, or a model set with `-e set=…`, pins a release in place of the inventory's. The pin holds until the
inventory asks for another release.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ...core import files
from ...core.paths import Paths
from . import releases

SCHEMA = 1


@dataclass(frozen=True)
class Pin:
    """A release that runs in place of another. `since` is ISO 8601 in UTC."""

    release: int
    instead_of: int
    reason: str
    since: str
    back: bool = False
    """Whether a rollback has set the pin, and not `-e set=…`."""

    def __str__(self) -> str:
        return f"release {self.release} instead of {self.instead_of} since {self.since}: {self.reason}"


def read(paths: Paths, name: str) -> Pin | None:
    """The pin, in force or not; None where the file is missing or damaged."""
    try:
        value = files.read_json(paths.pin(name))
    except (OSError, ValueError):
        return None
    if not isinstance(value, dict) or value.pop("schema", None) != SCHEMA:
        return None
    try:
        pin = Pin(**value)
    except TypeError:
        return None
    return pin if isinstance(pin.release, int) and isinstance(pin.instead_of, int) else None


def in_force(paths: Paths, name: str, desired: int | None) -> Pin | None:
    """The pin that replaces the inventory's release; None where no pin does."""
    pin = read(paths, name)
    kept = pin is not None and pin.instead_of == desired and pin.release in releases.numbers(paths, name)
    return pin if kept else None


def wanted_number(paths: Paths, name: str) -> int | None:
    """The release that must run; None for an instance that the inventory does not declare.

    Raises OSError, and ValueError where the desired state is damaged.
    """
    desired = releases.desired_number(paths, name)
    pin = in_force(paths, name, desired)
    return pin.release if pin else desired


def settle(paths: Paths, name: str, number: int, reason: str, now: str, *, back: bool = False) -> bool:
    """Keep a release that proved itself: pin it where the inventory asks for another.

    Returns whether the pin changed. Raises OSError, and ValueError where the desired state is damaged.
    """
    desired = releases.desired_number(paths, name)
    if desired is None or desired == number:
        return files.write(paths.pin(name), None)
    present = in_force(paths, name, desired)
    if present and present.release == number:
        return False
    return files.write_json(paths.pin(name), {"schema": SCHEMA, **asdict(Pin(number, desired, reason, now, back))})


def outdated(paths: Paths, name: str, desired: int) -> bool:
    """Whether there is a pin that has lost its force: the inventory asks for another release than when it was set."""
    pin = read(paths, name)
    return pin is not None and pin.instead_of != desired


def loosen(paths: Paths, name: str, number: int) -> bool:
    """Remove the pin unless it names the release `number`, which serves. Returns whether a pin was removed."""
    pin = read(paths, name)
    return pin is not None and pin.release != number and files.write(paths.pin(name), None)
