# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds and removes what a store no longer needs. Private to the collection.

The module model_clean removes a revision only if newer revisions of the same model exist and nothing names it. A
removal of models (remove.py) also removes the newest revision. Directories without a manifest and links are ignored,
because the store did not publish them.
"""

from __future__ import annotations

import math
import os
import shutil
import stat
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..core.problems import InputError, Problem
from ..debian.block_devices import Mount
from ..models.manifest import MANIFEST, REVISION
from .fast_copy import COPIES, FastStore
from .references import Revision, with_bases
from .store import BROKEN, INCOMING, make_directory

RUBBISH_AGE = 86400.0
"""Seconds after which an interrupted transfer, or a damaged revision that was replaced, may be removed."""

REMOVED = ".removed"
"""The end of the name that a revision has while it is removed."""

SHARED = (
    "nfs",
    "cifs",
    "smb",
    "ceph",
    "lustre",
    "gpfs",
    "beegfs",
    "glusterfs",
    "fuse.",
    "9p",
    "virtiofs",
    "ocfs2",
    "gfs2",
)
"""Prefixes of the types of file systems that several machines may mount at once."""


@dataclass(frozen=True)
class Item:
    """A directory with its size in bytes, and why it is kept or removed."""

    path: Path
    bytes: int
    why: str


class Cleaning:
    """The plan of what is removed from a store and its fast copies; `now` is in seconds since 1970."""

    def __init__(self, store: Path, fast: FastStore | None, now: float | None = None) -> None:
        self.store = store
        self.fast = fast
        self._now = time.time() if now is None else now
        self._going: set[Revision] = set()
        self._drops: list[Revision] = []
        self.kept: list[Item] = []
        self.superseded: list[Item] = []
        self.copies: list[Item] = []
        self.rubbish: list[Item] = []

    @property
    def freed(self) -> list[Item]:
        return [*self.superseded, *self.copies, *self.rubbish]

    def plan(
        self, keep: int, needed: Mapping[Revision, str], containers_text: str, models: Collection[str] | None = None
    ) -> None:
        """Decide which revisions are removed, of all models or only of `models`.

        Interrupted transfers, replaced damaged revisions, and copies of revisions that the store lacks are removed for
        all models. `keep` is how many of the newest revisions of each model stay. With 0, even the newest revision is
        removed if nothing needs it. Raises OSError.
        """
        published = {name: self._published(name) for name in self._names() if models is None or name in models}
        reasons: dict[Revision, str] = dict(needed)
        for name, revisions in published.items():
            for revision in revisions[:keep]:
                reasons.setdefault((name, revision), "the newest" if keep == 1 else f"one of the {keep} newest")
        reasons = with_bases(reasons, self.store)
        for name, revisions in published.items():
            for newer, revision in enumerate(revisions):
                path, why = self.store / name / revision, reasons.get((name, revision))
                if why is None:
                    self._going.add((name, revision))
                    superseded = f"superseded: {newer} newer, and " if newer else ""
                    self.superseded.append(Item(path, _size(path), f"{superseded}nothing needs it"))
                else:
                    self.kept.append(Item(path, _size(path), why))
        self._plan_copies(reasons)
        self.rubbish += [
            Item(path, _size(path), why) for path, why in self._abandoned() if str(path) not in containers_text
        ]

    def apply(self) -> None:
        """Remove what is planned. A revision is moved away first, so that no path of a revision leads to a part of it.

        Raises OSError.
        """
        for item in self.superseded:
            aside = self.store / INCOMING / f"{item.path.parent.name}-{item.path.name}{REMOVED}"
            make_directory(aside.parent)
            shutil.rmtree(aside, ignore_errors=True)
            item.path.rename(aside)
            shutil.rmtree(aside)
        if self.fast:
            for revision in self._drops:
                self.fast.drop(revision)
        for item in self.rubbish:
            shutil.rmtree(item.path)

    def _names(self) -> list[str]:
        found = self.store.iterdir() if self.store.is_dir() else ()
        return sorted(path.name for path in found if path.is_dir() and not path.name.startswith("."))

    def _published(self, name: str) -> list[str]:
        """The published revisions of a model, the newest first."""
        times = {
            path.parent.name: path.stat().st_mtime
            for path in (self.store / name).glob(f"*/{MANIFEST}")
            if REVISION.match(path.parent.name) and not path.parent.is_symlink()
        }
        return sorted(times, key=lambda revision: (times[revision], revision), reverse=True)

    def _plan_copies(self, reasons: Collection[Revision]) -> None:
        if self.fast is None:
            return
        self._drops = sorted(self._gone_from_fast(self.fast) - set(reasons))
        for revision in self._drops:
            paths = [self.fast.place(revision), self.fast.root.joinpath(COPIES, *revision)]
            there = [path for path in paths if path.is_dir() and not path.is_symlink()]
            why = "a copy of a revision that the store no longer has"
            self.copies += [Item(path, _size(path), why) for path in there or paths[:1]]

    def _gone_from_fast(self, fast: FastStore) -> set[Revision]:
        """Revisions on the fast disk that the store does not have, or will not have after the removal."""
        return {each for each in fast.revisions() if each in self._going or not self.store.joinpath(*each).is_dir()}

    def _abandoned(self) -> Iterator[tuple[Path, str]]:
        """Interrupted transfers and removals, and damaged revisions that were replaced."""
        roots = [self.store, *([self.fast.root, self.fast.root / COPIES] if self.fast else [])]
        for root in roots:
            incoming = root / INCOMING
            for path in sorted(incoming.iterdir()) if incoming.is_dir() else ():
                if path.is_dir() and not path.is_symlink() and self._now - _touched(path) > RUBBISH_AGE:
                    days = (self._now - _touched(path)) / 86400
                    kind = "removal" if path.name.endswith(REMOVED) else "transfer"
                    yield path, f"a {kind} that stopped {days:.0f} days ago"
            for path in sorted(root.glob(f"[!.]*/*{BROKEN}*")):
                revision, _mark, when = path.name.partition(BROKEN)
                old = when.isdecimal() and self._now - int(when) > RUBBISH_AGE
                if REVISION.match(revision) and old and path.with_name(revision).is_dir():
                    yield path, "a damaged revision that was replaced"


def check(store: Path, keep: int, mounts: Sequence[Mount]) -> None:
    """Refuse a store that other nodes may use, and a wrong `keep`; `mounts` are the node's. Raises InputError."""
    problems = []
    if keep < 1:
        message = "must be 1 or more, because the newest revision of a model is never removed: set model_store_keep"
        problems.append(Problem("model_clean", message, "keep", keep))
    around = [mount for mount in mounts if store.is_relative_to(mount.path)]
    # If two file systems have the same mount point, the later one hides the earlier one.
    kind = max(enumerate(around), key=lambda item: (len(item[1].path), item[0]))[1].kind if around else ""
    if kind.startswith(SHARED):
        message = (
            f"lies on {kind}, which other nodes may use, too, and this node cannot see what they need: remove "
            "models there by hand, or set model_store_path to a local disk"
        )
        problems.append(Problem("model_clean", message, "store", str(store)))
    if problems:
        raise InputError(problems)


def _size(path: Path) -> int:
    """Bytes that the removal of a directory frees. Targets of links, and files with other hard links, do not count."""
    files = [status for status in _statuses(path) if stat.S_ISREG(status.st_mode) and status.st_nlink == 1]
    return sum(status.st_size for status in files)


def _touched(path: Path) -> float:
    """The latest time at which a directory, or a file below it, was written, in seconds since 1970. Infinite for a
    directory that has vanished."""
    return max((status.st_mtime for status in _statuses(path)), default=math.inf)


def _statuses(directory: Path) -> list[os.stat_result]:
    """The statuses of a directory and of all files below it; empty if the path is no directory. Raises OSError.

    A file that vanishes meanwhile is left out: the client of a hub may still fetch files.
    """

    def refuse(error: OSError) -> None:
        if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
            raise error

    found = []
    for place, _directories, names in os.walk(directory, onerror=refuse):
        for path in (place, *(os.path.join(place, name) for name in names)):
            with suppress(FileNotFoundError):
                found.append(os.lstat(path))
    return found
