# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The store of models on a node. Private to the collection.

STORE/NAME/REVISION is a published model: complete, verified, never modified. A model in transfer lies in
STORE/.incoming/NAME-REVISION and gets its final name by one rename. So an engine can never load an incomplete model.
A damaged revision is replaced as a whole, because an engine may have its files mapped.
"""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ..core import files as node_files
from ..core.problems import InputError, Problem
from ..core.sizes import counted, human
from ..models.manifest import MANIFEST, REVISION_DIGITS, Manifest
from .hashes import HashCache

INCOMING = ".incoming"
BROKEN = ".broken-"
"""In the name of a damaged directory, between the revision and the time of its replacement."""

COPY_BYTES = 1 << 30
"""Bytes that the kernel copies in one call."""

COPY_THREADS = 4
"""Files that are copied at a time. One reader alone cannot use the full speed of NVMe or of a file server."""


@dataclass(frozen=True)
class Plan:
    """What is missing until one model is published. Sizes in bytes."""

    name: str
    manifest: Manifest
    path: Path
    incoming: Path
    damage: Sequence[str]
    """The faults of the published revision."""
    donors: Mapping[str, Path]
    """Intact files of a damaged revision, which are linked instead of copied again."""
    missing: Mapping[str, int]
    """Missing files, with the bytes of each that have not arrived yet."""

    @property
    def published(self) -> bool:
        return not self.missing and not self.damage and self.path.is_dir()

    @property
    def missing_bytes(self) -> int:
        return sum(self.missing.values())

    @property
    def summary(self) -> str:
        """One line for a message."""
        files = counted(len(self.missing), "file")
        return f"{self.name} {self.manifest.revision}: {files}, {human(self.missing_bytes)} to copy"

    def filters(self) -> list[str]:
        """Arguments with which rsync copies only the missing files, quoted for a command line."""
        directories = {parent.as_posix() for path in self.missing for parent in Path(path).parents if parent.name}
        includes = [f"/{_literal(directory)}/" for directory in sorted(directories)]
        includes += [f"/{_literal(path)}" for path in sorted(self.missing)]
        return [*(shlex.quote(f"--include={pattern}") for pattern in includes), shlex.quote("--exclude=*")]


class Store:
    """The store below `root`."""

    def __init__(self, root: Path, cache: HashCache, verify: bool = False) -> None:
        self.root = root
        self.cache = cache
        self.verify = verify

    def plan(self, name: str, manifest: Manifest) -> Plan:
        """Compare the published revision with the manifest.

        Reads only files that changed since the last comparison, or all files with `verify`.
        """
        path = self.root / name / manifest.revision
        incoming = self.root / INCOMING / f"{name}-{manifest.revision}"
        damage, donors = self._compare(path, manifest)
        for aside in _aside(path):
            donors = {**self._compare(aside, manifest)[1], **donors}
        published = path.is_dir() and not damage
        missing = {
            relative: max(0, file.size - _size(incoming / relative))
            for relative, file in manifest.files.items()
            if not published and relative not in donors
        }
        return Plan(name, manifest, path, incoming, damage, donors, missing)

    def publish(self, plan: Plan, source: Path | None = None) -> None:
        """Verify the arrived files and publish the model. With a `source` on this node, first copy its files.

        Raises InputError with every missing or wrong file. Wrong files are removed, so that the next run transfers
        them again.
        """
        make_directory(plan.incoming)
        if source:
            _copy_all(source, plan)
        self._verify(plan)
        for relative, donor in plan.donors.items():
            _replace_by_link(donor, plan.incoming / relative)
        _tidy(plan.incoming, plan.manifest)
        node_files.write_json(plan.incoming / MANIFEST, plan.manifest.to_dict())
        put_in_place(plan.incoming, plan.path)
        # Remove files of abandoned transfers of other revisions.
        for abandoned in plan.incoming.parent.glob(f"{plan.name}-{'[0-9a-f]' * REVISION_DIGITS}"):
            shutil.rmtree(abandoned)
        for relative, file in plan.manifest.files.items():
            self.cache.keep(plan.path / relative, file.sha256)

    def _compare(self, path: Path, manifest: Manifest) -> tuple[list[str], dict[str, Path]]:
        """The damage of a published directory, and its intact files."""
        if not path.is_dir():
            return [], {}
        damage: list[str] = []
        same_size: dict[str, Path] = {}
        for relative, file in manifest.files.items():
            found = path / relative
            if not found.is_file() or found.is_symlink():
                damage.append(f"{found} is missing")
            elif found.stat().st_size != file.size:
                damage.append(f"{found}: expected {file.size:,} bytes, found {found.stat().st_size:,}")
            else:
                same_size[relative] = found
        hashes = self.cache.hashes(same_size.values(), self.verify)
        intact = {}
        for relative, found in same_size.items():
            if hashes[found] == manifest.files[relative].sha256:
                intact[relative] = found
            else:
                damage.append(
                    f"{found} was altered: expected sha256 {manifest.files[relative].sha256}, found {hashes[found]}"
                )
        strays = set(walk(path)) - set(manifest.files) - {MANIFEST}
        damage += [f"{path / stray} does not belong there" for stray in sorted(strays)]
        try:
            recorded = node_files.read_json(path / MANIFEST)
            if recorded is None:
                damage.append(f"{path / MANIFEST} is missing")
            elif Manifest.from_dict(recorded) != manifest:
                damage.append(f"{path / MANIFEST} belongs to another model")
        except ValueError as error:
            damage.append(f"{path / MANIFEST} cannot be used: {error}")
        return damage, intact

    def _verify(self, plan: Plan) -> None:
        """Hash the arrived files. Raises InputError for missing and wrong files."""
        arrived = {relative: plan.incoming / relative for relative in plan.missing}
        there = {relative: path for relative, path in arrived.items() if path.is_file()}
        hashes = self.cache.hashes(there.values())
        problems = []
        for relative, path in arrived.items():
            file = plan.manifest.files[relative]
            if relative not in there:
                problems.append(Problem(f"models.{plan.name}", f"{path} did not arrive: run again"))
            elif hashes[path] != file.sha256:
                size = path.stat().st_size
                path.unlink()
                problems.append(
                    Problem(
                        f"models.{plan.name}",
                        f"{path} arrived wrong and was removed: expected {file.size:,} bytes, sha256 {file.sha256}; "
                        f"found {size:,}, {hashes[path]}; the source may have changed during the transfer: run again",
                    )
                )
        if problems:
            raise InputError(problems)


def put_in_place(incoming: Path, path: Path) -> None:
    """Give a complete directory its name. Replaces a link of this name, and removes a damaged directory afterwards."""
    make_directory(path.parent)
    if path.is_symlink():
        path.unlink()
    elif path.exists():
        _move_aside(path)
    incoming.rename(path)
    sync(path.parent)
    for directory in _aside(path):
        shutil.rmtree(directory)


def put_link_in_place(path: Path, target: str) -> bool:
    """Make a name a link to a target. Removes a damaged directory of this name afterwards. Returns whether the link
    changed. Raises OSError."""
    make_directory(path.parent)
    if path.is_dir() and not path.is_symlink():
        _move_aside(path)
    changed = node_files.link(path, target)
    for directory in _aside(path):
        shutil.rmtree(directory)
    return changed


def _move_aside(path: Path) -> None:
    path.rename(path.with_name(f"{path.name}{BROKEN}{int(time.time())}"))


def _aside(path: Path) -> list[Path]:
    """Renamed damaged directories of a revision. One can remain if a repair was interrupted."""
    return sorted(path.parent.glob(f"{path.name}{BROKEN}*"))


def make_directory(path: Path) -> None:
    """Create a directory and its parents, readable by all users with every umask."""
    for parent in [*reversed(path.parents), path]:
        if not parent.is_dir():
            parent.mkdir()
            parent.chmod(0o755)


def walk(root: Path) -> Iterator[str]:
    """The relative paths of the files below a directory, without hidden files and directories."""
    for directory, subdirectories, names in os.walk(root):
        subdirectories[:] = [name for name in subdirectories if not name.startswith(".")]
        for name in names:
            if not name.startswith("."):
                yield Path(directory, name).relative_to(root).as_posix()


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _literal(path: str) -> str:
    """A path as a pattern of rsync's filters. Backslashes are special only in patterns with a wildcard."""
    if not any(character in path for character in "*?["):
        return path
    return "".join(f"\\{character}" if character in "\\*?[" else character for character in path)


