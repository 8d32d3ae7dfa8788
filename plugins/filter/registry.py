# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters that read a model registry.

Each function imports what it needs itself, because Ansible's worker processes may load every file of filters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any


def model_registry(text: str, filename: str) -> dict[str, Any]:
    """The entries of a file with a model registry. Raises InputError with file, line and column."""
    from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.text import load_registry

    return load_registry(text, filename)


def model_needs(
    models: Mapping[str, Any],
    facts: Mapping[str, Any],
    gpus: str = "",
    nodes: int = 1,
    unknown: Mapping[str, str] | None = None,
) -> str:
    """The GPUs that the entries of a model registry need, as text, with all mistakes of the entries and of the models'
    sources. Raises ValueError for unknown GPUs."""
    from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.needs import needs
    from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.adapters import KEY, source
    from ansible_collections.baremetal.inference.plugins.module_utils.store.sources.source import load_sources

    entries = {name: entry for name, entry in models.items() if isinstance(name, str) and isinstance(entry, Mapping)}
    adapters = {name: source(entry) for name, entry in entries.items() if isinstance(entry.get(KEY), str)}
    own = {name: entry for name, entry in entries.items() if isinstance(entry.get("model"), str) and KEY not in entry}
    return needs(models, facts, gpus, nodes, unknown=unknown, wrong=load_sources({**own, **adapters})[1])


def golden_prompts(models: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The golden prompts by entry, for entries that have some or get some from their base."""
    from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.variants import resolve

    found = {name: (resolve(models, name) or {}).get("golden-prompts", []) for name in models}
    return {name: prompts for name, prompts in found.items() if prompts}


def controller_files(models: Mapping[str, Any], instances: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """The files and directories of the controller that flags of served entries name, by their text in the entry."""
    from ansible_collections.baremetal.inference.plugins.module_utils.engine import controller_files as files

    return files.read(models, instances)


class FilterModule:
    """The filters of this file, in the form that Ansible needs."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "controller_files": controller_files,
            "golden_prompts": golden_prompts,
            "model_needs": model_needs,
            "model_registry": model_registry,
        }
