# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Releases of a snapshot that listen on an address which this machine does not have. Private to the collection.

A machine that replaces another often has another address. Before such releases are restored, this machine's address
takes the place of the old one in the fetched snapshot, in every kept release: a rollback must be able to start, too.
Ids and known-good checksums follow, so that baremetal.inference.site and the doctor recognise the releases.

A member of a gang also has an address that the releases of all other members name. A change on this machine alone
would not replace that address there.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core import files
from ..core.addresses import is_own
from ..core.paths import Paths, unit_name
from ..engine import known_good, unit_text
from ..engine.gang.members import Gang

RELEASE_FILE = "release.json"
ENV_FILE = "engine.env"


@dataclass(frozen=True)
class Moved:
    """A release that got this machine's address."""

    instance: str
    release: int
    old: str
    new: str

    @property
    def words(self) -> str:
        """The move, for the report."""
        return f"{self.instance}, release {self.release}: {self.new} in place of {self.old}"


def move(saved: Path, live: Path, own: Callable[[str], bool] = is_own) -> tuple[list[Moved], list[str]]:
    """Put this machine's address into the releases at `saved`. Returns the changed releases, and problems.

    The new address is that of the same instance on this machine, or else of any instance, or else of a release that is
    only staged. `own` says whether an engine of this machine can listen on an address. Raises OSError.
    """
    paths = Paths(saved)
    moved, problems = [], []
    for file in sorted(paths.all_releases.glob(f"*/[0-9]*/{RELEASE_FILE}")):
        release = _read(file)
        name, number = file.parent.parent.name, file.parent.name
        known = _known_to_members(release)
        if known and not own(known):
            # A release of a gang at an address that this machine lacks can never start. Only the active release is
            # reported: systemd would start it.
            if _is_active(paths, file):
                problems.append(_gang_problem(name, number, known))
            continue
        old = str(release.get("address", ""))
        if not old or own(old):
            continue
        new = _address(Paths(live), name, own)
        if not new:
            problems.append(_problem(name, number, old))
            continue
        _rewrite(paths, file, release, old, new)
        moved.append(Moved(name, int(number), old, new))
    return moved, problems


def _rewrite(paths: Paths, file: Path, release: dict[str, Any], old: str, new: str) -> None:
    """Replace the address in release.json, in the release's unit, and in the installed unit of an active release."""
    name = file.parent.parent.name
    kept = file.parent / unit_name(name)
    word = re.compile(rf"(?<![\w.:]){re.escape(old)}(?![\w.:])")
    moved = {**_replaced(release, old, new), "id": _id(release, kept, word, new)}
    texts = {file: files.to_json(moved)}
    installed = [paths.unit(name)] if _is_active(paths, file) else []
    texts |= {unit: word.sub(new, unit.read_text(encoding="utf-8")) for unit in (kept, *installed) if unit.is_file()}
    digests = {known_good.digest(path.read_bytes()): known_good.digest(text) for path, text in texts.items()}
    for path, text in texts.items():
        files.write(path, text, path.stat().st_mode & 0o7777)
    # The snapshot names files by their paths on its own machine, so a changed file is found by its old checksum.
    checksums = known_good.replaced(paths.known_good(name), digests)
    if checksums is not None:
        files.write(paths.known_good(name), checksums, paths.known_good(name).stat().st_mode & 0o7777)


def _id(release: Mapping[str, Any], kept: Path, word: re.Pattern[str], new: str) -> str:
    """The id of the release at the new address: the id that baremetal.inference.site makes on this machine, if this
    version can compute the old id. Otherwise, the inventory's release has another id, and is pending.

    Releases with the same id run the same, so a release with another address always has another id.
    """
    old = str(release.get("id", ""))
    unit, environment = files.text(kept) or "", files.text(kept.with_name(ENV_FILE)) or ""
    with contextlib.suppress(KeyError, TypeError, ValueError):
        limit, read_only = str(release.get("memory_limit", "")), bool(release.get("read_only"))
        base = unit_text.unnumbered(unit, int(release["number"]), limit, read_only=read_only)
        rest = environment, str(release["revision"]), release.get("warm_up") or ()
        if unit_text.identity(base, *rest) == old:
            return unit_text.identity(word.sub(new, base), *rest)
    return hashlib.sha256(f"{old}\0{new}".encode()).hexdigest()


def _replaced(value: Any, old: str, new: str) -> Any:
    """The value, with `new` in place of each text that is `old`."""
    if isinstance(value, dict):
        return {key: _replaced(each, old, new) for key, each in value.items()}
    if isinstance(value, list):
        return [_replaced(each, old, new) for each in value]
    return new if value == old else value


def _read(file: Path) -> dict[str, Any]:
    """A release; empty if it is damaged. A damaged release is restored unchanged, and its unit reports the damage."""
    try:
        value = files.read_json(file)
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _address(paths: Paths, name: str, own: Callable[[str], bool]) -> str:
    """An address of this machine from its releases: the active release of the instance, any active release, or any
    release. A gang has no active release yet on a machine that was blank. Empty without such an address."""
    kept = [sorted(paths.all_releases.glob(pattern)) for pattern in ("*/active", "*/[0-9]*")]
    found = [str(_read(each / RELEASE_FILE).get("address", "")) for each in (paths.active(name), *kept[0], *kept[1])]
    return next((address for address in found if address and own(address)), "")


def _is_active(paths: Paths, file: Path) -> bool:
    """Whether a release is the active release of its instance. `file` is the release's release.json."""
    return paths.active(file.parent.parent.name).resolve() == file.parent.resolve()


def _known_to_members(release: Mapping[str, Any]) -> str:
    """The address at which the other members of its gang reach the node; empty for an instance on one node."""
    try:
        return Gang.from_dict(release["gang"]).me.address if release.get("gang") else ""
    except ValueError:
        return ""


def _gang_problem(name: str, number: str, known: str) -> str:
    return (
        f"release {number} of {name}: the other members of the gang reach this node at {known}, which is no address of"
        f" this machine: give this machine {known} (inference_fabric_address, or else inference_address). For another"
        " address, do not restore: stop the instance on all members, and run baremetal.inference.site on all members"
    )


def _problem(name: str, number: str, old: str) -> str:
    remedy = "first run baremetal.inference.site on this machine, which writes a release with the machine's address"
    return f"release {number} of {name} listens on {old}, which is no address of this machine: {remedy}"
