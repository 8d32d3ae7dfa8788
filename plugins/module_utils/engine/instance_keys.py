# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hints for wrong keys of an instance. Private to the collection. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ..core.problems import nearest
from ..models.registry.entries import OWN_KEYS
from .adapters.catalogues import choose

_GPUS = "write gpus: a number, or a list of indexes and UUIDs; tensor-parallel-size of the model divides it over them"
_MODEL = "write model: one entry of the model registry. Each model has an instance of its own"

MEANT: Mapping[str, str] = {
    **dict.fromkeys(("env", "envs", "env_vars", "variables"), "write environment, or secret_environment for secrets"),
    **dict.fromkeys(("secrets", "secret_env"), "write secret_environment"),
    **dict.fromkeys(("gpu", "gpu_ids", "gpu_count", "num_gpus", "devices", "cuda_visible_devices"), _GPUS),
    **dict.fromkeys(("models", "model_name", "model_id", "serve", "serves"), _MODEL),
    **dict.fromkeys(("memory_limit", "mem_limit", "mem"), "write memory"),
    **dict.fromkeys(("shm", "ipc"), "write shm_size"),
    **dict.fromkeys(("bind", "listen", "address"), "set inference_address of the host: all its engines listen there"),
    "replicas": "make an instance of the same name on each further node: the gateway balances between them",
    "api_key": "set vllm_api_key for all engines of a node",
    "enabled": "write state: present or absent",
}
"""Wrong keys that operators often use, and what to use instead."""


def hint(key: str, keys: Collection[str]) -> str:
    """What to write instead of a key that is none of `keys`, the keys of an instance."""
    snake, kebab = key.strip().lower().replace("-", "_"), key.strip().lstrip("-").lower().replace("_", "-")
    if snake in keys:
        return f"write {snake!r}"
    if snake in MEANT:
        return MEANT[snake]
    catalogue = choose()
    flag = catalogue.aliases.get(kebab, kebab)
    if flag in catalogue.flags or flag in OWN_KEYS:
        return f"belongs to the model: write {flag!r} in its entry of the model registry"
    return nearest(key, keys)
