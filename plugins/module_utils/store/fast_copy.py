# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies of the store's models on a faster disk. Private to the collection.

Engines load a model from FAST/NAME/REVISION. This is a link to FAST/.copies/NAME/REVISION if the copy is complete, else
to the store. A variant with a system prompt can have a directory of links there instead. So a release does not change
when a copy is made or removed, and a full disk costs speed, not service. One rename changes the link. FAST/.copies has
the layout and the rules of a store: a revision with a name there is complete and verified.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..core import files as node_files
from ..core.problems import InputError, Problem
from ..core.sizes import GIB, human
from ..models.manifest import MANIFEST, REVISION, Manifest, base_of
from .hashes import HashCache
from .references import Revision
from .space import free_bytes
from .store import Plan, Store, make_directory

COPIES = ".copies"


@dataclass(frozen=True)
class Room:
    """Space for copies, in bytes. `limit` 0 is as much as fits; `reserve` stays free. `copies` is False on the store's
    own file system, where copies would have no use."""

    limit: int
    reserve: int
    copies: bool = True


@dataclass
class Outlook:
    """The planned changes. All paths are paths of links."""

    plans: dict[Revision, Plan] = field(default_factory=dict)
    """Copies to make."""
    drops: list[Revision] = field(default_factory=list)
    """Copies to remove before new ones are made."""
    links: dict[Path, str] = field(default_factory=dict)
    """Links to change before copies are made: path and new target."""
    unknown: list[Revision] = field(default_factory=list)
    """Models that are not in the store yet, which happens only in check mode."""
    complete: list[Revision] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """For the operator: why a model is loaded from the store."""

    @property
    def changes(self) -> bool:
        return bool(self.plans or self.drops or self.links or self.unknown)


