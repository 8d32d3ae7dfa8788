# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares a snapshot with the files of a node, and restores the files that differ. Private to the collection."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import record, trees
from .jobs import remove_leftovers
from .places import Places
from .restic import Restic

_SHOWN_BYTES = 64 << 10

_HIDDEN = "(not shown)\n"

_UNFINISHED = "-unfinished"
"""End of the name of a directory with replaced files while a restore runs, and after an undo that failed."""

_UNIT = re.compile(r"^etc/systemd/system/vllm@(?P<name>[^/]+)\.service$")
_ENVIRONMENT = re.compile(r"^etc/inference/env/(?P<name>[^/]+)\.env$")
_ACTIVE = re.compile(r"^var/lib/inference/releases/(?P<name>[^/]+)/active$")


class RestoreError(Exception):
    """The restore failed. The message says why, which changes could not be undone, and what to do."""


def choose(snapshots: Sequence[Mapping[str, Any]], wanted: str, host: str) -> Mapping[str, Any]:
    """Find a snapshot by `latest`, or by at least four first characters of its id. Raises RestoreError."""
    if not snapshots:
        raise RestoreError(
            f"the repository has no snapshot of {host}. Snapshots are kept under the host's backup_host: to read those"
            " of another name, run baremetal.inference.restore with -e of=NAME"
        )
    if wanted == "latest":
        return snapshots[-1]
    found = [one for one in snapshots if len(wanted) >= 4 and str(one["id"]).startswith(wanted)]
    if len(found) != 1:
        known = ", ".join(str(one["short_id"]) for one in snapshots[-10:])
        what = "matches several snapshots" if found else "matches no snapshot"
        raise RestoreError(
            f"{wanted!r} {what} of {host}. Use latest, or at least 4 characters of an id. The last ids: {known}"
        )
    return found[0]


