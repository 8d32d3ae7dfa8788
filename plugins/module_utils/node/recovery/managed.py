# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the files that an instance starts from with the copies in its release. Private to the collection."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ...core import files
from ...core.paths import Paths
from ...engine.state import releases
from ...engine.state.drains import format_time


@dataclass(frozen=True)
class WrongFile:
    """A managed file with wrong content or mode. `source` is a sound copy of the file; None if there is none."""

    path: Path
    why: str
    source: Path | None

    def __str__(self) -> str:
        return f"{self.path} {self.why}" + ("" if self.source else ", and no sound copy of it is left")


@dataclass(frozen=True)
class _Pair:
    """An installed file, its copy in the release, and the mode that both have."""

    installed: Path
    copy: Path
    mode: int


def verify(paths: Paths, name: str) -> list[WrongFile]:
    """The wrong files of the active release; none before the first start."""
    number = _number(paths, name)
    if number is None:
        return []
    directory = paths.release(name, number)
    known = _checksums(paths, name, number)
    found = [wrong for pair in _pairs(paths, name, directory) for wrong in _compare(pair, known)]
    record = directory / releases.RELEASE_FILE
    try:
        releases.load(paths, name, number)
    except releases.ReleaseError:
        found.append(WrongFile(record, "is damaged", None))
    else:
        if not _sound(record, known):
            found.append(WrongFile(record, "was changed since it was proven", None))
    return found


def repair(paths: Paths, name: str, wrong: list[WrongFile], now: datetime) -> list[str]:
    """Replace wrong files by sound copies, and keep the wrong files aside. Returns what was done. Raises OSError."""
    done = []
    number = _number(paths, name)
    pairs = _pairs(paths, name, paths.release(name, number)) if number is not None else []
    modes = {path: pair.mode for pair in pairs for path in (pair.installed, pair.copy)}
    for one in wrong:
        if one.source is None:
            continue
        kept = _keep_aside(paths, name, one.path, now)
        files.write(one.path, one.source.read_bytes(), modes[one.path])
        done.append(f"{one.path} {one.why}: repaired from {one.source}{kept}")
    if number is not None and releases.active_number(paths, name) != number:
        files.link(paths.active(name), str(number))
        done.append(f"{paths.active(name)} was a broken link: the link leads to release {number} again")
    return done


def _keep_aside(paths: Paths, name: str, path: Path, now: datetime) -> str:
    """Keep a wrong file aside. Returns where, for the report; empty if there is no such file. Raises OSError."""
    aside = paths.aside(name) / f"{format_time(now).replace(':', '')}-{path.name}"
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return ""
    except OSError as error:
        # A bad sector of the disk, for example. The sound file takes another place on the disk.
        return f"; the wrong file cannot be read ({error.strerror}), so it is not kept"
    # Like the sound file, the wrong one may hold a key.
    files.write(aside, content, 0o600)
    return f"; the wrong file is kept as {aside}"


def _number(paths: Paths, name: str) -> int | None:
    """The number of the active release; if the link to it is broken, of the current release."""
    active = releases.active_number(paths, name)
    return active if active is not None else releases.current_number(paths, name)


def _pairs(paths: Paths, name: str, directory: Path) -> list[_Pair]:
    return [
        _Pair(paths.unit(name), directory / paths.unit(name).name, 0o644),
        _Pair(paths.env(name), directory / releases.ENV_FILE, 0o600),
    ]


def _checksums(paths: Paths, name: str, number: int) -> Mapping[str, str]:
    """The checksums that were recorded when this release proved itself; empty if there are none."""
    try:
        known: Any = files.read_json(paths.known_good(name))
    except (OSError, ValueError):
        return {}
    if not isinstance(known, dict) or known.get("release") != number or not isinstance(known.get("files"), dict):
        return {}
    return {str(path): str(digest) for path, digest in known["files"].items()}


def _sound(path: Path, known: Mapping[str, str]) -> bool:
    """Whether a file exists, is not empty, and still has its recorded checksum, if one is recorded."""
    try:
        data = path.read_bytes()
    except OSError:
        return False
    return bool(data) and known.get(str(path)) in (None, hashlib.sha256(data).hexdigest())


def _compare(pair: _Pair, known: Mapping[str, str]) -> list[WrongFile]:
    copy, installed = _sound(pair.copy, known), _sound(pair.installed, known)
    if copy:
        data = pair.copy.read_bytes()
        if not installed or pair.installed.read_bytes() != data:
            return [
                WrongFile(pair.installed, "is missing" if not pair.installed.exists() else "was changed", pair.copy)
            ]
        if not files.same(pair.installed, data, pair.mode):
            return [WrongFile(pair.installed, "has another mode", pair.copy)]
        return []
    # The installed file replaces the copy only if a checksum shows that the installed file is the right one.
    if installed and str(pair.installed) in known:
        return [WrongFile(pair.copy, "is damaged", pair.installed)]
    return [WrongFile(pair.copy, "is damaged", None), WrongFile(pair.installed, "cannot be verified", None)]
