# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the journal's vacuum and logrotate would remove, and what they removed. Private to the collection; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

UNITS = {"B": 0, "K": 10, "M": 20, "G": 30, "T": 40}
"""Exponents of 2 for the units of sizes in journalctl's output."""

FREED = re.compile(r"Vacuuming done, freed ([0-9.]+)([BKMGT]?) of archived journals")

STATUS = re.compile(r'^"(?P<path>.+)" (?P<time>\S+)$', re.M)
"""A line of logrotate's state file."""

CONSIDERED = re.compile(r"^considering log (\S+)$")

ROTATES = "log needs rotating"


@dataclass(frozen=True)
class Journal:
    """A file of the journal. `age` is in seconds since the last write. A vacuum removes archived files only."""

    path: str
    bytes: int
    age: float
    archived: bool


def vacuum(files: Iterable[Journal], max_bytes: int, max_age: float) -> list[Journal]:
    """The files that a vacuum to this size and age removes, oldest first. 0 is no limit.

    Source: journalctl(1), --vacuum-size=, --vacuum-time=.
    """
    everything = sorted(files, key=lambda one: -one.age)
    left = sum(one.bytes for one in everything)
    going = []
    for one in (one for one in everything if one.archived):
        if (max_age and one.age > max_age) or (max_bytes and left > max_bytes):
            going.append(one)
            left -= one.bytes
    return going


def freed(output: str) -> int:
    """The bytes that a vacuum reports as freed."""
    return sum(round(float(number) * (1 << UNITS[unit or "B"])) for number, unit in FREED.findall(output))


def rotated(before: str, after: str) -> list[str]:
    """The logs that logrotate has rotated, by its state before and after.
    A log without a state before was not rotated."""
    known: Mapping[str, str] = dict(STATUS.findall(before))
    return sorted(path for path, time in STATUS.findall(after) if path in known and known[path] != time)


def due(debug: str) -> list[str]:
    """The logs that logrotate would rotate, by the output of --debug."""
    found, log = [], ""
    for line in debug.splitlines():
        if considered := CONSIDERED.match(line.strip()):
            log = considered[1]
        elif ROTATES in line and log:
            found.append(log)
    return sorted(set(found))
