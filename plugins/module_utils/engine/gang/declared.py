# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks what an instance over several nodes declares, without any other host. Private to the collection. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...core.problems import Problem
from ...models.fit.flags import DATA_PARALLEL, PARALLEL_SIZES, count, world_size
from ...models.registry.entries import Entry
from ..adapters import ENGINES

NODES, GANG_PORT, RENDEZVOUS_PORT = "nodes", "gang_port", "rendezvous_port"
EXECUTOR, DASHBOARD = "executor", "executor_dashboard"

PORTS: Mapping[str, int] = {GANG_PORT: 5110, RENDEZVOUS_PORT: 29510}
"""The keys with the ports of a gang, each with the port that a message suggests."""

KEYS = frozenset({NODES, *PORTS, EXECUTOR, DASHBOARD})

PORT_RANGE = "net.ipv4.ip_local_port_range"

EPHEMERAL = (32768, 60999)
"""First and last port that the kernel takes for connections from a node: the kernel's own net.ipv4.ip_local_port_range.
Engines of a gang listen on such ports, which they choose at each start. A node whose range has other ports is
refused (node.py).
"""


def check(where: str, raw: Mapping[str, Any], entry: Entry | None) -> list[Problem]:
    """Every mistake in the keys of a gang. `entry` is the entry of its model; None where the model registry has none.

    Another check covers the form of all ports.
    """
    nodes = raw.get(NODES)
    if nodes is None:
        message = f"belongs to an instance over several nodes: add {NODES}, or remove the key"
        return [Problem(where, message, key, raw[key]) for key in sorted(KEYS) if raw.get(key) is not None]
    found = [*_nodes(where, nodes), *_ports(where, raw)]
    if entry is not None and isinstance(nodes, list):
        found += [*_flags(where, raw, entry), *_division(where, raw, len(nodes), entry)]
    return found


def undivided(entry: Entry) -> bool:
    """Whether an entry leaves open how its model is divided. Then a plan proposes how."""
    return all(entry.flags.get(flag) is None for flag in PARALLEL_SIZES)


def gpus_per_node(entry: Entry, nodes: int) -> int:
    """The number of GPUs that an engine needs on each of its nodes."""
    return max(world_size(entry.flags) // nodes, 1)


def _nodes(where: str, nodes: Any) -> Iterator[Problem]:
    if not isinstance(nodes, list) or not all(isinstance(node, str) and node for node in nodes):
        yield Problem(where, "must be a list of names of the group inference; the first node leads", NODES, nodes)
        return
    if len(nodes) < 2:
        message = "must name two nodes or more: for an instance on one node, remove the key"
        yield Problem(where, message, NODES, nodes)
    for node in sorted({node for node in nodes if nodes.count(node) > 1}):
        yield Problem(where, f"names {node} twice: each node has one rank", NODES, nodes)


def _ports(where: str, raw: Mapping[str, Any]) -> Iterator[Problem]:
    for key, first in PORTS.items():
        port = raw.get(key)
        if port is None:
            yield Problem(where, f"is missing: an instance over several nodes needs this port, such as {first}", key)
        elif isinstance(port, int) and EPHEMERAL[0] <= port <= EPHEMERAL[1]:
            first, last = EPHEMERAL
            message = f"is one of {first} to {last}, which the kernel gives to connections: take a port outside"
            yield Problem(where, message, key, port)
    if raw.get("bridge_port") is not None:
        message = "is not possible for an instance over several nodes: a bridge would need as many nodes again"
        yield Problem(where, message, "bridge_port", raw["bridge_port"])


def _flags(where: str, raw: Mapping[str, Any], entry: Entry) -> Iterator[Problem]:
    computed = {flag for engine in ENGINES.values() for flag in engine.gangs.flags}
    for flag in sorted(computed & entry.flags.keys()):
        message = (
            f"serves {entry.name}, whose {flag} is {entry.flags[flag]}: the role sets this flag on each node of an "
            "instance over several nodes. Remove the flag from the entry, or serve an entry without the flag"
        )
        yield Problem(where, message, NODES, raw[NODES])


def _division(where: str, raw: Mapping[str, Any], nodes: int, entry: Entry) -> Iterator[Problem]:
    ranks = count(entry.flags.get(DATA_PARALLEL)) or 1
    if ranks > 1:
        message = (
            f"serves {entry.name}, whose {DATA_PARALLEL} is {ranks}: ranks of data parallelism over nodes fail "
            "together and need ports of their own. Declare an instance of the same name on each node instead, and the "
            "gateway balances between them; or divide experts by tensor-parallel-size with enable-expert-parallel"
        )
        yield Problem(where, message, NODES, raw[NODES])
        return
    world = world_size(entry.flags)
    if undivided(entry) or nodes < 2:
        return
    sizes = " x ".join(flag for flag in PARALLEL_SIZES if flag != DATA_PARALLEL)
    if world % nodes:
        message = (
            f"names {nodes} nodes, which cannot share {world} ranks evenly: {sizes} of {entry.name} must be a multiple "
            f"of {nodes}"
        )
        yield Problem(where, message, NODES, raw[NODES])
        return
    gpus = raw.get("gpus")
    there = len(gpus) if isinstance(gpus, list) else gpus
    if gpus is not None and raw.get("accelerator") != "cpu" and there != world // nodes:
        message = f"must be {world // nodes}, the GPUs on each of {nodes} nodes: {sizes} of {entry.name} is {world}"
        yield Problem(where, message, "gpus", gpus)