class FastStore:
    """The copies below `root` of the revisions that are published below `store`."""

    def __init__(self, root: Path, store: Path, cache: HashCache, verify: bool = False) -> None:
        self.root = root
        self.store = store
        self.copies = Store(root / COPIES, cache, verify)

    def place(self, revision: Revision) -> Path:
        """The path from which engines load a revision."""
        return self.root.joinpath(*revision)

    def outlook(self, wanted: Sequence[Revision], needed: Container[Revision] | None, room: Room) -> Outlook:
        """Compare the copies with the `wanted` revisions. If not all fit, earlier ones have precedence.

        Copies in `needed` are never removed. None means that the needed copies are unknown: no copy is removed.
        Raises InputError, OSError and ValueError.
        """
        found = Outlook()
        missing: dict[Revision, Plan] = {}
        for revision in wanted:
            record = node_files.read_json(self.store.joinpath(*revision) / MANIFEST)
            if record is None:
                found.unknown.append(revision)
                continue
            plan = self.copies.plan(revision[0], Manifest.from_dict(record))
            if plan.published:
                found.complete.append(revision)
                self._turn(found, revision, copy_target(revision))
            elif room.copies:
                missing[revision] = plan
            else:
                self._turn(found, revision, self._original(revision))
        self._make_room(found, missing, needed, room, set(wanted))
        for revision in missing:
            # A damaged copy is missing, too. Its link must lead to the store before the copy is made again.
            self._turn(found, revision, self._original(revision))
        return found

    def apply(self, outlook: Outlook) -> dict[Revision, str]:
        """Make the planned changes. Returns the copies that failed, with the reason. Raises OSError for links."""
        for path, target in outlook.links.items():
            make_directory(path.parent)
            node_files.link(path, target)
        for revision in outlook.drops:
            self.drop(revision)
        failed = {}
        for revision, plan in outlook.plans.items():
            try:
                self.copies.publish(plan, self.store.joinpath(*revision))
                make_directory(self.place(revision).parent)
                node_files.link(self.place(revision), copy_target(revision))
                outlook.complete.append(revision)
            except (OSError, InputError) as error:
                # Other copies may need the space.
                shutil.rmtree(plan.incoming, ignore_errors=True)
                failed[revision] = str(error)
        for revision in outlook.complete:
            # This time is the time of the last use.
            os.utime(self.copies.root.joinpath(*revision) / MANIFEST)
        return failed

    def drop(self, revision: Revision) -> None:
        """Remove a copy. Before, its link is changed to the store, or removed if the store lacks the revision."""
        place = self.place(revision)
        if self.store.joinpath(*revision).is_dir():
            if place.is_symlink():
                node_files.link(place, self._original(revision))
        elif place.is_symlink():
            place.unlink()
        elif base_of(place):
            # A variant: a directory of links.
            shutil.rmtree(place)
        copy = self.copies.root.joinpath(*revision)
        if copy.is_dir():
            shutil.rmtree(copy)

    def revisions(self) -> set[Revision]:
        """All revisions with a link, a directory of links, or a copy."""
        places = [path for path in self.root.glob("[!.]*/*") if path.is_symlink() or base_of(path)]
        return {(path.parent.name, path.name) for path in places if REVISION.match(path.name)} | set(self.held())

    def held(self) -> dict[Revision, int]:
        """The copies with their sizes in bytes, the least recently used copy first."""
        records = sorted(self.copies.root.glob(f"*/*/{MANIFEST}"), key=lambda path: path.stat().st_mtime)
        return {
            (path.parent.parent.name, path.parent.name): _bytes(path) for path in records if path.parts[-3][0] != "."
        }

    def _make_room(
        self,
        found: Outlook,
        missing: Mapping[Revision, Plan],
        needed: Container[Revision] | None,
        room: Room,
        wanted: Container[Revision],
    ) -> None:
        """Decide which copies are made, and which copies are removed to make room."""
        held = {revision: size for revision, size in self.held().items() if revision not in missing}
        idle = [] if needed is None else [each for each in held if each not in wanted and each not in needed]
        used, free = sum(held.values()), free_bytes(self.root)

        def drop() -> None:
            nonlocal used, free
            revision = idle.pop(0)
            found.drops.append(revision)
            used -= held[revision]
            free += held[revision]

        for revision, plan in missing.items():
            size, could_go = plan.manifest.bytes, sum(held[each] for each in idle)
            allowed = not room.limit or used - could_go + size <= room.limit
            if not allowed or free + could_go < plan.missing_bytes + room.reserve:
                found.notes.append(self._refusal(plan, room, used - could_go, free, allowed))
                continue
            while idle and ((room.limit and used + size > room.limit) or free < plan.missing_bytes + room.reserve):
                drop()
            found.plans[revision] = plan
            used += size
            free -= plan.missing_bytes
        while idle and room.limit and used > room.limit:
            drop()

    def _refusal(self, plan: Plan, room: Room, needed: int, free: int, allowed: bool) -> str:
        """Why no copy is made. `needed` is the size of the copies that cannot be removed. Sizes are in bytes."""
        where = f"{plan.name} {plan.manifest.revision}"
        if not allowed:
            return (
                f"{where} has no fast copy, engines load it from the store: the copy needs "
                f"{human(plan.manifest.bytes)}, but copies that are needed, or may be needed, leave only "
                f"{human(max(0, room.limit - needed))} of model_store_fast_limit_gib ({room.limit / GIB:g}) free: "
                "raise model_store_fast_limit_gib"
            )
        return (
            f"{where} has no fast copy, engines load it from the store: the copy needs {human(plan.missing_bytes)}, "
            f"and {human(room.reserve)} must stay free, but the file system of {self.root} has only {human(free)} "
            "free: make room"
        )

    def _turn(self, found: Outlook, revision: Revision, target: str) -> None:
        """Plan the change of a link, unless it has this target already. Raises InputError."""
        place = self.place(revision)
        try:
            if os.readlink(place) == target:
                return
        except FileNotFoundError:
            pass
        except OSError as error:
            message = f"is not a link, but must become a link to {target} ({error.strerror}): move it elsewhere"
            raise InputError([Problem(str(place), message)]) from None
        found.links[place] = target

    def _original(self, revision: Revision) -> str:
        return str(self.store.joinpath(*revision))


def copy_target(revision: Revision) -> str:
    """The target of the link of a revision with a copy, relative to the link."""
    return f"../{COPIES}/{revision[0]}/{revision[1]}"


def _bytes(record: Path) -> int:
    """The size of a copy in bytes, from its manifest; without a valid manifest, from its files."""
    try:
        return Manifest.from_dict(node_files.read_json(record)).bytes
    except ValueError:
        return sum(path.lstat().st_size for path in record.parent.rglob("*"))
