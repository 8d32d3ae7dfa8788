# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Releases of a snapshot that listen on an address which this machine does not have. Private to the collection.

A machine that replaces another often has another address. Before such releases are restored, this machine's address
takes the place of the old one in the fetched snapshot, in every kept release: a rollback must be able to start, too.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core import files
from ..core.addresses import is_own
from ..core.paths import Paths, unit_name

RELEASE_FILE = "release.json"


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

    The new address is that of the same instance on this machine, or else of any instance. `own` says whether an engine
    of this machine can listen on an address. Raises OSError.
    """
    paths = Paths(saved)
    moved, problems = [], []
    for file in sorted(paths.all_releases.glob(f"*/[0-9]*/{RELEASE_FILE}")):
        release = _read(file)
        old = str(release.get("address", ""))
        if not old or own(old):
            continue
        name, number = file.parent.parent.name, file.parent.name
        new = _address(Paths(live), name)
        if release.get("gang") or not own(new):
            problems.append(_problem(name, number, old, bool(release.get("gang"))))
            continue
        _rewrite(paths, file, release, old, new)
        moved.append(Moved(name, int(number), old, new))
    return moved, problems


def _rewrite(paths: Paths, file: Path, release: dict[str, Any], old: str, new: str) -> None:
    """Replace the address in release.json, in the release's unit, and in the installed unit of an active release."""
    name = file.parent.parent.name
    # Two releases with one id run the same, so the id must be another one.
    identity = hashlib.sha256(f"{release.get('id', '')}\0{new}".encode()).hexdigest()
    files.write_json(file, {**_replaced(release, old, new), "id": identity})
    units = [file.parent / unit_name(name)]
    if paths.active(name).resolve() == file.parent.resolve():
        units.append(paths.unit(name))
    word = re.compile(rf"(?<![\w.:]){re.escape(old)}(?![\w.:])")
    for unit in units:
        if unit.is_file():
            text = word.sub(new, unit.read_text(encoding="utf-8"))
            files.write(unit, text, unit.stat().st_mode & 0o7777)


def _replaced(value: Any, old: str, new: str) -> Any:
    """The value, with `new` in place of each text that is `old`."""
    if isinstance(value, dict):
        return {key: _replaced(each, old, new) for key, each in value.items()}
    if isinstance(value, list):
        return [_replaced(each, old, new) for each in value]
    return new if value == old else value


def _read(file: Path) -> dict[str, Any]:
    """A release; empty if it is damaged. It is restored as it is, and its unit reports the damage."""
    try:
        value = files.read_json(file)
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _address(paths: Paths, name: str) -> str:
    """The address of an instance's active release on this machine, or else of any active release; empty without one."""
    active = [paths.active(name), *sorted(paths.all_releases.glob("*/active"))]
    found = [str(_read(each / RELEASE_FILE).get("address", "")) for each in active]
    return next(filter(None, found), "")


def _problem(name: str, number: str, old: str, gang: bool) -> str:
    remedy = "run baremetal.inference.site on this machine first, so that its own address is known"
    if gang:
        remedy = "the other members of the gang know this address, so give this machine the old one"
    return f"release {number} of {name} listens on {old}, which is no address of this machine: {remedy}"
