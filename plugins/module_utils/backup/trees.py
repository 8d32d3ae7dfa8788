# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists, copies and compares files with their attributes. Private to the collection."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path


@dataclass(frozen=True)
class Entry:
    """A file, directory or link. A directory has only mode and owner: its content has entries of its own."""

    kind: str
    """`file`, `directory` or `link`."""
    mode: int
    uid: int
    gid: int
    size: int = 0
    mtime_ns: int = 0
    ctime_ns: int = 0
    """Changes with every change of content, mode or owner, and cannot be set."""
    inode: int = 0
    target: str = ""
    """Target of a link; empty for files and directories."""


Listing = dict[str, Entry]
"""Entries by path relative to a root; the root itself is the empty path."""


def entry(path: Path) -> Entry | None:
    """The entry at a path; None for sockets, pipes and devices, which cannot be saved. Raises OSError."""
    found = path.lstat()
    mode = stat.S_IMODE(found.st_mode)
    if stat.S_ISDIR(found.st_mode):
        return Entry("directory", mode, found.st_uid, found.st_gid)
    times = (found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
    if stat.S_ISLNK(found.st_mode):
        return Entry("link", mode, found.st_uid, found.st_gid, 0, *times, os.readlink(path))
    if stat.S_ISREG(found.st_mode):
        return Entry("file", mode, found.st_uid, found.st_gid, found.st_size, *times)
    return None


def walk(base: Path, root: Path, skip: Callable[[str], bool] = lambda path: False) -> Listing:
    """All entries at and below base, by path relative to root. Files that vanish meanwhile are not in the result.

    `skip` is called with each relative path. Raises OSError.
    """
    found: Listing = {}
    waiting = [base]
    while waiting:
        path = waiting.pop()
        relative = _relative(path, root)
        if skip(relative):
            continue
        try:
            one = entry(path)
            if one is None:
                continue
            found[relative] = one
            if one.kind == "directory":
                waiting += [Path(child.path) for child in os.scandir(path)]
        except (FileNotFoundError, NotADirectoryError):
            continue
    return found


def listing(root: Path, patterns: Iterable[str], exclude: Iterable[str] = ()) -> Listing:
    """All entries below a root that match absolute shell patterns, with the content of directories. Raises OSError."""
    excluded = [pattern.strip("/") for pattern in exclude]

    def skip(relative: str) -> bool:
        return any(fnmatch(relative, pattern) for pattern in excluded)

    found: Listing = {}
    for pattern in patterns:
        for path in sorted(root.glob(pattern.strip("/"))):
            found.update(walk(path, root, skip))
    return found


def parents(paths: Iterable[str]) -> list[str]:
    """The parent directories of relative paths, each directory after its own parent, without the root."""
    found = {str(parent) for path in paths for parent in Path(path).parents if path and str(parent) != "."}
    return sorted(found)


def copy(source: Path, destination: Path, one: Entry, owner: tuple[int, int] | None = None) -> None:
    """Copy an entry with mode, owner and time. A directory is copied without content and time. Raises OSError."""
    uid, gid = owner or (one.uid, one.gid)
    if one.kind == "link":
        os.symlink(one.target, destination)
        os.chown(destination, uid, gid, follow_symlinks=False)
        os.utime(destination, ns=(one.mtime_ns, one.mtime_ns), follow_symlinks=False)
        return
    if one.kind == "directory":
        destination.mkdir(mode=0o700, exist_ok=True)
    else:
        # Private until chmod below sets the original mode.
        handle = os.open(destination, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        reader = os.open(source, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(handle, "wb") as output, os.fdopen(reader, "rb") as stream:
            shutil.copyfileobj(stream, output, 1 << 20)
            output.flush()
            os.fsync(output.fileno())
    os.chown(destination, uid, gid)
    os.chmod(destination, one.mode)
    if one.kind == "file":
        os.utime(destination, ns=(one.mtime_ns, one.mtime_ns))


@dataclass(frozen=True)
class Difference:
    """How the node differs at a path: `missing`, `kind`, or some of `content`, `target`, `mode`, `owner`."""

    path: str
    differs: tuple[str, ...]


Owner = Callable[[Entry], tuple[int, int]]


def own(one: Entry) -> tuple[int, int]:
    """The saved owner, unchanged."""
    return one.uid, one.gid


def compare(saved: Listing, saved_root: Path, live_root: Path, owner: Owner = own) -> list[Difference]:
    """The paths where the live files differ from the saved files. Raises OSError."""
    found = []
    replaced: set[Path] = set()
    for path in sorted(saved):
        one = saved[path]
        if not replaced.isdisjoint(Path(path).parents):
            # The entry above is of another kind, such as a link. A restore replaces that entry by an empty directory.
            found.append(Difference(path, ("missing",)))
            continue
        try:
            live = entry(live_root / path)
        except (FileNotFoundError, NotADirectoryError):
            found.append(Difference(path, ("missing",)))
            continue
        if live is None or live.kind != one.kind:
            found.append(Difference(path, ("kind",)))
            replaced.add(Path(path))
            continue
        words = []
        if one.kind == "link" and live.target != one.target:
            words.append("target")
        if one.kind == "file" and not _same_content(saved_root / path, live_root / path, one.size, live.size):
            words.append("content")
        if one.kind != "link" and live.mode != one.mode:
            words.append("mode")
        if (live.uid, live.gid) != owner(one):
            words.append("owner")
        if words:
            found.append(Difference(path, tuple(words)))
    return found


def _same_content(first: Path, second: Path, *sizes: int) -> bool:
    if len(set(sizes)) > 1:
        return False
    with first.open("rb") as one, second.open("rb") as other:
        while part := one.read(1 << 20):
            if part != other.read(len(part)):
                return False
        return not other.read(1)


def _relative(path: Path, root: Path) -> str:
    relative = str(path.relative_to(root))
    return "" if relative == "." else relative
