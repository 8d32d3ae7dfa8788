# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which packages of a node have newer versions, and which may be updated. Private to the collection; pure."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ..debian.apt_packages import Installed

LINE = re.compile(r"^Inst (?P<name>\S+)(?: \[(?P<old>[^\]]+)\])? \((?P<new>\S+) ?(?P<origins>[^\[)\n]*)", re.M)
"""A line of `apt-get --simulate`: ``Inst curl [7.88-1] (7.88-2 Debian-Security:12/stable-security [amd64])``."""

REMOVED = re.compile(r"^Remv (\S+)", re.M)

ALL, SECURITY, NONE = "all", "security", "none"
MODES = (SECURITY, ALL, NONE)


@dataclass(frozen=True)
class Update:
    """A package that gets another version. `old` is empty for a new package."""

    name: str
    old: str
    new: str
    labels: tuple[str, ...] = ()
    """Labels of the archives with the new version, such as Debian-Security."""

    def __str__(self) -> str:
        return f"{self.name} {self.old or '(new)'} -> {self.new}"


def parse(output: str) -> list[Update]:
    """The updates that a simulation would install."""
    return [
        Update(
            found["name"].partition(":")[0],
            found["old"] or "",
            found["new"],
            tuple(origin.partition(":")[0].strip() for origin in found["origins"].split(",") if origin.strip()),
        )
        for found in LINE.finditer(output)
    ]


def removals(output: str) -> list[str]:
    """The names of the packages that a simulation would remove."""
    return [name.partition(":")[0] for name in REMOVED.findall(output)]


def wanted(updates: Iterable[Update], mode: str, labels: Collection[str]) -> list[Update]:
    """The updates to install: all, or those of archives with these labels.
    Leaves out new packages, which only other packages need."""
    if mode == NONE:
        return []
    return [one for one in updates if one.old and (mode == ALL or set(one.labels) & set(labels))]


def objections(updates: Iterable[Update], removed: Iterable[str], held: Collection[str]) -> list[str]:
    """Why a simulated change must not happen: it would remove a package, or change a package on hold."""
    found = [f"it would remove {name}" for name in removed]
    return found + [f"it would change {one.name}, which is on hold" for one in updates if one.name in held]


def released(installed: Mapping[str, Installed], patterns: Collection[str]) -> list[str]:
    """The packages on hold that this run may update."""
    return sorted(
        name
        for name, package in installed.items()
        if package.held and any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    )


def half(installed: Mapping[str, Installed]) -> list[str]:
    """The packages whose installation failed or was cut off."""
    return sorted(name for name, package in installed.items() if not package.whole)
