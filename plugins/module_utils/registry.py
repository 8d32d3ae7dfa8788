# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The model registry and the instances that serve from it. Private to the collection.

A registry entry is flat, as vLLM's users know it: a few keys are ours, every other key is an engine flag in its own
kebab-case spelling. Everything here is pure: it reads dictionaries and returns values and problems.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from .problems import InputError, Problem, nearest

OWN_KEYS = frozenset({"model", "revision", "description"})
"""Keys of an entry that are ours, not the engine's."""

PLANNED_KEYS = frozenset({"base", "system-prompt", "system-prompt-policy", "allow-remote-code"})
"""Words of the registry that this version does not serve yet: refused rather than handed to the engine."""

OWNED_FLAGS: Mapping[str, str] = {
    "host": "inference_address",
    "port": "the instance's port",
    "uds": "inference_address and the instance's port",
    "api-key": "vllm_api_key",
    "served-model-name": "the instance's name; the model's own name is served beside it",
    "tokenizer-revision": "revision",
    "code-revision": "revision",
    "shutdown-timeout": "vllm_drain_timeout",
    "ssl-keyfile": "TLS at the gateway; the node's own probe speaks plain HTTP",
    "ssl-certfile": "TLS at the gateway; the node's own probe speaks plain HTTP",
    "hf-token": "HF_TOKEN in vllm_secret_environment",
    "config": "the keys of the registry entry themselves",
}
"""Flags that the role renders itself, and the variable to use instead."""

NAME = re.compile(r"^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$")
"""An instance's name becomes a unit, a container and a file: 40 characters keep all three within their limits."""

FLAG = re.compile(r"^[a-z0-9]+(?:-[a-z0-9]+)*$")

RESERVED_PORTS: Mapping[int, str] = {
    5004: "the node's agent",
    8000: "the gateway",
    8404: "the gateway's metrics",
    9090: "Prometheus",
    9093: "Alertmanager",
    9100: "node_exporter",
    9400: "dcgm-exporter",
}
"""Ports that other parts of the collection listen on."""

PARALLEL_SIZES = ("tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size")
"""Flags whose product is the number of GPUs that an engine computes on (vllm/config/parallel.py)."""

ACCELERATORS = ("nvidia", "cpu")
STATES = ("present", "absent")
INSTANCE_KEYS = frozenset({"name", "model", "port", "gpus", "accelerator", "state"})


@dataclass(frozen=True)
class Instance:
    """One engine as the site declares it."""

    name: str
    model: str
    port: int
    gpus: tuple[str, ...] = ()
    accelerator: str = "nvidia"
    state: str = "present"


def check_models(models: Mapping[str, Any]) -> list[Problem]:
    """All mistakes in the registry's entries."""
    problems: list[Problem] = []
    for name, entry in models.items():
        where = f"models.{name}"
        if not isinstance(entry, Mapping):
            problems.append(Problem(where, f"must be a dictionary of keys, found {type(entry).__name__}"))
            continue
        if not isinstance(entry.get("model"), str) or not entry["model"]:
            problems.append(
                Problem(where, "is required: a path on the node, or controller:/path", "model", entry.get("model"))
            )
        for key, value in entry.items():
            problems.extend(_check_key(where, str(key), value))
    return problems


def _check_key(where: str, key: str, value: Any) -> list[Problem]:
    """The problems of one key of an entry."""
    if key in OWN_KEYS:
        return [] if isinstance(value, str) else [Problem(where, "must be a text", key, value)]
    if key in PLANNED_KEYS:
        return [Problem(where, "is not supported by this version of the collection: remove it", key)]
    kebab = key.replace("_", "-").lower().lstrip("-")
    if kebab in OWNED_FLAGS:
        return [Problem(where, f"is set by the role: use {OWNED_FLAGS[kebab]} instead", key, value)]
    if not FLAG.match(key):
        hint = f"write {kebab!r}" if FLAG.match(kebab) else "use the engine's own flag without its dashes"
        return [Problem(where, f"is not an engine flag in kebab-case: {hint}", key, value)]
    if value is None:
        return [Problem(where, "has no value: give one, true for a bare flag, or remove the key", key)]
    if isinstance(value, list) and not value:
        return [Problem(where, "is an empty list: give at least one value, or remove the key", key, value)]
    return []


def engine_flags(entry: Mapping[str, Any]) -> list[str]:
    """The engine's arguments of an entry, sorted by flag so that the same entry always renders the same.

    true gives ``--flag``, false ``--no-flag``, a list repeats its values behind the flag, a dictionary becomes JSON.
    """
    argv: list[str] = []
    for key in sorted(set(entry) - OWN_KEYS):
        value = entry[key]
        if isinstance(value, bool):
            argv.append(f"--{key}" if value else f"--no-{key}")
        elif isinstance(value, Mapping):
            argv += [f"--{key}", _json(value)]
        elif isinstance(value, list):
            argv += [f"--{key}", *(_json(item) if isinstance(item, Mapping) else str(item) for item in value)]
        else:
            argv += [f"--{key}", str(value)]
    return argv


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def present_instances(instances: Sequence[Any]) -> list[Any]:
    """The instances that shall be there; one that is no dictionary is passed on, for load_instances to report."""
    return [item for item in instances if not isinstance(item, Mapping) or item.get("state") != "absent"]