def _copy_all(source: Path, plan: Plan) -> None:
    """Copy the missing files within the node, COPY_THREADS at a time. Raises OSError."""
    for relative in plan.missing:
        (plan.incoming / relative).parent.mkdir(parents=True, exist_ok=True)

    def copy(relative: str) -> None:
        _copy(source / relative, plan.incoming / relative, plan.manifest.files[relative].size)

    with ThreadPoolExecutor(max_workers=COPY_THREADS) as pool:
        # The largest first, so that all threads end at about the same time.
        list(pool.map(copy, sorted(plan.missing, key=lambda relative: -plan.missing[relative])))


def _copy(source: Path, target: Path, size: int) -> None:
    """Copy a file within the node unless an earlier run has copied it. Shares blocks if the file system can."""
    if _size(target) == size:
        return
    with source.open("rb") as reader, target.open("wb") as writer:
        try:
            while os.copy_file_range(reader.fileno(), writer.fileno(), COPY_BYTES):
                pass
        except OSError as error:
            # The file system cannot do this, or not with another file system.
            if error.errno not in (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
                raise
            reader.seek(0)
            writer.truncate(0)
            writer.seek(0)
            shutil.copyfileobj(reader, writer, 16 << 20)
        writer.flush()
        os.fsync(writer.fileno())
        # Drop the cached pages, so that the verification reads the disk and not memory.
        os.posix_fadvise(writer.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _replace_by_link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    os.link(source, target)


def _tidy(root: Path, manifest: Manifest) -> None:
    """Keep only the model's files, make them readable by every engine, and write them to the disk."""
    for directory, subdirectories, names in os.walk(root, topdown=False):
        for name in names:
            path = Path(directory, name)
            if path.relative_to(root).as_posix() in manifest.files:
                path.chmod(0o644)
                sync(path)
            else:
                path.unlink()
        for name in subdirectories:
            path = Path(directory, name)
            if not any(path.iterdir()):
                path.rmdir()
        Path(directory).chmod(0o755)


def sync(path: Path) -> None:
    """Write a file's content, or a directory's names, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
