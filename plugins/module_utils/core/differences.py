# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares files and units, which other tasks write, with their declaration. Private to the collection.

One check of all files and units is faster than the check mode of each task.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from . import files, systemd

ACTIVE, ENABLED = "ActiveState", "UnitFileState"

AS_ENABLED = ("enabled", "static", "generated")
"""States of a unit that counts as enabled. Units in the last two states cannot be enabled, and would always differ.

Source: is-enabled in systemctl(1).
"""

FILE_OPTIONS: dict[str, Any] = {
    "type": "list",
    "elements": "dict",
    "default": [],
    "options": {
        "path": {"type": "path", "required": True},
        "text": {"type": "str"},
        "checksum": {"type": "str", "default": ""},
        "state": {"type": "str", "choices": ["present", "absent", "directory"], "default": "present"},
    },
}
"""A module's option with files to compare. A file must have mode 0644, and a directory 0755. Owner and group must be
those of the module's process."""

UNIT_OPTIONS: dict[str, Any] = {
    "type": "list",
    "elements": "dict",
    "default": [],
    "options": {
        "name": {"type": "str", "required": True},
        "enabled": {"type": "bool", "default": True},
        "active": {"type": "bool", "default": True},
    },
}
"""A module's option with units to compare."""


def of_files(declared: Iterable[Mapping[str, Any]], root: Path = Path("/")) -> list[str]:
    """How files differ from their declaration (FILE_OPTIONS): a text for each difference. Raises OSError."""
    found = []
    for one in declared:
        path = root / str(one["path"]).lstrip("/")
        there = path.exists() or path.is_symlink()
        state = one.get("state", "present")
        if state == "absent":
            found += [f"{one['path']} exists"] if there else []
        elif not path.exists():
            found.append(f"{one['path']} is missing")
        elif state == "directory":
            if not (path.is_dir() and files.own(path, 0o755)):
                found.append(f"{one['path']} is not a directory, or has another owner or mode")
        elif one.get("text") is not None and not files.same(path, one["text"]):
            found.append(f"{one['path']} has another text or mode")
        elif one.get("checksum") and not _has(path, one["checksum"]):
            found.append(f"{one['path']} has another checksum")
        elif not files.own(path):
            found.append(f"{one['path']} has another owner or mode")
    return found


def _has(path: Path, checksum: str) -> bool:
    """Whether a file has this checksum, in the form ALGORITHM:DIGEST. False for an unknown algorithm."""
    algorithm, _colon, digest = checksum.partition(":")
    if algorithm not in hashlib.algorithms_guaranteed or algorithm.startswith("shake"):
        return False
    return hashlib.new(algorithm, path.read_bytes()).hexdigest() == digest.strip().lower()


def of_units(declared: Iterable[Mapping[str, Any]]) -> list[str]:
    """How units differ from their declaration (UNIT_OPTIONS): a text for each difference. Raises SystemdError."""
    wanted = list(declared)
    shown = systemd.show([one["name"] for one in wanted], [ACTIVE, ENABLED])
    found = []
    for one in wanted:
        state = shown[one["name"]]
        if one.get("enabled", True) and state[ENABLED] not in AS_ENABLED:
            found.append(f"{one['name']} is not enabled")
        if one.get("active", True) and state[ACTIVE] != "active":
            found.append(f"{one['name']} does not run")
    return found
