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

ARCHIVED = re.compile(r"@(?:[0-9a-f]{32}-[0-9a-f]{16}-([0-9a-f]{16})\.journal|([0-9a-f]{16})-[0-9a-f]{16}\.journal~)$")
"""The end of the name of an archived file, and of a file that was not closed."""

FREED = re.compile(r"Vacuuming done, freed ([0-9.]+)([BKMGT]?) of archived journals")

STATUS = re.compile(r'^"(?P<path>.+)" (?P<time>\S+)$', re.M)
"""A line of logrotate's state file."""

CONSIDERED = re.compile(r"^considering log (\S+)$")

ROTATES = "log needs rotating"


@dataclass(frozen=True)
class Journal:
    """A file of the journal. `age` is in seconds. A vacuum removes archived files only."""

    path: str
    bytes: int
    age: float
    archived: bool


def vacuum(files: Iterable[Journal], max_bytes: int, max_age: float) -> list[Journal]:
    """The files that a vacuum to this size and age removes, oldest first. 0 is no limit.

    The size limits the archived files alone. Source: journalctl(1), --vacuum-size=, --vacuum-time=, and
    journal_directory_vacuum of systemd.
    """
    archived = sorted((one for one in files if one.archived), key=lambda one: -one.age)
    left = sum(one.bytes for one in archived)
    going = []
    for one in archived:
        if (max_age and one.age > max_age) or (max_bytes and left > max_bytes):
            going.append(one)
            left -= one.bytes
    return going


def began(name: str) -> float | None:
    """The time in the name of an archived file, in seconds since 1970; None if the name has no time.

    It is the time of the first entry; for a file that was not closed, the time of its end. Source: journal_file_archive
    and journal_file_dispose of systemd: microseconds in hexadecimal digits.
    """
    found = ARCHIVED.search(name)
    return int(found[1] or found[2], 16) / 1e6 if found else None


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
