# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies of the store's models on a faster disk. Private to the collection.

FAST/NAME/REVISION is where engines find a model, always: a link that leads to FAST/.copies/NAME/REVISION where the copy
is complete, else to the store. So a copy that comes or goes changes no release, and a disk that is full costs speed,
not service. The link is turned by one rename. FAST/.copies is a store of its own, and keeps to the same rules: what has
a name there is complete and verified.
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
    """How much the copies may take, in bytes; `limit` 0 for as much as there is. `copies` is whether any are made: on
    the store's own file system they would be of no use."""

    limit: int
    reserve: int
    copies: bool = True


@dataclass
class Outlook:
    """What has to happen. All paths are those of links."""

    plans: dict[Revision, Plan] = field(default_factory=dict)
    """Copies to make."""
    drops: list[Revision] = field(default_factory=list)
    """Copies to remove before."""
    links: dict[Path, str] = field(default_factory=dict)
    """Links to turn before: those of models that have no copy yet."""
    unknown: list[Revision] = field(default_factory=list)
    """Models that are not in the store yet; only in check mode."""
    complete: list[Revision] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Why a model is served from the store, for people."""

    @property
    def changes(self) -> bool:
        return bool(self.plans or self.drops or self.links or self.unknown)


class FastStore:
    """The copies below `root` of what is published below `store`."""

    def __init__(self, root: Path, store: Path, cache: HashCache, verify: bool = False) -> None:
        self.root = root
        self.store = store
        self.copies = Store(root / COPIES, cache, verify)

    def place(self, revision: Revision) -> Path:
        """Where engines find it."""
        return self.root.joinpath(*revision)

    def outlook(self, wanted: Sequence[Revision], needed: Container[Revision] | None, room: Room) -> Outlook:
        """Compare what is there with what is wanted, in this order where there is not room for all.

        Copies that are `needed` are never dropped; None where that is not known, so that none is. Raises InputError
        and OSError.
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
            # Also away from a copy that is damaged.
            self._turn(found, revision, self._original(revision))
        return found

    def apply(self, outlook: Outlook) -> dict[Revision, str]:
        """Do it. Returns the copies that could not be made, with the reason. Raises OSError for links."""
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
                # What was copied takes space that others need.
                shutil.rmtree(plan.incoming, ignore_errors=True)
                failed[revision] = str(error)
        for revision in outlook.complete:
            # By this is known which was used last.
            os.utime(self.copies.root.joinpath(*revision) / MANIFEST)
        return failed

    def drop(self, revision: Revision) -> None:
        """Remove a copy: first who looks for it is led to the store, or, where that has it no more, nowhere."""
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
        """All that has a link, a directory of links, or a copy."""
        places = [path for path in self.root.glob("[!.]*/*") if path.is_symlink() or base_of(path)]
        return {(path.parent.name, path.name) for path in places if REVISION.match(path.name)} | set(self.held())

    def held(self) -> dict[Revision, int]:
        """The copies with their bytes, the one that was not used for the longest time first."""
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
        """Decide which copies are made, and which go for them."""
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
                found.notes.append(self._refusal(plan, room, used, free, allowed))
                continue
            while idle and ((room.limit and used + size > room.limit) or free < plan.missing_bytes + room.reserve):
                drop()
            found.plans[revision] = plan
            used += size
            free -= plan.missing_bytes
        while idle and room.limit and used > room.limit:
            drop()

    def _refusal(self, plan: Plan, room: Room, used: int, free: int, allowed: bool) -> str:
        where = f"{plan.name} {plan.manifest.revision}"
        if not allowed:
            return (
                f"{where} has no fast copy and is served from the store: needed {human(plan.manifest.bytes)}, free "
                f"{human(max(0, room.limit - used))} of model_store_fast_limit_gib ({room.limit / GIB:g}); the other "
                "copies are of models that instances or their rollbacks need: raise the limit"
            )
        return (
            f"{where} has no fast copy and is served from the store: needed {human(plan.missing_bytes)}, and "
            f"{human(room.reserve)} that stay free, free {human(free)} on the file system of {self.root}: make room"
        )

    def _turn(self, found: Outlook, revision: Revision, target: str) -> None:
        """Note that a link has to lead to somewhere else. Raises InputError."""
        place = self.place(revision)
        try:
            if os.readlink(place) == target:
                return
        except FileNotFoundError:
            pass
        except OSError as error:
            message = f"is in the way of a link to {target} ({error.strerror}): move it to another place"
            raise InputError([Problem(str(place), message)]) from None
        found.links[place] = target

    def _original(self, revision: Revision) -> str:
        return str(self.store.joinpath(*revision))


def copy_target(revision: Revision) -> str:
    """What the link of a revision holds that has a copy."""
    return f"../{COPIES}/{revision[0]}/{revision[1]}"


def _bytes(record: Path) -> int:
    """What a copy takes, in bytes, as its manifest says; a damaged one is measured."""
    try:
        return Manifest.from_dict(node_files.read_json(record)).bytes
    except ValueError:
        return sum(path.lstat().st_size for path in record.parent.rglob("*"))
