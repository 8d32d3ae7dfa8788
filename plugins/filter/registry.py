# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters that read a model registry.

The imports stand inside the functions: Ansible loads every file of filters in each worker process, for each task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any


def model_registry(text: str, filename: str) -> dict[str, Any]:
    """The entries of a registry file. Raises InputError with file, line and column."""
    from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.text import load_registry

    return load_registry(text, filename)


def model_needs(models: Mapping[str, Any], facts: Mapping[str, Any], gpus: str = "", nodes: int = 1) -> str:
    """The GPUs that the models of a registry need, as text. Raises ValueError for unknown GPUs."""
    from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.needs import needs

    return needs(models, facts, gpus, nodes)


def golden_prompts(models: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The golden prompts by entry, for entries that have some or get some from their base."""
    from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.variants import resolve

    found = {name: (resolve(models, name) or {}).get("golden-prompts", []) for name in models}
    return {name: prompts for name, prompts in found.items() if prompts}


def controller_files(models: Mapping[str, Any], instances: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """The files and directories of the controller that flags of served entries name, by their text in the registry."""
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
