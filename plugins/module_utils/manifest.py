# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a model's directory holds, file by file. Private to the collection."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .model import shards
from .model.shards import FileProblem
from .node import files as node_files
from .problems import Problem

SCHEMA = 1

MANIFEST = "manifest.json"
"""The store's own file at the top of a published revision; never part of a model."""

INFO = "model_info.json"
"""Names the base of a published variant; never part of a model."""

CONFIG = "config.json"

REVISION_DIGITS = 12
"""Hexadecimal digits of a revision, as git abbreviates in large repositories."""

NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
"""A model's name becomes a directory."""

REVISION = re.compile(rf"^[0-9a-f]{{{REVISION_DIGITS}}}$")

HASH_THREADS = 4
"""One thread hashes at 1 to 2 GB/s where the processor has SHA instructions; NVMe reads several times that."""


@dataclass(frozen=True)
class File:
    """One file of a model; `size` in bytes."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """All files of a model, by path relative to its directory. `weight_bytes` counts tensors, not headers."""

    files: Mapping[str, File]
    weight_bytes: int

    @property
    def revision(self) -> str:
        """Names the content: the same files under the same names give the same revision on every machine."""
        lines = "".join(f"{file.sha256}  {file.size}  {path}\n" for path, file in sorted(self.files.items()))
        return hashlib.sha256(lines.encode()).hexdigest()[:REVISION_DIGITS]

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return sum(file.size for file in self.files.values())

    def to_dict(self) -> dict[str, Any]:
        """The value of manifest.json, and what modules hand to each other."""
        return {
            "schema": SCHEMA,
            "revision": self.revision,
            "weight_bytes": self.weight_bytes,
            "bytes": self.bytes,
            "files": {path: {"size": file.size, "sha256": file.sha256} for path, file in sorted(self.files.items())},
        }

    @classmethod
    def from_dict(cls, data: Any) -> Manifest:
        """Read what to_dict wrote. Raises ValueError where it is no manifest, or one that was edited."""
        try:
            if data["schema"] != SCHEMA:
                raise ValueError(f"has schema {data['schema']!r}, expected {SCHEMA}")
            files = {str(path): File(int(entry["size"]), str(entry["sha256"])) for path, entry in data["files"].items()}
            manifest = cls(files, int(data["weight_bytes"]))
            recorded = data["revision"]
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"is no manifest: {type(error).__name__}: {error}") from None
        if recorded != manifest.revision:
            raise ValueError(f"was edited: it says revision {recorded}, its files give {manifest.revision}")
        unsafe = [path for path in files if path.startswith("/") or ".." in Path(path).parts]
        if unsafe:
            raise ValueError(f"names a file outside of the model: {unsafe[0]}")
        return manifest


class HashCache:
    """SHA-256 by (path, size, mtime, inode), so that a second look at a model of 140 GB reads nothing."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.changed = False
        try:
            data = node_files.read_json(path) if path else None
            self.entries: dict[str, list[Any]] = dict(data["files"]) if data and data["schema"] == SCHEMA else {}
        except (KeyError, TypeError, ValueError):
            # It is only a cache: a damaged one costs a read of the models, nothing else.
            self.entries = {}

    def known(self, path: Path) -> str | None:
        """The hash of a file that was not touched since it was read."""
        entry = self.entries.get(str(path))
        return entry[-1] if entry and entry[:-1] == _stamp(path.stat()) else None

    def keep(self, path: Path, sha256: str) -> None:
        """Remember a file's hash."""
        entry = [*_stamp(path.stat()), sha256]
        if self.entries.get(str(path)) != entry:
            self.entries[str(path)] = entry
            self.changed = True

    def hashes(self, paths: Iterable[Path], verify: bool = False) -> dict[Path, str]:
        """The hashes of files; only those that changed are read, or all of them to verify.

        Raises OSError that names the file, also for one that changes while it is read.
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
        """Write the cache, without the files that are gone."""
        if self.path and self.changed:
            entries = {path: entry for path, entry in self.entries.items() if os.path.exists(path)}
            node_files.write_json(self.path, {"schema": SCHEMA, "files": entries})


@contextmanager
def hash_cache(path: Path | None, read_only: bool = False) -> Iterator[HashCache]:
    """The cache in this file, saved at the end, also after an error.

    One process has it at a time: when a play prepares a hundred nodes at once, the first hashes and the others read
    what it found.
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


