# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A swap of releases that is under way, so that a run that is cut off can be finished. Private to the collection."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ...core import files
from ...core.paths import Paths

SCHEMA = 1


@dataclass(frozen=True)
class Swap:
    """From which release to which; `since` is ISO 8601 in UTC. `origin` None: nothing ran before."""

    origin: int | None
    target: int
    run_id: str
    since: str
    back: bool = False
    """Whether this is a rollback, and not an update."""


def read(paths: Paths, name: str) -> Swap | None:
    """The swap that is under way, or was cut off; None where there is none that can be understood."""
    try:
        value = files.read_json(paths.swap(name))
    except (OSError, ValueError):
        return None
    if not isinstance(value, dict) or value.pop("schema", None) != SCHEMA:
        return None
    try:
        return Swap(**value)
    except TypeError:
        return None


def begin(paths: Paths, name: str, swap: Swap) -> bool:
    """Note a swap before anything of it is done. Returns whether anything changed. Raises OSError."""
    return files.write_json(paths.swap(name), {"schema": SCHEMA, **asdict(swap)})


def end(paths: Paths, name: str) -> bool:
    """Note that a swap is over, one way or the other. Returns whether there was one. Raises OSError."""
    return files.write(paths.swap(name), None)
