# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SHA-256 of files, with a cache so that unchanged files are read only once. Private to the collection."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..core import files as node_files
from ..models.manifest import SCHEMA

HASH_THREADS = 4
"""One thread hashes 1 to 2 GB/s on a processor with SHA instructions. NVMe reads several times as fast."""


class HashCache:
    """SHA-256 by path, size, mtime and inode. An unchanged model of 140 GB is not read a second time."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.changed = False
        try:
            data = node_files.read_json(path) if path else None
            self.entries: dict[str, Any] = dict(data["files"]) if data and data["schema"] == SCHEMA else {}
        except (KeyError, TypeError, ValueError):
            # A damaged cache only means that the models are read again.
            self.entries = {}

    def known(self, path: Path) -> str | None:
        """The hash of a file that did not change since it was read, else None."""
        entry = self.entries.get(str(path))
        # An entry of another form is damaged: the file is read again.
        if not isinstance(entry, list) or not entry or not isinstance(entry[-1], str):
            return None
        return entry[-1] if entry[:-1] == _stamp(path.stat()) else None

    def keep(self, path: Path, sha256: str) -> None:
        """Add a file's hash to the cache."""
        entry = [*_stamp(path.stat()), sha256]
        if self.entries.get(str(path)) != entry:
            self.entries[str(path)] = entry
            self.changed = True

    def hashes(self, paths: Iterable[Path], verify: bool = False) -> dict[Path, str]:
        """The hashes of files. Reads only changed files, or all files with `verify`.

        Raises OSError that names the file, also if a file changes while it is read.
        """
        wanted = list(paths)
        known = {path: None if verify else self.known(path) for path in wanted}
        unread = [path for path, sha256 in known.items() if sha256 is None]
        with ThreadPoolExecutor(max_workers=min(HASH_THREADS, os.cpu_count() or 1)) as pool:
            for path, sha256 in zip(unread, pool.map(_sha256, unread), strict=True):
                self.keep(path, sha256)
                known[path] = sha256
        return {path: sha256 for path, sha256 in known.items() if sha256 is not None}

    def save(self) -> None:
        """Write the cache, without files that no longer exist."""
        if self.path and self.changed:
            entries = {path: entry for path, entry in self.entries.items() if os.path.exists(path)}
            node_files.write_json(self.path, {"schema": SCHEMA, "files": entries})


@contextmanager
def hash_cache(path: Path | None, read_only: bool = False) -> Iterator[HashCache]:
    """The cache in this file, locked for one process, and saved at the end, also after an error. With `read_only`, it
    is neither locked nor saved.

    If a play prepares a hundred nodes at once, the first process hashes the files, and the other processes use its
    results.
    """
    if path is None or read_only:
        yield HashCache(path)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f".{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        cache = HashCache(path)
        try:
            yield cache
        finally:
            cache.save()


def _sha256(path: Path) -> str:
    """Raises OSError, also if the file changes while it is read."""
    with path.open("rb") as stream:
        before = _stamp(os.fstat(stream.fileno()))
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        if _stamp(os.fstat(stream.fileno())) != before:
            raise OSError(f"{path} changed while it was read: wait until it is complete, then run again")
    return digest


def _stamp(status: os.stat_result) -> list[int]:
    return [status.st_size, status.st_mtime_ns, status.st_ino]
