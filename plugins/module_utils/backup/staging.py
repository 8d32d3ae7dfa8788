# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A copy of the configuration as it was at one moment. Private to the collection.

A snapshot of the file system would be one, but ext4 and xfs have none. Instead, everything is inspected, copied, and
inspected again: size, mtime, ctime and inode of every file, and the list of files. Where both inspections are equal, no
file has changed between them, and the copy shows one moment. Where they differ, everything is copied anew.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.paths import Paths
from . import trees

MOMENTARY = tuple(
    str(Paths().state / name) for name in ("lock", ".lock.guard", "probe", "starts", "swap", "drain", "gateway.json")
)
"""What is true of a machine at a moment: brought back on another day, it would be wrong. Written all the time, too."""

TRIES = 10

SETTLE_SECONDS = 0.02
"""Longer than a tick of the clock that ctime is taken from: a change after the first look has another ctime."""

PAUSE_SECONDS = 1.0
"""Before another try."""


class StagingError(Exception):
    """There is no copy; the message says why, and what to do."""


@dataclass(frozen=True)
class Staged:
    """What the copy holds."""

    files: int
    bytes: int
    tries: int
    listing: trees.Listing


def stage(
    root: Path,
    patterns: Sequence[str],
    exclude: Sequence[str],
    destination: Path,
    max_bytes: int,
    sleep: Callable[[float], None] = time.sleep,
) -> Staged:
    """Make the copy at destination, which is made anew. Raises StagingError, OSError."""
    excluded = [*MOMENTARY, *exclude]
    for tries in range(1, TRIES + 1):
        before = trees.listing(root, patterns, excluded)
        _refuse_too_much(before, destination, max_bytes)
        sleep(SETTLE_SECONDS)
        shutil.rmtree(destination, ignore_errors=True)
        destination.mkdir(mode=0o700, parents=True)
        torn = False
        try:
            _copy(before, root, destination)
        except (FileNotFoundError, NotADirectoryError):
            torn = True
        after = trees.listing(root, patterns, excluded)
        if not torn and after == before:
            files = [one for one in before.values() if one.kind == "file"]
            return Staged(len(files), sum(one.size for one in files), tries, before)
        sleep(PAUSE_SECONDS)
    touched = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
    raise StagingError(
        f"the configuration did not hold still for a copy in {TRIES} tries: something keeps writing"
        f" {', '.join(f'/{path}' for path in touched[:5])}. Leave that out by backup_exclude"
    )


def _copy(found: trees.Listing, root: Path, destination: Path) -> None:
    for path in trees.parents(found):
        if path not in found and (above := trees.entry(root / path)):
            trees.copy(root / path, destination / path, above)
    for path in sorted(found):
        trees.copy(root / path, destination / path, found[path])


def _refuse_too_much(found: trees.Listing, destination: Path, max_bytes: int) -> None:
    size = sum(one.size for one in found.values())
    largest = sorted((path for path in found), key=lambda path: found[path].size, reverse=True)[:3]
    named = ", ".join(f"/{path} ({found[path].size >> 20} MiB)" for path in largest)
    if size > max_bytes:
        raise StagingError(
            f"{size >> 20} MiB are to be saved, more than backup_max_mib ({max_bytes >> 20}) allows. The largest:"
            f" {named}. Models have no place in it; leave out what has none by backup_exclude"
        )
    above = next(parent for parent in destination.parents if parent.exists())
    free = os.statvfs(above)
    if size > free.f_bavail * free.f_frsize:
        raise StagingError(
            f"{size >> 20} MiB are to be saved, but {above} has no space for a copy. The largest: {named}"
        )
