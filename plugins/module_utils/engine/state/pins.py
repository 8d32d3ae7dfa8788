# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which release an instance must run: the inventory's, unless another one is pinned. Private to the collection.

A rollback, or a model that was set for once, pins a release in the place of the inventory's. The pin holds for as long
as the inventory asks for that very release: when it changes, it has the last word again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ...core import files
from ...core.paths import Paths
from . import releases

SCHEMA = 1


@dataclass(frozen=True)
class Pin:
    """A release that runs in the place of another. `since` is ISO 8601 in UTC."""

    release: int
    instead_of: int
    reason: str
    since: str
    back: bool = False
    """Whether a rollback has brought it, and not a wish for another model."""

    def __str__(self) -> str:
        return f"release {self.release} instead of {self.instead_of} since {self.since}: {self.reason}"


def read(paths: Paths, name: str) -> Pin | None:
    """The pin, in force or not; None where there is none, or none that can be understood."""
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
    """The pin that stands in the place of the inventory's release."""
    pin = read(paths, name)
    kept = pin is not None and pin.instead_of == desired and pin.release in releases.numbers(paths, name)
    return pin if kept else None


def wanted_number(paths: Paths, name: str) -> int | None:
    """The release that must run; None for an instance that the inventory does not know.

    Raises OSError, and ValueError where the desired state is damaged.
    """
    desired = releases.desired_number(paths, name)
    pin = in_force(paths, name, desired)
    return pin.release if pin else desired


def settle(paths: Paths, name: str, number: int, reason: str, now: str, *, back: bool = False) -> bool:
    """Have a release stay that proved itself: pinned where the inventory asks for another.

    Returns whether that changed anything. Raises OSError, and ValueError where the desired state is damaged.
    """
    desired = releases.desired_number(paths, name)
    if desired is None or desired == number:
        return files.write(paths.pin(name), None)
    present = in_force(paths, name, desired)
    if present and present.release == number:
        return False
    return files.write_json(paths.pin(name), {"schema": SCHEMA, **asdict(Pin(number, desired, reason, now, back))})


def outdated(paths: Paths, name: str, desired: int) -> bool:
    """Whether there is a pin in the place of a release that the inventory does not ask for any more."""
    pin = read(paths, name)
    return pin is not None and pin.instead_of != desired


def loosen(paths: Paths, name: str, number: int) -> bool:
    """Take a pin away that is of another release than the one that serves. Returns whether there was one."""
    pin = read(paths, name)
    return pin is not None and pin.release != number and files.write(paths.pin(name), None)
