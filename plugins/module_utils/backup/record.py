# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record in every snapshot: versions, packages and account names of the node. Private to the collection."""

from __future__ import annotations

import grp
import platform
import pwd
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ..core import files
from ..core.commands import Outcome, run
from . import serving
from .trees import Entry, Owner

SCHEMA = 1

FILE = "inference-backup.json"
"""Name of the record, at the root of the snapshot. No saved file of a node can have this path."""

Numbers = Callable[[int, int], tuple[int, int]]
"""Translates the numbers of an account and a group from the saved machine to this machine."""

_DRIVER = re.compile(r"\s(\d+\.\d+(?:\.\d+)?)\s")


def collect(root: Path, host: str, entries: Iterable[Entry], call: Callable[..., Outcome] = run) -> dict[str, Any]:
    """Make the record of this machine. A value that the machine does not have is empty."""
    owners = {(one.uid, one.gid) for one in entries} | {one.user for one in serving.served(root)}
    listed = call(["dpkg-query", "--show", "--showformat=${binary:Package} ${Version} ${db:Status-Status}\\n"], 60)
    words = [line.split() for line in listed.stdout.splitlines()]
    return {
        "schema": SCHEMA,
        "host": host,
        "machine_id": _read(root / "etc/machine-id"),
        "debian": _read(root / "etc/debian_version"),
        "kernel": platform.release(),
        "nvidia_driver": driver_version(_read(root / "proc/driver/nvidia/version")),
        "packages": {line[0]: line[1] for line in words if len(line) == 3 and line[2] == "installed"},
        "users": _names({uid for uid, _gid in owners}, lambda number: pwd.getpwuid(number).pw_name),
        "groups": _names({gid for _uid, gid in owners}, lambda number: grp.getgrgid(number).gr_name),
    }


def driver_version(text: str) -> str:
    """The version in the text of /proc/driver/nvidia/version; empty without a driver."""
    first = text.splitlines()[0] if text else ""
    match = _DRIVER.search(f"{first} ")
    return match[1] if match else ""


def read(snapshot: Path) -> dict[str, Any]:
    """The record of a snapshot that was written to a directory. Raises ValueError."""
    value = files.read_json(snapshot / FILE)
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        raise ValueError(
            f"the snapshot has no {FILE} of schema {SCHEMA}: this collection did not make it. Choose another snapshot"
        )
    return value


def numbers_here(value: dict[str, Any]) -> Numbers:
    """The translation of saved account and group numbers by name: a name may have another number on this machine."""
    users = _numbers(value.get("users", {}), lambda name: pwd.getpwnam(name).pw_uid)
    groups = _numbers(value.get("groups", {}), lambda name: grp.getgrnam(name).gr_gid)
    return lambda uid, gid: (users.get(uid, uid), groups.get(gid, gid))


def owner_here(value: dict[str, Any]) -> Owner:
    """The function that returns an entry's owner as numbers of this machine."""
    numbers = numbers_here(value)
    return lambda one: numbers(one.uid, one.gid)


def _names(numbers: Iterable[int], name: Callable[[int], str]) -> dict[str, str]:
    found = {}
    for number in sorted(numbers):
        try:
            found[str(number)] = name(number)
        except KeyError:
            continue
    return found


def _numbers(names: dict[str, str], number: Callable[[str], int]) -> dict[int, int]:
    found = {}
    for saved, name in names.items():
        try:
            found[int(saved)] = number(name)
        except KeyError:
            continue
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
