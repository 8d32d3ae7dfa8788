# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a store no longer needs. Private to the collection.

A revision goes only where newer ones of the same model are there, and nothing names it. What the store has not
published itself, without a manifest or behind a link, is not looked at.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.problems import InputError, Problem
from ..debian.block_devices import Mount
from ..models.manifest import MANIFEST, REVISION
from .fast_copy import COPIES, FastStore
from .references import Revision, with_bases
from .store import BROKEN, INCOMING, make_directory

RUBBISH_AGE = 86400.0
"""Seconds after which an interrupted transfer is given up, and so is a damaged copy that was replaced."""

REMOVED = ".removed"

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
"""How types of file systems begin that several machines may have at once."""


@dataclass(frozen=True)
class Item:
    """A directory and what it takes, in bytes; `why` it is kept or goes."""

    path: Path
    bytes: int
    why: str


class Cleaning:
    """What may go of a store, and of its fast copies where it has any."""

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
        """Decide. `keep` is how many of the newest revisions of each model stay; of `models` alone, if given.

        With 0, those go as well that nothing supersedes. Raises OSError.
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
        """Remove it. A revision loses its name first, so that none is ever found half. Raises OSError."""
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
            why = "a copy of what the store has no more"
            self.copies += [Item(path, _size(path), why) for path in there or paths[:1]]

    def _gone_from_fast(self, fast: FastStore) -> set[Revision]:
        """What the fast disk has, and the store has not, or will not have."""
        return {each for each in fast.revisions() if each in self._going or not self.store.joinpath(*each).is_dir()}

    def _abandoned(self) -> Iterator[tuple[Path, str]]:
        """What was begun and never finished, and damaged revisions that were replaced."""
        roots = [self.store, *([self.fast.root, self.fast.root / COPIES] if self.fast else [])]
        for root in roots:
            incoming = root / INCOMING
            for path in sorted(incoming.iterdir()) if incoming.is_dir() else ():
                if path.is_dir() and not path.is_symlink() and self._now - _touched(path) > RUBBISH_AGE:
                    days = (self._now - _touched(path)) / 86400
                    yield path, f"a transfer that has not gone on for {days:.0f} days"
            for path in sorted(root.glob(f"[!.]*/*{BROKEN}*")):
                revision, _mark, when = path.name.partition(BROKEN)
                old = when.isdecimal() and self._now - int(when) > RUBBISH_AGE
                if REVISION.match(revision) and old and path.with_name(revision).is_dir():
                    yield path, "was damaged, and is replaced"


def check(store: Path, keep: int, mounts: Sequence[Mount]) -> None:
    """Whether this node alone may decide; `mounts` are all of its file systems. Raises InputError."""
    problems = []
    if keep < 1:
        message = "must be 1 or more: a model that nothing supersedes is never removed"
        problems.append(Problem("model_clean", message, "keep", keep))
    around = [mount for mount in mounts if store.is_relative_to(mount.path)]
    # Of two at one place, the later one covers the other.
    kind = max(enumerate(around), key=lambda item: (len(item[1].path), item[0]))[1].kind if around else ""
    if kind.startswith(SHARED):
        message = f"lies on {kind}, which other nodes may have, too: what they need, this one does not know"
        problems.append(Problem("model_clean", message, "store", str(store)))
    if problems:
        raise InputError(problems)


def _size(path: Path) -> int:
    """Bytes that are free once a directory is gone: neither what links lead to, nor what another name is left for."""
    files = [each.lstat() for each in path.rglob("*") if each.is_file() and not each.is_symlink()]
    return sum(status.st_size for status in files if status.st_nlink == 1) if path.is_dir() else 0


def _touched(path: Path) -> float:
    """When anything below a directory was last written, in seconds since 1970."""
    return max(each.lstat().st_mtime for each in [path, *path.rglob("*")])
