# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Adapters: entries with LoRA weights for another entry's model (`base:` and `adapter:`). Private to the collection.

The instances of the base serve an adapter under the adapter's own name. A filter that Ansible runs in many tasks
imports this file, so the file imports little.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...core.problems import Findings, names_secret, nearest

KEY = "adapter"

KEYS = frozenset({"base", KEY, "revision", "checksum", "description", "golden-prompts"})
"""The keys of an adapter's entry. All flags of the engine belong in the entry of the base."""

PROMPTS = ("system-prompt", "system-prompt-policy")

MOST, MOST_IN_MEMORY = "max-loras", "max-cpu-loras"
"""Flags of the base: adapters on the GPUs at a time, and in the host's memory."""


def is_adapter(entry: object) -> bool:
    """Whether an entry of the model registry is an adapter."""
    return isinstance(entry, Mapping) and KEY in entry


def of(models: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """The adapters whose bases are among these entries, sorted."""
    bases = set(names)
    return sorted(
        name
        for name, entry in models.items()
        if isinstance(name, str) and is_adapter(entry) and isinstance(entry.get("base"), str) and entry["base"] in bases
    )


def source(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An adapter's entry in the form of other entries: its weights come from `model`."""
    return {**entry, "model": entry[KEY]}


def check(where: str, name: str, entry: Mapping[Any, Any], models: Mapping[str, Any], found: Findings) -> None:
    """Add every mistake of an adapter's entry except wrong values of its own keys."""
    for key in entry:
        if not isinstance(key, str):
            found.problem(where, f"has the key {key!r}, which YAML does not read as a text: put it in quotes")
        elif key == "model":
            message = "belongs to the base: the source of an adapter's weights is its key adapter. Remove model"
            found.problem(where, message, key, entry[key])
        elif key in PROMPTS:
            message = (
                "is not possible for an adapter: the engine has one chat template for a model and its adapters. Remove "
                "it here, or set it in the entry of the base, whose adapters then have it as well"
            )
            found.problem(where, message, key, entry[key])
        elif key not in KEYS:
            message = (
                "is no key of an adapter: one engine serves the base and its adapters with the same flags. Set it in "
                f"the entry of the base; an adapter has {', '.join(sorted(KEYS))}"
            )
            found.problem(where, message, key, None if names_secret(key) else entry[key])
    _check_base(where, name, entry, models, found)


def _check_base(where: str, name: str, entry: Mapping[Any, Any], models: Mapping[str, Any], found: Findings) -> None:
    base = entry.get("base")
    if base is None:
        message = "is required beside adapter: the entry with the model that the adapter was trained on"
        found.problem(where, message, "base")
        return
    others = [
        other
        for other, each in models.items()
        if isinstance(other, str) and isinstance(each, Mapping) and "model" in each
    ]
    if isinstance(base, str) and base in models and base not in others:
        kind = "an adapter" if is_adapter(models[base]) else "no entry with a model of its own"
        above = models[base].get("base") if isinstance(models[base], Mapping) else None
        way = f"write base: {above}" if above in others else nearest(base, others)
        message = f"is {kind}: an adapter's base must be an entry with the key model: {way}"
        found.problem(where, message, "base", base)
    elif not isinstance(base, str) or base not in models or base == name:
        found.problem(where, f"must be another entry of the model registry: {nearest(str(base), others)}", "base", base)


def check_limits(where: str, name: str, flags: Mapping[str, Any], models: Mapping[str, Any], found: Findings) -> None:
    """Add the flags of a base that leave too little room for its adapters."""
    adapters = of(models, [name])
    if not adapters:
        return
    most, in_memory = _number(flags.get(MOST)), _number(flags.get(MOST_IN_MEMORY))
    if most is not None and most < len(adapters):
        message = (
            f"is less than the number of adapters, {len(adapters)} ({', '.join(adapters)}): raise it, or remove it: "
            "the default is that number"
        )
        found.problem(where, message, MOST, flags[MOST])
    if in_memory is not None and in_memory < (most or len(adapters)):
        message = f"must be at least {MOST}, which is {most or len(adapters)}: raise it, or remove it"
        found.problem(where, message, MOST_IN_MEMORY, flags[MOST_IN_MEMORY])


def _number(value: object) -> int | None:
    """The number in a flag; None where the flag has none, which the check of flags reports."""
    try:
        return None if isinstance(value, bool) else int(str(value))
    except ValueError:
        return None
