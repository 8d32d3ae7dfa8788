# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies the configuration as it was at one moment. Private to the collection.

ext4 and xfs have no snapshots. Instead, all files are inspected, copied, and inspected again: the list of files, and
size, mtime, ctime and inode of each file. If both inspections are equal, no file changed between them, and the copy
shows one moment. If they differ, all files are copied again.
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
    str(Paths().state / name)
    for name in ("lock", ".lock.guard", "probe", "starts", "swap", "drain", "gang", "gang-move", "gateway.json")
)
"""State of the moment, such as locks, drains and the states of gangs. It would be wrong after a restore, and it changes
all the time."""

TRIES = 10

SETTLE_SECONDS = 0.02
"""Longer than a tick of the clock behind ctime: a change after the first inspection then has another ctime."""

PAUSE_SECONDS = 1.0
"""Pause before the next try, in seconds."""


class StagingError(Exception):
    """The copy failed. The message says why, and what to do."""


@dataclass(frozen=True)
class Staged:
    """Content of the copy. `bytes` is the total size of its files, `tries` the number of copies that were made."""

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
    """Copy the matching paths to `destination`, which is emptied first. Raises StagingError, OSError."""
    excluded = [*MOMENTARY, *exclude]
    for tries in range(1, TRIES + 1):
        before = trees.listing(root, patterns, excluded)
        # First, so that an earlier copy takes no space from this one.
        shutil.rmtree(destination, ignore_errors=True)
        _refuse_too_much(before, destination, max_bytes)
        sleep(SETTLE_SECONDS)
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
        f"files changed during the copy in each of {TRIES} tries:"
        f" {', '.join(f'/{path}' for path in touched[:5])}. If they change all the time, exclude them by backup_exclude"
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
            f"the files to save have {size >> 20} MiB, more than backup_max_mib ({max_bytes >> 20}) allows. The largest"
            f" files: {named}. Do not save models: exclude such files by backup_exclude"
        )
    above = next(parent for parent in destination.parents if parent.exists())
    free = os.statvfs(above)
    if size > free.f_bavail * free.f_frsize:
        raise StagingError(
            f"the files to save have {size >> 20} MiB, but {above} has no space for a copy. Exclude files by"
            f" backup_exclude. The largest files: {named}"
        )
