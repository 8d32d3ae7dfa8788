# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a model and the names of a store's own files. Private to the collection."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core import files as node_files
from ..core.problems import Problem
from . import shards
from .shards import FileProblem

SCHEMA = 1


MANIFEST = "manifest.json"
"""The store's own file at the top of a published revision. It is not part of the model."""


INFO = "model_info.json"
"""The file that names the base of a published variant. Other models do not have it."""


CONFIG = "config.json"


REVISION_DIGITS = 12
"""Hexadecimal digits of a revision, as many as git shows in large repositories."""


NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z")
"""Valid names of models, which become names of directories."""


REVISION = re.compile(rf"^[0-9a-f]{{{REVISION_DIGITS}}}\Z")


@dataclass(frozen=True)
class File:
    """One file of a model; `size` in bytes."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """All files of a model, by path relative to its directory. `weight_bytes` counts tensors without headers."""

    files: Mapping[str, File]
    weight_bytes: int

    @property
    def revision(self) -> str:
        """A name for the content: the same files with the same names give the same revision on every machine."""
        lines = "".join(f"{file.sha256}  {file.size}  {path}\n" for path, file in sorted(self.files.items()))
        return hashlib.sha256(lines.encode()).hexdigest()[:REVISION_DIGITS]

    @property
    def bytes(self) -> int:
        """Size of all files in bytes."""
        return sum(file.size for file in self.files.values())

    def to_dict(self) -> dict[str, Any]:
        """The content of manifest.json, which modules also pass to each other."""
        return {
            "schema": SCHEMA,
            "revision": self.revision,
            "weight_bytes": self.weight_bytes,
            "bytes": self.bytes,
            "files": {path: {"size": file.size, "sha256": file.sha256} for path, file in sorted(self.files.items())},
        }

    @classmethod
    def from_dict(cls, data: Any) -> Manifest:
        """Read the result of to_dict. Raises ValueError if it is not a manifest, its revision is not that of its files,
        or a path leaves the model."""
        try:
            if data["schema"] != SCHEMA:
                raise ValueError(f"has schema {data['schema']!r}, expected {SCHEMA}")
            files = {str(path): File(int(entry["size"]), str(entry["sha256"])) for path, entry in data["files"].items()}
            manifest = cls(files, int(data["weight_bytes"]))
            recorded = data["revision"]
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"is not a manifest: {type(error).__name__}: {error}") from None
        if recorded != manifest.revision:
            raise ValueError(f"was edited: it has revision {recorded}, but its files give {manifest.revision}")
        unsafe = [path for path in files if path.startswith("/") or ".." in Path(path).parts]
        if unsafe:
            raise ValueError(f"names a file outside of the model: {unsafe[0]}")
        return manifest


def find_files(root: Path, where: str) -> tuple[dict[str, Path], list[Problem]]:
    """The files of a model by relative path, links resolved.

    Without hidden files (.git, .gitattributes, .cache) and the store's own manifest. Links may lead to files of the
    same directory; in a hub cache, of the same repository; in a variant, of its base. A link to another place is a
    problem, because its target is not part of the model.
    """
    boundaries = _boundaries(root)
    files: dict[str, Path] = {}
    problems: list[Problem] = []

    def wrong(path: Path, message: str) -> None:
        problems.append(Problem(where, f"{path} {message}"))

    def unreadable(error: OSError) -> None:
        problems.append(Problem(where, reason(error)))

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
                wrong(root, f"contains a file with an unprintable name: {relative!r}; rename it")
                continue
            try:
                real = path.resolve(strict=True)
                regular = stat.S_ISREG(real.stat().st_mode)
            except (OSError, RuntimeError):
                # Python before 3.13 reports a loop of links as RuntimeError.
                try:
                    target = os.readlink(path)
                except OSError as error:
                    # The file was removed meanwhile, or its directory must not be searched.
                    unreadable(error)
                else:
                    wrong(path, f"is a link to a missing file: {target}; put the file itself there")
                continue
            if not any(real.is_relative_to(boundary) for boundary in boundaries):
                wrong(path, f"is a link that leaves {boundaries[0]}: {real}; put the file itself there")
            elif not regular:
                wrong(path, "is not a regular file: remove it")
            elif not os.access(real, os.R_OK):
                wrong(path, "cannot be read: give the user that runs this permission")
            else:
                files[relative] = real
    return files, problems


def check(root: Path, files: Mapping[str, Path], where: str) -> tuple[int, list[Problem]]:
    """Check whether a model is complete: configuration, index, every shard. Reads only the headers of shards.

    Returns the size of its weights in bytes, and every problem.
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


def base_of(root: Path) -> Path | None:
    """The directory of the base to which a published variant has links; None if it is not a variant."""
    info = root / INFO
    try:
        # To open a FIFO would wait for its writer without end.
        if not info.is_file():
            return None
        base = node_files.read_json(info)["base"]
        name, revision = str(base["name"]), str(base["revision"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    safe = NAME.match(name) and REVISION.match(revision)
    return root.parent.parent / name / revision if safe else None


def _boundaries(root: Path) -> list[Path]:
    """The directories to which links may lead: the model's own; in a hub cache (REPOSITORY/snapshots/REVISION) the
    repository; for a variant also its base."""
    real = root.resolve()
    base = base_of(real)
    # The base of a variant on the fast path may be a link.
    bases = [Path(os.path.realpath(base))] if base else []
    return [real.parent.parent if real.parent.name == "snapshots" else real, *bases]


def reason(error: OSError) -> str:
    """A message about a file that cannot be read: its path and the cause."""
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)