def served_models(models: Mapping[str, Any], instances: Sequence[Any]) -> dict[str, Any]:
    """The registry's entries that at least one present instance asks for."""
    wanted = {item.get("model") for item in present_instances(instances) if isinstance(item, Mapping)}
    return {name: entry for name, entry in models.items() if name in wanted}


def load_instances(instances: Sequence[Any], models: Mapping[str, Any]) -> list[Instance]:
    """The declared instances with their GPUs assigned.

    Raises InputError with every mistake in models and instances.
    """
    problems = check_models(models)
    seen: dict[str, dict[Any, str]] = {"name": {}, "port": {}}
    drafts: list[tuple[str, Mapping[str, Any]]] = []
    for position, raw in enumerate(instances):
        where = f"instances[{position}]"
        if not isinstance(raw, Mapping):
            problems.append(Problem(where, f"must be a dictionary, found {type(raw).__name__}"))
            continue
        where = f"{where} ({raw.get('name', 'without a name')})"
        problems += _check_instance(where, raw, models)
        for key, users in seen.items():
            value = raw.get(key)
            if value is None or isinstance(value, (dict, list)):
                continue
            if value in users:
                problems.append(Problem(where, f"is used twice: {users[value]} has it already", key, value))
            users.setdefault(value, where)
        drafts.append((where, raw))
    if problems:
        raise InputError(problems)
    return _with_gpus(drafts, models)


def _check_instance(where: str, raw: Mapping[str, Any], models: Mapping[str, Any]) -> list[Problem]:
    problems = [
        Problem(where, f"is not a key of an instance: {nearest(str(key), INSTANCE_KEYS)}", str(key))
        for key in sorted(set(map(str, raw)) - INSTANCE_KEYS)
    ]
    name, model, port = raw.get("name"), raw.get("model"), raw.get("port")
    if not isinstance(name, str) or not NAME.match(name):
        problems.append(Problem(where, "must be 1 to 40 lower-case letters, digits and inner dashes", "name", name))
    elif name in models and name != model:
        message = "is the name of another model in the registry: clients that ask for that model would get this one"
        problems.append(Problem(where, message, "name", name))
    if raw.get("state") != "absent" and (not isinstance(model, str) or model not in models):
        problems.append(Problem(where, f"is not in the registry: {nearest(str(model), models)}", "model", model))
    if isinstance(port, bool) or not isinstance(port, int) or not 1024 <= port <= 65535:
        problems.append(Problem(where, "must be a number from 1024 to 65535 (the first engine has 5005)", "port", port))
    elif port in RESERVED_PORTS:
        problems.append(Problem(where, f"belongs to {RESERVED_PORTS[port]}: take another one", "port", port))
    for key, allowed in (("accelerator", ACCELERATORS), ("state", STATES)):
        if raw.get(key, allowed[0]) not in allowed:
            problems.append(Problem(where, f"must be one of {', '.join(allowed)}", key, raw[key]))
    gpus = raw.get("gpus", 1)
    counted = isinstance(gpus, int) and not isinstance(gpus, bool) and gpus >= 0
    listed = isinstance(gpus, list) and all(isinstance(gpu, (int, str)) and not isinstance(gpu, bool) for gpu in gpus)
    if not counted and not listed:
        problems.append(Problem(where, "must be a count, or a list of indexes and UUIDs", "gpus", gpus))
    return problems


def _with_gpus(drafts: Sequence[tuple[str, Mapping[str, Any]]], models: Mapping[str, Any]) -> list[Instance]:
    """Instances with the GPUs they get: listed ones as they are, counted ones from the lowest free index on."""
    taken: dict[str, str] = {}
    problems: list[Problem] = []
    wanted: list[list[str] | int] = []
    for where, raw in drafts:
        if raw.get("accelerator", ACCELERATORS[0]) != "nvidia" or raw.get("state") == "absent":
            wanted.append(0)
            continue
        needed = _world_size(models[raw["model"]])
        gpus = raw.get("gpus", needed)
        if (len(gpus) if isinstance(gpus, list) else gpus) < needed:
            message = f"is too few: {' x '.join(PARALLEL_SIZES)} of {raw['model']} needs {needed}"
            problems.append(Problem(where, message, "gpus", gpus))
        for gpu in map(str, gpus if isinstance(gpus, list) else []):
            if gpu in taken:
                message = f"is given to {taken[gpu]} already: a GPU serves one instance"
                problems.append(Problem(where, message, "gpus", gpu))
            taken.setdefault(gpu, raw["name"])
        wanted.append([str(gpu) for gpu in gpus] if isinstance(gpus, list) else gpus)
    if problems:
        raise InputError(problems)
    instances = []
    for (_where, raw), want in zip(drafts, wanted, strict=True):
        if isinstance(want, int):
            free = (str(index) for index in range(len(taken) + want) if str(index) not in taken)
            want = list(islice(free, want))
            taken.update(dict.fromkeys(want, raw["name"]))
        instances.append(
            Instance(
                name=raw["name"],
                model=raw.get("model") or "",
                port=raw["port"],
                gpus=tuple(want),
                accelerator=raw.get("accelerator", ACCELERATORS[0]),
                state=raw.get("state", STATES[0]),
            )
        )
    return instances


def _world_size(entry: Mapping[str, Any]) -> int:
    """GPUs that the engine spreads over; a size that is no number is left to the engine to refuse."""
    size = 1
    for flag in PARALLEL_SIZES:
        value = str(entry.get(flag, 1))
        size *= int(value) if value.isdigit() else 1
    return size
