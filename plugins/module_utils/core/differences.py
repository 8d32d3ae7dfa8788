# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What differs from what is declared: files and units that other tasks write. Private to the collection.

A check that asks one question for all of them costs a run less than each task's own check mode.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from . import files, systemd

ACTIVE, ENABLED = "ActiveState", "UnitFileState"

AS_ENABLED = ("enabled", "static", "generated")
"""What systemctl calls enabled. A unit of the last two kinds has nothing to enable: it would be due for ever.

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
"""The option of a module that takes files to compare. A directory has mode 0755; all belong to who runs the module."""

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
"""The option of a module that takes units to compare."""


def of_files(declared: Iterable[Mapping[str, Any]], root: Path = Path("/")) -> list[str]:
    """Why files are not as FILE_OPTIONS declares them, one sentence for each. Raises OSError."""
    found = []
    for one in declared:
        path = root / str(one["path"]).lstrip("/")
        there = path.exists() or path.is_symlink()
        state = one.get("state", "present")
        if state == "absent":
            found += [f"{one['path']} is there"] if there else []
        elif not path.exists():
            found.append(f"{one['path']} is missing")
        elif state == "directory":
            if not (path.is_dir() and files.own(path, 0o755)):
                found.append(f"{one['path']} is no directory, or has another owner or mode")
        elif one.get("text") is not None and not files.same(path, one["text"]):
            found.append(f"{one['path']} has another text or mode")
        elif one.get("checksum") and not _has(path, one["checksum"]):
            found.append(f"{one['path']} has another checksum")
        elif not files.own(path):
            found.append(f"{one['path']} has another owner or mode")
    return found


def _has(path: Path, checksum: str) -> bool:
    """Whether a file has a checksum, as ALGORITHM:DIGEST; no for a checksum that cannot be read."""
    algorithm, _colon, digest = checksum.partition(":")
    if algorithm not in hashlib.algorithms_guaranteed or algorithm.startswith("shake"):
        return False
    return hashlib.new(algorithm, path.read_bytes()).hexdigest() == digest.strip().lower()


def of_units(declared: Iterable[Mapping[str, Any]]) -> list[str]:
    """Why units are not as UNIT_OPTIONS declares them, one sentence for each. Raises SystemdError."""
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
