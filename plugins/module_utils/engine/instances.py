# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The instances that serve models of the model registry. Private to the collection. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ..core import defaults
from ..core.problems import InputError, Problem, is_integer, nearest
from ..models.fit.flags import PARALLEL_SIZES, world_size
from ..models.prompts import refusals
from ..models.registry.entries import Entry, Registry
from ..models.registry.needed import needed
from ..models.registry.variants import lineage
from . import own_settings
from .gang import declared as gangs
from .gang import executors
from .gpu_assignment import Node, Wish, assign, read_node
from .instance import Instance
from .instance_keys import hint
from .inventory import present_instances

NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
"""An instance's name becomes a unit, a container and a file: 40 characters keep all three within their limits."""

RESERVED_PORTS: Mapping[int, str] = {
    defaults.AGENT_PORT: "the node's agent",
    defaults.GATEWAY_PORT: "the gateway",
    defaults.GATEWAY_METRICS_PORT: "the gateway's metrics",
    defaults.PROMETHEUS_PORT: "Prometheus",
    defaults.ALERTMANAGER_PORT: "Alertmanager",
    defaults.NODE_EXPORTER_PORT: "node_exporter",
    defaults.DCGM_EXPORTER_PORT: "dcgm-exporter",
}
"""Ports that other parts of the collection listen on."""

ACCELERATORS = ("nvidia", "cpu")
STATES = ("present", "absent")

MAX_GPUS = 64
"""The most GPUs of an instance on a node: 8 GPUs with 7 MIG devices each have 56."""

INSTANCE_KEYS = (
    frozenset({"name", "model", "port", "bridge_port", "gpus", "accelerator", "state"}) | gangs.KEYS | own_settings.KEYS
)

_UNIQUE: Mapping[str, str] = {
    "name": "name",
    "port": "port",
    "bridge_port": "port",
    **dict.fromkeys(gangs.PORTS, "port"),
}
"""Keys whose values must be unique, with the kind of value: a bridge's port must differ from all other ports."""

_PORTS = tuple(key for key, kind in _UNIQUE.items() if kind == "port")


def served_entries(instances: Sequence[Any], entries: Mapping[str, Entry]) -> list[Entry]:
    """The entries that present instances serve, each once."""
    asked = [item.get("model") for item in present_instances(instances) if isinstance(item, Mapping)]
    return [entry for name, entry in entries.items() if name in asked]


def needed_entries(models: Mapping[str, Any], instances: Sequence[Instance]) -> dict[str, Any]:
    """The entries of the model registry that the engines of the present instances need."""
    wanted = needed(models, [item.model for item in instances if item.state == "present"])
    return {name: models[name] for name in sorted(wanted)}


def load_instances(
    instances: Sequence[Any], registry: Registry, gpus: Sequence[Mapping[str, Any]] | None = None
) -> list[Instance]:
    """The declared instances with their GPUs, from the fact `gpus` where the fact is given.

    Raises InputError with every mistake in model registry and instances.
    """
    problems = list(registry.problems)
    seen: dict[str, dict[Any, str]] = {"name": {}, "port": {}}
    drafts: list[tuple[str, Mapping[str, Any]]] = []
    for position, raw in enumerate(instances):
        where = f"instances[{position}]"
        if not isinstance(raw, Mapping):
            problems.append(Problem(where, f"must be a dictionary, found {type(raw).__name__}"))
            continue
        where = f"{where} ({raw.get('name', 'without a name')})"
        problems += _check_instance(where, raw, registry)
        for key, kind in _UNIQUE.items():
            value, users = raw.get(key), seen[kind]
            if not isinstance(value, (str, int)):
                continue
            if value in users:
                problems.append(Problem(where, f"is used twice: {users[value]} has it already", key, value))
            users.setdefault(value, where)
        drafts.append((where, raw))
    for where, raw in drafts:
        problems += executors.conflicts(where, raw, drafts, _PORTS)
    for entry in served_entries(instances, registry.entries):
        problems += refusals.check_entry(entry)
    if problems:
        raise InputError(problems)
    return _with_gpus(drafts, registry.entries, read_node(gpus))


def sound_instances(
    instances: Sequence[Any],
    models: Mapping[str, Any],
    registry: Registry,
    gpus: Sequence[Mapping[str, Any]] | None = None,
) -> tuple[list[Instance], list[Problem]]:
    """The present instances that can be planned, and every mistake in model registry and instances.

    If there is a mistake, each sound instance is loaded by itself: several instances that ask for a number of GPUs may
    then get the same GPUs. `models` is the model registry as it was declared.
    """
    try:
        loaded, problems = load_instances(instances, registry, gpus), []
    except InputError as error:
        wrong = {problem.where for problem in registry.problems}
        entries = {
            name: entry
            for name, entry in registry.entries.items()
            if not wrong & {f"models.{each}" for each in lineage(models, name)}
        }
        sound = replace(registry, names=frozenset(entries), entries=entries, problems=[])
        loaded, problems = [], error.problems
        for raw in instances:
            with suppress(InputError):
                loaded += load_instances([raw], sound, gpus)
    return [instance for instance in loaded if instance.state == "present"], problems