def build(root: Path, where: str, cache: HashCache, verify: bool = False) -> tuple[Manifest | None, list[Problem]]:
    """Check a model's directory and hash its files.

    Returns the manifest, or None with every problem found: a model with problems is not hashed.
    """
    if not root.is_dir():
        problem = "is not a directory" if root.exists() else "does not exist"
        return None, [Problem(where, f"{root} {problem}: put the model there, or correct the path")]
    files, problems = find_files(root, where)
    weight_bytes, more = check(root, files, where)
    problems += more
    if problems:
        return None, problems
    try:
        hashes = cache.hashes(files.values(), verify)
    except OSError as error:
        return None, [Problem(where, _reason(error))]
    described = {name: File(path.stat().st_size, hashes[path]) for name, path in files.items()}
    return Manifest(described, weight_bytes), []


def find_files(root: Path, where: str) -> tuple[dict[str, Path], list[Problem]]:
    """The files of a model by relative path, links resolved.

    Hidden files are left out (.git, .gitattributes, .cache), and the store's own manifest. Links may lead to files of
    the same directory, of the same repository where the directory is a snapshot in a hub cache, and of the base where
    it is a variant; a link that leads elsewhere is a problem, for what lies there is not the model's.
    """
    boundaries = _boundaries(root)
    files: dict[str, Path] = {}
    problems: list[Problem] = []

    def wrong(path: Path, message: str) -> None:
        problems.append(Problem(where, f"{path} {message}"))

    def unreadable(error: OSError) -> None:
        problems.append(Problem(where, _reason(error)))

    for directory, subdirectories, names in os.walk(root, onerror=unreadable):
        subdirectories[:] = sorted(name for name in subdirectories if not name.startswith("."))
        for name in subdirectories:
            if os.path.islink(os.path.join(directory, name)):
                wrong(Path(directory, name), "is a link to a directory: put the directory itself there")
        for name in sorted(names):
            path = Path(directory, name)
            relative = path.relative_to(root).as_posix()
            if name.startswith(".") or relative == MANIFEST:
                continue
            if not relative.isprintable():
                wrong(path.parent, f"holds a file with an unprintable name: {name!r}; rename it")
                continue
            try:
                real = path.resolve(strict=True)
            except (OSError, RuntimeError):
                # Python before 3.13 reports a loop of links as RuntimeError.
                wrong(path, f"is a link to nothing: {os.readlink(path)}")
                continue
            if not any(real.is_relative_to(boundary) for boundary in boundaries):
                wrong(path, f"is a link that leaves {boundaries[0]}: {real}; put the file itself there")
            elif not stat.S_ISREG(real.stat().st_mode):
                wrong(path, "is no regular file: remove it")
            elif not os.access(real, os.R_OK):
                wrong(path, "cannot be read: give the user that runs this permission")
            else:
                files[relative] = real
    return files, problems


def check(root: Path, files: Mapping[str, Path], where: str) -> tuple[int, list[Problem]]:
    """Whether a model is complete: configuration, index, every shard. Only headers are read.

    Returns the bytes of its weights and every problem found.
    """
    problems: list[FileProblem] = []
    if CONFIG not in files:
        problems.append(FileProblem(CONFIG, "is missing: a model needs its configuration"))
    elif message := shards.read_json(files[CONFIG])[1]:
        problems.append(FileProblem(CONFIG, message))
    found = shards.read(files)
    return sum(header.weight_bytes for header in found.loaded.values()), [
        Problem(where, f"{root / problem.file} {problem.message}") for problem in [*problems, *found.problems]
    ]


def human(size: int) -> str:
    """A size in bytes as people read it."""
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << power:
            return f"{size / (1 << power):.1f} {unit}"
    return f"{size} bytes"


def base_of(root: Path) -> Path | None:
    """The directory that a published variant has links to; None where it is none, or does not tell."""
    try:
        base = node_files.read_json(root / INFO)["base"]
        name, revision = str(base["name"]), str(base["revision"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    safe = NAME.match(name) and REVISION.match(revision)
    return root.parent.parent / name / revision if safe else None


def _boundaries(root: Path) -> list[Path]:
    """How far links may lead: the directory; in a hub cache (REPOSITORY/snapshots/REVISION) the repository."""
    real = root.resolve()
    base = base_of(real)
    # The base of a variant on the fast path may be a link.
    bases = [Path(os.path.realpath(base))] if base else []
    return [real.parent.parent if real.parent.name == "snapshots" else real, *bases]


def _sha256(path: Path) -> str:
    """Raises OSError, also where the file changes while it is read."""
    with path.open("rb") as stream:
        before = _stamp(os.fstat(stream.fileno()))
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        if _stamp(os.fstat(stream.fileno())) != before:
            raise OSError(f"{path} changed while it was read: wait until it is complete, then run again")
    return digest


def _stamp(status: os.stat_result) -> list[int]:
    return [status.st_size, status.st_mtime_ns, status.st_ino]


def _reason(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)