def summary(snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """Id, time, host and machine of a snapshot, for the report. `machine`: the first 8 digits of its machine-id."""
    tags = [str(tag) for tag in snapshot.get("tags") or []]
    machines = [tag.removeprefix("machine-") for tag in tags if tag.startswith("machine-")]
    return {
        "id": str(snapshot["short_id"]),
        "time": str(snapshot["time"]),
        "host": str(snapshot["hostname"]),
        "machine": machines[0] if machines else "",
    }


@contextlib.contextmanager
def fetched(places: Places, restic: Restic, snapshot: str) -> Iterator[Path]:
    """Fetch a snapshot into a private directory, and remove the directory afterwards. Raises ResticError, OSError."""
    places.work.mkdir(mode=0o700, parents=True, exist_ok=True)
    remove_leftovers(places.work, "scratch-*")
    scratch = Path(tempfile.mkdtemp(prefix="scratch-", dir=places.work))
    try:
        restic.restore(snapshot, scratch)
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@dataclass(frozen=True)
class Plan:
    """The changes that a restore would make."""

    saved_root: Path
    live_root: Path
    saved: trees.Listing
    differences: list[trees.Difference]
    only_here: list[str]
    """Paths that are on the node and not in the snapshot. The restore keeps them."""
    owner: trees.Owner

    def shown(self) -> list[dict[str, Any]]:
        """The differences for JSON, each with its path on the node."""
        return [{"path": str(self.live_root / one.path), "differs": list(one.differs)} for one in self.differences]

    def diff(self) -> list[dict[str, str]]:
        """The diff. Only files that every user may read show their text."""
        found = []
        for one in self.differences:
            live, saved = self.live_root / one.path, self.saved_root / one.path
            before, after = _describe(live), _describe(saved)
            # If one of the two files is private, its secrets may also stand in the other.
            if _HIDDEN in (before, after):
                before, after = (text and _HIDDEN for text in (before, after))
            if before == after:
                before, after = "", f"({', '.join(one.differs)})\n"
            found.append({"before_header": str(live), "after_header": str(live), "before": before, "after": after})
        return found


def plan(
    saved_root: Path,
    live_root: Path,
    patterns: Sequence[str],
    exclude: Sequence[str] = (),
    owner: trees.Owner = trees.own,
) -> Plan:
    """Compare the paths that match the patterns, in the snapshot and on the node. Raises RestoreError, OSError."""
    saved = trees.listing(saved_root, patterns)
    saved.pop(record.FILE, None)
    if not saved:
        holds = ", ".join(f"/{path.relative_to(saved_root)}" for path in sorted(saved_root.glob("*/*"))[:20])
        raise RestoreError(f"the snapshot has no files at {', '.join(patterns)}. Choose from: {holds}")
    live = trees.listing(live_root, patterns, exclude)
    differences = trees.compare(saved, saved_root, live_root, owner)
    return Plan(saved_root, live_root, saved, differences, sorted(set(live) - set(saved)), owner)


def plan_to(saved_root: Path, path: str, target: Path, owner: trees.Owner = trees.own) -> Plan:
    """Plan to restore one path to another place. Raises RestoreError, OSError."""
    source = saved_root / path.strip("/")
    if not os.path.lexists(source):
        return plan(saved_root, target, [path])
    place = target / source.name if target.is_dir() and not target.is_symlink() else target
    if not place.parent.is_dir():
        raise RestoreError(f"{place.parent} is not a directory on the node. Create it, or choose another target")
    saved = trees.walk(source, source)
    return Plan(source, place, saved, trees.compare(saved, source, place, owner), [], owner)


def lay_over(work: Plan, aside: Path) -> None:
    """Replace the entries that differ by the saved ones. Each file is replaced in one step.

    The replaced files are kept in the directory `aside`. If one entry fails, undoes all changes that can be undone, and
    raises RestoreError. After an undo that fails, or a kill, the replaced files may be the only copy: their directory
    keeps the name that `unfinished` finds. Raises OSError.
    """
    undo: list[Callable[[], object]] = []
    kept = aside.with_name(f"{aside.name}{_UNFINISHED}")
    try:
        _make_parents(work, undo)
        for difference in work.differences:
            _replace(work, difference.path, kept, undo)
    except OSError as error:
        left = []
        for step in reversed(undo):
            # If one step cannot be undone, the other steps still are.
            try:
                step()
            except OSError as reason:
                left.append(str(reason))
        if left:
            raise RestoreError(
                f"{error}. Some changes before this error could not be undone: {'; '.join(left)}. The replaced files"
                f" are in {kept}. Remove the causes, and run again"
            ) from error
        # All replaced files are back in place.
        shutil.rmtree(kept, ignore_errors=True)
        raise RestoreError(
            f"nothing was restored: {error}. The changes before this error were undone. Remove its cause, and run again"
        ) from error
    if kept.exists():
        kept.rename(aside)


def _make_parents(work: Plan, undo: list[Callable[[], object]]) -> None:
    """Create missing parent directories, with mode and owner from the snapshot."""
    for path in trees.parents(one.path for one in work.differences):
        place = work.live_root / path
        if path in work.saved or place.is_dir():
            continue
        saved = trees.entry(work.saved_root / path)
        if saved:
            _make_directory(place, saved, work, undo)


def _make_directory(place: Path, saved: trees.Entry, work: Plan, undo: list[Callable[[], object]]) -> None:
    """Create a directory with mode and owner. If mode or owner cannot be set, the undo removes the directory."""
    place.mkdir(mode=0o700)
    undo.append(place.rmdir)
    trees.copy(place, place, saved, work.owner(saved))


def _replace(work: Plan, path: str, aside: Path, undo: list[Callable[[], object]]) -> None:
    saved, place, source = work.saved[path], work.live_root / path, work.saved_root / path
    kept = aside / (path or place.name)
    there = os.path.lexists(place)
    live = trees.entry(place) if there else None
    if there:
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if live is not None and live.kind == "directory" and saved.kind == "directory":
            # First the undo: an error can occur between the change of the owner and of the mode.
            undo.append(lambda: _reset(place, live))
            trees.copy(place, place, saved, work.owner(saved))
            return
        # None is a socket, pipe or device, which cannot be copied.
        if live is None or live.kind == "directory":
            # First the undo: between two filesystems, an error can occur after a part was removed.
            undo.append(lambda: _move_back(kept, place))
            shutil.move(place, kept)
        else:
            trees.copy(place, kept, live)
            undo.append(lambda: _put(kept, place, live, (live.uid, live.gid)))
            if saved.kind == "directory":
                place.unlink()
    if saved.kind == "directory":
        _make_directory(place, saved, work, undo)
        return
    if not there:
        undo.append(functools.partial(place.unlink, missing_ok=True))
    _put(source, place, saved, work.owner(saved))


def _reset(place: Path, live: trees.Entry) -> None:
    """Give a directory its old mode and owner again, if they differ."""
    if trees.entry(place) != live:
        trees.copy(place, place, live)


def _move_back(kept: Path, place: Path) -> None:
    """Put a moved entry back in place of the file that replaced it, if the file is there. Raises OSError."""
    if not os.path.lexists(kept):
        return
    place.unlink(missing_ok=True)
    shutil.move(kept, place)


def _put(source: Path, place: Path, one: trees.Entry, owner: tuple[int, int]) -> None:
    """Replace a file in one step: a reader finds the old file or the new one, never a part."""
    temporary = place.with_name(f".{place.name}.restore")
    temporary.unlink(missing_ok=True)
    try:
        trees.copy(source, temporary, one, owner)
        os.replace(temporary, place)
    except OSError:
        # A part of the file must not stay.
        temporary.unlink(missing_ok=True)
        raise


def keep_only(aside: Path) -> None:
    """After a successful restore, remove the files that earlier restores kept. `aside` is this restore's directory.

    The files of restores that did not finish stay, because they may be the only copy.
    """
    for path in aside.parent.glob("*"):
        if path != aside and not path.name.endswith(_UNFINISHED):
            shutil.rmtree(path, ignore_errors=True)


def unfinished(directory: Path) -> list[Path]:
    """The directories with the replaced files of restores that did not finish."""
    return sorted(directory.glob(f"*{_UNFINISHED}"))


def instances(differences: Sequence[trees.Difference]) -> list[str]:
    """Names of the instances whose unit, environment file or active release differs."""
    found = set()
    for one in differences:
        for pattern in (_UNIT, _ENVIRONMENT, _ACTIVE):
            if match := pattern.match(one.path):
                found.add(match["name"])
    return sorted(found)


def _describe(path: Path) -> str:
    """The text of a file that every user may read; otherwise a placeholder, or the target of a link."""
    try:
        one = trees.entry(path)
        if one is None or one.kind == "directory":
            return "(directory)\n" if one else "(socket, pipe or device)\n"
        if one.kind == "link":
            return f"-> {one.target}\n"
        if not one.mode & 0o004 or one.size > _SHOWN_BYTES:
            return _HIDDEN
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
    except UnicodeDecodeError:
        return _HIDDEN
