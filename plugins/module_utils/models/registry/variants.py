# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variants: entries that share another entry's weights (`base:`). Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.problems import Findings, nearest
from .adapters import is_adapter, source

NOT_SHARED = frozenset({"base", "description"})
"""Keys that an entry does not take over from its base."""


def lineage(models: Mapping[str, Any], name: str) -> list[str]:
    """An entry, its base, the base of this base, and so on. Ends at an adapter, and before a name that is missing or
    occurs again."""
    names: list[str] = []
    following: Any = name
    while isinstance(following, str) and following in models and following not in names:
        names.append(following)
        entry = models[following]
        # An adapter has weights of its own.
        following = entry.get("base") if isinstance(entry, Mapping) and not is_adapter(entry) else None
    return names


def resolve(models: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """An entry with the keys of its bases; its own keys win.

    None if the entry or a base is missing or no dictionary, if a base is an adapter, or if the bases form a circle. An
    adapter takes no key from its base. Its weights are its `model`.
    """
    if is_adapter(models.get(name)):
        return {key: value for key, value in source(models[name]).items() if key != "base"}
    names = lineage(models, name)
    entries = [models[each] for each in names]
    if not entries or any(not isinstance(entry, Mapping) for entry in entries) or "base" in entries[-1]:
        return None
    resolved: dict[str, Any] = {}
    for entry in reversed(entries):
        resolved.update({key: value for key, value in entry.items() if key not in NOT_SHARED})
    own = entries[0]
    return {**resolved, "description": own["description"]} if "description" in own else resolved


def check_bases(models: Mapping[str, Any], found: Findings) -> None:
    """Add every mistake in the entries' `base:`. A circle is reported once, for the alphabetically first name."""
    for name, entry in models.items():
        if not isinstance(name, str) or not isinstance(entry, Mapping) or "base" not in entry or is_adapter(entry):
            continue
        where, base = f"models.{name}", entry["base"]
        for key in ("model", "revision", "checksum"):
            if key in entry:
                message = "belongs to the base, whose weights a variant shares: remove it, or remove base"
                found.problem(where, message, key, entry[key])
        if not isinstance(base, str) or base not in models:
            others = [other for other in models if isinstance(other, str) and other != name]
            message = f"must be another entry of the model registry: {nearest(str(base), others)}"
            found.problem(where, message, "base", base)
            continue
        if is_adapter(models[base]):
            message = "is an adapter, and a variant needs the weights of a model: name the base of the adapter"
            found.problem(where, message, "base", base)
            continue
        circle = _circle(models, name)
        if circle and name == min(circle):
            way = " → ".join([*circle, name])
            found.problem(
                where, f"goes in a circle, {way}: write model instead of base in one of these entries", "base", base
            )


def _circle(models: Mapping[str, Any], name: str) -> list[str]:
    """The names from an entry back to itself; empty without a circle."""
    names = lineage(models, name)
    last = models[names[-1]]
    return names if isinstance(last, Mapping) and last.get("base") == name else []
