# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way back: a snapshot beside the live files, what differs, and laying it over them. Private to the collection."""

from __future__ import annotations

import contextlib
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

_UNIT = re.compile(r"^etc/systemd/system/vllm@(?P<name>[^/]+)\.service$")
_ENVIRONMENT = re.compile(r"^etc/inference/env/(?P<name>[^/]+)\.env$")
_ACTIVE = re.compile(r"^var/lib/inference/releases/(?P<name>[^/]+)/active$")


class RestoreError(Exception):
    """Nothing was restored, or all of it was put back; the message says what, and what to do."""


def choose(snapshots: Sequence[Mapping[str, Any]], wanted: str, host: str) -> Mapping[str, Any]:
    """The snapshot that is meant by `latest`, or by the first characters of its id. Raises RestoreError."""
    if not snapshots:
        raise RestoreError(f"the repository holds no snapshot of {host}: backup_host says under which name to look")
    if wanted == "latest":
        return snapshots[-1]
    found = [one for one in snapshots if len(wanted) >= 4 and str(one["id"]).startswith(wanted)]
    if len(found) != 1:
        known = ", ".join(str(one["short_id"]) for one in snapshots[-10:])
        what = "is" if not found else "fits more than one"
        raise RestoreError(
            f"{wanted!r} {what} {'no ' if not found else ''}snapshot of {host}. The last ones: {known}; or say latest"
        )
    return found[0]


def summary(snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """A snapshot for people."""
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
    """A snapshot in a private directory, which is removed afterwards. Raises ResticError, OSError."""
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
    """What a restore would do."""

    saved_root: Path
    live_root: Path
    saved: trees.Listing
    differences: list[trees.Difference]
    only_here: list[str]
    """What lies on the node and not in the snapshot: it stays."""
    owner: trees.Owner

    def shown(self) -> list[dict[str, Any]]:
        """The differences as plain values, with the path on the node."""
        return [{"path": str(self.live_root / one.path), "differs": list(one.differs)} for one in self.differences]

    def diff(self) -> list[dict[str, str]]:
        """Before and after, as far as everybody may read both; of the rest, that they differ."""
        found = []
        for one in self.differences:
            live, saved = self.live_root / one.path, self.saved_root / one.path
            before, after = _describe(live), _describe(saved)
            # A secret that has lost its mode is still one.
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
    """Compare what patterns name in a snapshot with what lies on the node. Raises RestoreError, OSError."""
    saved = trees.listing(saved_root, patterns)
    saved.pop(record.FILE, None)
    if not saved:
        holds = ", ".join(f"/{path.relative_to(saved_root)}" for path in sorted(saved_root.glob("*/*"))[:20])
        raise RestoreError(f"the snapshot holds nothing at {', '.join(patterns)}. It holds: {holds}")
    live = trees.listing(live_root, patterns, exclude)
    differences = trees.compare(saved, saved_root, live_root, owner)
    return Plan(saved_root, live_root, saved, differences, sorted(set(live) - set(saved)), owner)


def plan_to(saved_root: Path, path: str, target: Path, owner: trees.Owner = trees.own) -> Plan:
    """The same for one path that is to lie elsewhere. Raises RestoreError, OSError."""
    source = saved_root / path.strip("/")
    if not os.path.lexists(source):
        return plan(saved_root, target, [path])
    place = target / source.name if target.is_dir() and not target.is_symlink() else target
    if not place.parent.is_dir():
        raise RestoreError(f"{place.parent} is no directory on the node: make it, or choose another target")
    saved = trees.walk(source, source)
    return Plan(source, place, saved, trees.compare(saved, source, place, owner), [], owner)


def lay_over(work: Plan, aside: Path) -> None:
    """Put the saved entries in place of those that differ, each in one step; what was there lies in `aside`.

    Where one cannot be, all that was done is undone. Raises RestoreError.
    """
    undo: list[Callable[[], object]] = []
    try:
        _make_parents(work, undo)
        for difference in work.differences:
            _replace(work, difference.path, aside, undo)
    except OSError as error:
        for step in reversed(undo):
            # Whatever can be put back, is.
            with contextlib.suppress(OSError):
                step()
        raise RestoreError(f"nothing was restored, what had been done was undone: {error}") from error


def _make_parents(work: Plan, undo: list[Callable[[], object]]) -> None:
    """The directories above: with the mode that they have in the snapshot where they are not there."""
    for path in trees.parents(one.path for one in work.differences):
        place = work.live_root / path
        if path in work.saved or place.is_dir():
            continue
        saved = trees.entry(work.saved_root / path)
        if saved:
            trees.copy(work.saved_root / path, place, saved, work.owner(saved))
            undo.append(place.rmdir)


def _replace(work: Plan, path: str, aside: Path, undo: list[Callable[[], object]]) -> None:
    saved, place, source = work.saved[path], work.live_root / path, work.saved_root / path
    kept = aside / (path or place.name)
    live = trees.entry(place) if os.path.lexists(place) else None
    if live is not None:
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if live.kind == "directory" and saved.kind == "directory":
            trees.copy(place, place, saved, work.owner(saved))
            undo.append(lambda: trees.copy(place, place, live))
            return
        if live.kind == "directory":
            shutil.move(place, kept)
            undo.append(lambda: shutil.move(kept, place))
        else:
            trees.copy(place, kept, live)
            undo.append(lambda: _put(kept, place, live, (live.uid, live.gid)))
            if saved.kind == "directory":
                place.unlink()
    if saved.kind == "directory":
        trees.copy(source, place, saved, work.owner(saved))
        undo.append(place.rmdir)
        return
    if live is None:
        undo.append(place.unlink)
    _put(source, place, saved, work.owner(saved))


def _put(source: Path, place: Path, one: trees.Entry, owner: tuple[int, int]) -> None:
    """A reader finds the old or the new one, and nothing between."""
    temporary = place.with_name(f".{place.name}.restore")
    temporary.unlink(missing_ok=True)
    trees.copy(source, temporary, one, owner)
    os.replace(temporary, place)


def keep_only(aside: Path) -> None:
    """A restore has succeeded: what earlier ones kept goes, what this one has replaced stays."""
    for path in aside.parent.glob("*"):
        if path != aside:
            shutil.rmtree(path, ignore_errors=True)


def instances(differences: Sequence[trees.Difference]) -> list[str]:
    """The instances that would run something else now: their unit, environment or active release differs."""
    found = set()
    for one in differences:
        for pattern in (_UNIT, _ENVIRONMENT, _ACTIVE):
            if match := pattern.match(one.path):
                found.add(match["name"])
    return sorted(found)


def _describe(path: Path) -> str:
    """The text of a file that everybody may read; a word about everything else."""
    try:
        one = trees.entry(path)
        if one is None or one.kind == "directory":
            return "(directory)\n"
        if one.kind == "link":
            return f"-> {one.target}\n"
        if not one.mode & 0o004 or one.size > _SHOWN_BYTES:
            return _HIDDEN
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
    except UnicodeDecodeError:
        return _HIDDEN