def _check_instance(where: str, raw: Mapping[str, Any], registry: Registry) -> list[Problem]:
    problems = [
        Problem(where, f"is not a key of an instance: {hint(str(key), INSTANCE_KEYS)}", str(key))
        for key in sorted(set(map(str, raw)) - INSTANCE_KEYS)
    ]
    name, model, port = raw.get("name"), raw.get("model"), raw.get("port")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        problems.append(Problem(where, "must be 1 to 40 lower-case letters, digits and inner dashes", "name", name))
    elif raw.get("state") != "absent" and name in registry.names and name != model:
        message = (
            "is the name of another model of the model registry: clients that ask for that model would get this one"
        )
        problems.append(Problem(where, message, "name", name))
    if raw.get("state") != "absent" and model is None:
        message = f"is required: an entry of the model registry, {nearest('', registry.names)}"
        problems.append(Problem(where, message, "model"))
    elif raw.get("state") != "absent" and (not isinstance(model, str) or model not in registry.names):
        message = f"is not in the model registry: {nearest(str(model), registry.names)}"
        problems.append(Problem(where, message, "model", model))
    elif raw.get("state") != "absent" and (entry := registry.entries.get(str(model))) and entry.adapter_of:
        message = f"is an adapter, which the instances of its base serve: name {entry.adapter_of}"
        problems.append(Problem(where, message, "model", model))
    problems += _check_port(where, "port", port)
    for key in ("bridge_port", *gangs.PORTS):
        if raw.get(key) is not None:
            problems += _check_port(where, key, raw[key])
    if raw.get("state") != "absent":
        problems += gangs.check(where, raw, registry.entries.get(str(model)))
        problems += executors.problems(where, raw)
        problems += _check_executor_ports(where, raw)
    for key, allowed in (("accelerator", ACCELERATORS), ("state", STATES)):
        if raw.get(key, allowed[0]) not in allowed:
            problems.append(Problem(where, f"must be one of {', '.join(allowed)}", key, raw[key]))
    gpus = raw.get("gpus", 1)
    counted = is_integer(gpus) and 0 <= gpus <= MAX_GPUS
    listed = isinstance(gpus, list) and all(isinstance(gpu, (int, str)) and not isinstance(gpu, bool) for gpu in gpus)
    if not counted and not listed:
        problems.append(
            Problem(
                where,
                f"must be a number from 0 to {MAX_GPUS}, or a list of indexes and UUIDs. Without gpus, an instance "
                "gets as many as its model needs",
                "gpus",
                gpus,
            )
        )
    return problems + own_settings.check(where, raw)


def _check_port(where: str, key: str, port: Any) -> list[Problem]:
    if not is_integer(port) or not 1024 <= port <= 65535:
        return [Problem(where, "must be a number from 1024 to 65535 (the first engine has 5005)", key, port)]
    if port in RESERVED_PORTS:
        return [Problem(where, f"belongs to {RESERVED_PORTS[port]}: take another one", key, port)]
    return []


def _check_executor_ports(where: str, raw: Mapping[str, Any]) -> list[Problem]:
    """Ports of a gang's executor that belong to other parts of the collection. _check_port has checked the first."""
    needed = executors.ports(raw)
    return [
        executors.port_problem(where, raw, port, f"belongs to {owner}: take another {gangs.RENDEZVOUS_PORT}")
        for port, owner in RESERVED_PORTS.items()
        if port in needed[1:]
    ]


def _with_gpus(
    drafts: Sequence[tuple[str, Mapping[str, Any]]], entries: Mapping[str, Entry], node: Node
) -> list[Instance]:
    """Instances with the GPUs they get. Raises InputError."""
    problems: list[Problem] = []
    wishes: list[Wish] = []
    for where, raw in drafts:
        gpus: Any = 0
        if raw.get("accelerator", ACCELERATORS[0]) == "nvidia" and raw.get("state") != "absent":
            entry = entries[raw["model"]]
            nodes = raw.get(gangs.NODES)
            needed = gangs.gpus_per_node(entry, len(nodes)) if nodes else world_size(entry.flags)
            gpus = raw.get("gpus", needed)
            if needed > MAX_GPUS:
                message = f"asks for {needed} GPUs, more than a machine has: lower {', '.join(PARALLEL_SIZES)}"
                problems.append(Problem(where, message, "model", raw["model"]))
                gpus = 0
            elif (len(gpus) if isinstance(gpus, list) else gpus) < needed:
                message = f"is too few: {' x '.join(PARALLEL_SIZES)} of {raw['model']} needs {needed}"
                problems.append(Problem(where, message, "gpus", gpus))
        wishes.append(Wish(where, raw["name"], tuple(map(str, gpus)) if isinstance(gpus, list) else gpus))
    assigned, mistakes = assign(wishes, node)
    if problems or mistakes:
        raise InputError([*problems, *mistakes])
    return [
        Instance(
            name=raw["name"],
            model=raw.get("model") or "",
            port=raw["port"],
            gpus=gpus,
            accelerator=raw.get("accelerator", ACCELERATORS[0]),
            state=raw.get("state", STATES[0]),
            bridge_port=raw.get("bridge_port"),
            nodes=tuple(raw.get(gangs.NODES) or ()),
            gang_port=raw.get(gangs.GANG_PORT),
            rendezvous_port=raw.get(gangs.RENDEZVOUS_PORT),
            executor=executors.normal(raw.get(executors.KEY)),
            executor_dashboard=bool(raw.get(executors.DASHBOARD)),
            **own_settings.read(raw),
        )
        for (_where, raw), gpus in zip(drafts, assigned, strict=True)
    ]
