# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The store of models on a node. Private to the collection.

STORE/NAME/REVISION holds a published model: complete, verified, never modified. What is on its way lies in
STORE/.incoming/NAME-REVISION and gets its final name by one rename, so that a half-copied model can never be served.
A published revision that was damaged is replaced as a whole: an engine may have its files mapped.
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
from ..core.sizes import human
from ..models.manifest import MANIFEST, REVISION_DIGITS, Manifest
from .hashes import HashCache

INCOMING = ".incoming"
BROKEN = ".broken-"
"""Between a revision's name and the time at which it was put aside."""

COPY_BYTES = 1 << 30
"""Bytes that the kernel is asked to copy at once."""

COPY_THREADS = 4
"""Files that are copied at a time: one reader alone leaves an NVMe, or a server of files, half idle."""


@dataclass(frozen=True)
class Plan:
    """What has to happen before one model is published. Sizes in bytes."""

    name: str
    manifest: Manifest
    path: Path
    incoming: Path
    damage: Sequence[str]
    """What is wrong with the published revision."""
    donors: Mapping[str, Path]
    """Intact files of a damaged revision: they are linked, not copied again."""
    missing: Mapping[str, int]
    """Files to bring, with the bytes of each that are not there yet."""

    @property
    def published(self) -> bool:
        return not self.missing and not self.damage and self.path.is_dir()

    @property
    def missing_bytes(self) -> int:
        return sum(self.missing.values())

    @property
    def summary(self) -> str:
        """One line for people."""
        return f"{self.name} {self.manifest.revision}: {len(self.missing)} files, {human(self.missing_bytes)} to copy"

    def filters(self) -> list[str]:
        """Arguments that let rsync copy the missing files and nothing else, quoted for a command line."""
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
        """Compare what is published with the manifest. Reads file contents only where they changed since."""
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
        """Verify what has arrived and publish it; files are copied from `source` where it lies on this node.

        Raises InputError with every file that is missing or wrong; wrong ones are removed, so that the next run
        brings them again.
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
        # What an earlier, abandoned transfer of another revision has left takes space and is of no use any more.
        for abandoned in plan.incoming.parent.glob(f"{plan.name}-{'[0-9a-f]' * REVISION_DIGITS}"):
            shutil.rmtree(abandoned)
        for relative, file in plan.manifest.files.items():
            self.cache.keep(plan.path / relative, file.sha256)

    def _compare(self, path: Path, manifest: Manifest) -> tuple[list[str], dict[str, Path]]:
        """What is wrong with a published directory, and its intact files."""
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
                damage.append(f"{path / MANIFEST} is another model's")
        except ValueError as error:
            damage.append(f"{path / MANIFEST} cannot be used: {error}")
        return damage, intact

    def _verify(self, plan: Plan) -> None:
        """Hash what was brought. Raises InputError."""
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
                        f"found {size:,}, {hashes[path]}; the source may have changed meanwhile: run again",
                    )
                )
        if problems:
            raise InputError(problems)


def put_in_place(incoming: Path, path: Path) -> None:
    """Give a complete directory its name; one that was damaged goes when the new one is in its place."""
    make_directory(path.parent)
    if path.exists():
        path.rename(path.with_name(f"{path.name}{BROKEN}{int(time.time())}"))
    incoming.rename(path)
    sync(path.parent)
    for directory in _aside(path):
        shutil.rmtree(directory)


def _aside(path: Path) -> list[Path]:
    """Damaged copies of a revision; one is left behind when a repair was cut off half-way."""
    return sorted(path.parent.glob(f"{path.name}{BROKEN}*"))


def make_directory(path: Path) -> None:
    """Create a directory and those above it, readable by all whatever the umask is."""
    for parent in [*reversed(path.parents), path]:
        if not parent.is_dir():
            parent.mkdir()
            parent.chmod(0o755)


def walk(root: Path) -> Iterator[str]:
    """The relative paths of the files below a directory, hidden ones left out."""
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
    """A path as rsync's filters take it: backslashes are special only in patterns that hold a wildcard."""
    if not any(character in path for character in "*?["):
        return path
    return "".join(f"\\{character}" if character in "\\*?[" else character for character in path)


def _copy_all(source: Path, plan: Plan) -> None:
    """Copy the missing files within the node, some at a time. Raises OSError."""
    for relative in plan.missing:
        (plan.incoming / relative).parent.mkdir(parents=True, exist_ok=True)

    def copy(relative: str) -> None:
        _copy(source / relative, plan.incoming / relative, plan.manifest.files[relative].size)

    with ThreadPoolExecutor(max_workers=COPY_THREADS) as pool:
        # The largest first: no thread is left with one at the end.
        list(pool.map(copy, sorted(plan.missing, key=lambda relative: -plan.missing[relative])))


def _copy(source: Path, target: Path, size: int) -> None:
    """Copy a file within the node, unless an earlier run has: blocks are shared where the file system can."""
    if _size(target) == size:
        return
    with source.open("rb") as reader, target.open("wb") as writer:
        try:
            while os.copy_file_range(reader.fileno(), writer.fileno(), COPY_BYTES):
                pass
        except OSError as error:
            # File systems that cannot, or cannot between each other.
            if error.errno not in (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
                raise
            reader.seek(0)
            writer.truncate(0)
            writer.seek(0)
            shutil.copyfileobj(reader, writer, 16 << 20)
        writer.flush()
        os.fsync(writer.fileno())
        # So that what is verified next is what the disk has, not what memory still holds.
        os.posix_fadvise(writer.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _replace_by_link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    os.link(source, target)


def _tidy(root: Path, manifest: Manifest) -> None:
    """Leave only the model's files, readable by every engine, and on the disk before they get their name."""
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
    """Have a file's content, or a directory's names, on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
