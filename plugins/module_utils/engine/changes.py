# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the release that an instance must run with the release that runs. Private to the collection."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..core import systemd
from ..core.paths import Paths, unit_name
from ..core.records import known, plain
from .release import Release
from .state import history, pins, releases

NOTHING, START, UPDATE = "none", "start", "update"
"""NOTHING: the wanted release runs. START: the instance does not run, and `site` starts it. UPDATE: another release
runs, and `update_model` replaces it."""

_NUMBER = re.compile(r"release[ =]\d+")
"""The number of a release, which differs in every release."""


@dataclass(frozen=True)
class Texts:
    """The two files that make a release: unit and environment."""

    unit: str = ""
    environment: str = ""


@dataclass(frozen=True)
class Change:
    """`active` is the release whose unit is installed; None without a unit. `desired` is the release that must run;
    None for a new release, which is not staged."""

    action: str
    active: int | None
    desired: int | None
    served: bool = False
    """Whether `desired` has served here before."""
    differences: tuple[str, ...] = ()
    """Lines that the unit loses (-) and gets (+), and names of environment variables whose value differs."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return dict(plain(self))

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Change:
        return cls(**{**known(cls, value), "differences": tuple(value.get("differences", ()))})


def read_only(paths: Paths, release: Release | None, wanted: bool) -> bool:
    """Whether the container of a release must be read-only. `release` is the staged release; None for a new one.

    The answer is `wanted` until the release runs or has served: a release that fails in a read-only container must be
    able to start in a writable one. Raises SystemdError.
    """
    if release is None or release.read_only == wanted:
        return wanted
    name, number = release.instance, release.number
    served = releases.current_number(paths, name) == number or history.last(paths, name, number) is not None
    active = releases.active_number(paths, name) == number
    runs = active and systemd.active_state(unit_name(name)) in systemd.RUNNING
    return release.read_only if served or runs else wanted


def kept(paths: Paths, name: str, number: int) -> Texts:
    """The files of a release on this node. A file that cannot be read is empty: only people read the result."""
    return Texts(
        _text(paths, name, number, unit_name(name)),
        _text(paths, name, number, releases.ENV_FILE),
    )


def _text(paths: Paths, name: str, number: int, file: str) -> str:
    try:
        return (paths.release(name, number) / file).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def compare(paths: Paths, name: str, desired: int | None, wanted: Texts) -> Change:
    """The change of an instance that must run the release `desired`. Raises SystemdError."""
    pin = pins.in_force(paths, name, desired)
    if pin:
        desired, wanted = pin.release, kept(paths, name, pin.release)
    active = releases.active_number(paths, name)
    running = active is not None and systemd.active_state(unit_name(name)) in systemd.RUNNING
    served = desired is not None and history.last(paths, name, desired) is not None
    if active is None or active == desired:
        return Change(NOTHING if running else START, active, desired, served)
    lines = differences(kept(paths, name, active), wanted)
    return Change(UPDATE if running else START, active, desired, served, tuple(lines))


def differences(old: Texts, new: Texts) -> list[str]:
    """The differing lines of two units, each flag with its values, and the environment variables whose value
    differs."""
    lines = [
        f"{line[0]} {line[2:].strip()}"
        for line in difflib.ndiff(_lines(old.unit), _lines(new.unit))
        if line[:1] in "+-" and not _NUMBER.search(line)
    ]
    before, after = _variables(old.environment), _variables(new.environment)
    keys = sorted(key for key in {*before, *after} if before.get(key) != after.get(key))
    return lines + [f"environment: {key}" for key in keys]


def _lines(unit: str) -> list[str]:
    """The lines of a unit, with each flag and its values in one line."""
    joined: list[str] = []
    takes_values = False
    for line in unit.splitlines():
        words = line.strip(" \\")
        indented = line[:1] == " "
        if takes_values and indented and not words.startswith("-"):
            joined[-1] += f" {words}"
        else:
            joined.append(words)
            takes_values = indented and words.startswith("--") and "=" not in words
    return joined


def _variables(text: str) -> dict[str, str]:
    return dict(line.partition("=")[::2] for line in text.splitlines())
