# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The flags of each known version of the engine: a base and later changes. Private to the collection.

`make catalogue` writes the modules of data. They are Python, not JSON, because Ansible sends only Python to nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from . import vllm_0_32_0, vllm_0_33_0

Flags = Mapping[str, Mapping[str, Any]]
"""The facts of each flag, by its name without leading dashes; the keys are the fields of catalogue.Flag."""

BASE = vllm_0_32_0
"""The oldest version, with all its flags."""

DELTAS = (vllm_0_33_0,)
"""The later versions, oldest first, each with its differences from the version before."""


def known() -> dict[str, Flags]:
    """All flags of each version, by version, oldest first."""
    found: dict[str, Flags] = {BASE.VERSION: BASE.FLAGS}
    flags: Flags = BASE.FLAGS
    for delta in DELTAS:
        flags = apply(flags, delta)
        found[delta.VERSION] = flags
    return found


def apply(flags: Flags, delta: Any) -> Flags:
    """The flags of a version: the flags of the version before, with the differences of `delta`."""
    found = {name: dict(facts) for name, facts in flags.items() if name not in delta.REMOVED}
    found |= delta.ADDED
    for name, facts in delta.CHANGED.items():
        # None: the version no longer has this fact.
        found[name] = {key: fact for key, fact in {**found[name], **facts}.items() if fact is not None}
    for name in {*delta.ADDED_VALUES, *delta.REMOVED_VALUES}:
        added, removed = delta.ADDED_VALUES.get(name, {}), delta.REMOVED_VALUES.get(name, {})
        for key in {*added, *removed}:
            found[name][key] = merge(found[name][key], added.get(key, ()), removed.get(key, ()))
    return dict(sorted(found.items()))


def merge(old: list[Any], added: Iterable[Any], removed: Iterable[Any]) -> list[Any]:
    """The old list without the removed values and with the added ones.

    The result is sorted if the old list is sorted. Otherwise, the added values come last.
    """
    new = [value for value in old if value not in removed] + list(added)
    return sorted(new, key=str) if old == sorted(old, key=str) else new
