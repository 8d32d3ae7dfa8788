# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proposes how to divide a model over several nodes, and says why. Private to the collection. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..config.facts import ModelFacts
from . import division
from .capabilities import Capability
from .devices import Device
from .division import PP, TP
from .fit import Fit, fit
from .flags import PARALLEL_SIZES, read
from .misfit import Misfit
from .share import Share

MOST_NODES = 64
"""Largest number of nodes in a plan."""


@dataclass(frozen=True)
class Proposal:
    """Flags that divide a model over nodes."""

    flags: Mapping[str, int]
    reasons: tuple[str, ...]
    """Why these flags, and why not others: for an operator."""
    misfits: tuple[Misfit, ...] = ()
    """Why the model does not fit even with these flags."""
    unknown: tuple[str, ...] = ()
    """Facts that could not be checked; only without misfits."""


def propose(
    facts: ModelFacts,
    entry: Mapping[str, object],
    devices: Sequence[Device],
    nodes: int,
    network: str,
    *,
    has_rdma: bool,
    environment: Mapping[str, object] | None = None,
    lowest_capability: Capability | None = None,
    draft: ModelFacts | None = None,
) -> Proposal:
    """The best division over equal nodes, each with these devices. Sizes in the entry do not count.

    The first division without misfits is the best. If there is none, the division with the fewest misfits. With RDMA,
    the first candidate divides each layer over all nodes. Stages follow: each layer is then divided only inside a node.
    Without RDMA, stages come first. CPUs have no stages. `network` is the network in words.
    """
    rest = {flag: value for flag, value in entry.items() if flag not in PARALLEL_SIZES}
    on_cpu = any(device.is_cpu for device in devices)
    gpus = 1 if on_cpu else max(len(devices), 1)
    best: dict[str, int] = {}
    answer: Fit | None = None
    # On CPUs, an engine with stages dies at its first request.
    for flags in [{TP: nodes}] if on_cpu else _divisions(gpus, nodes, across=has_rdma):
        found = _fit(facts, {**rest, **flags}, devices, nodes, environment, lowest_capability, draft)
        if answer is None or len(found.misfits) < len(answer.misfits):
            best, answer = flags, found
        if not found.misfits:
            break
    reasons = _reasons(facts, rest, best, gpus, nodes, network, has_rdma=has_rdma, on_cpu=on_cpu)
    if answer is None:
        return Proposal(best, tuple(reasons))
    return Proposal(best, tuple(reasons), answer.misfits, () if answer.misfits else answer.unknown)


def _divisions(gpus: int, nodes: int, *, across: bool) -> Iterator[dict[str, int]]:
    """Divisions over nodes, the best first. `across`: each layer over all nodes is better than stages."""
    tensor = {TP: gpus * nodes}
    whole = [size for size in range(gpus, 0, -1) if gpus % size == 0]
    stages = [(size, nodes * gpus // size) for size in whole]
    # Divisions that leave GPUs without work.
    stages += [(size, nodes) for size in range(gpus - 1, 0, -1)]
    if across:
        yield tensor
    for size, count in dict.fromkeys(stages):
        yield {**({TP: size} if size > 1 else {}), PP: count}
    if not across:
        yield tensor


def _fit(
    facts: ModelFacts,
    entry: Mapping[str, object],
    devices: Sequence[Device],
    nodes: int,
    environment: Mapping[str, object] | None,
    lowest_capability: Capability | None,
    draft: ModelFacts | None,
) -> Fit:
    """The answer for the first node with misfits; if no node has any, the answer for the last node."""
    for rank in range(nodes):
        share = Share(nodes, rank)
        found = fit(facts, entry, devices, environment, lowest_capability, draft=draft, share=share)
        if found.misfits:
            break
    return found


def _reasons(
    facts: ModelFacts,
    rest: Mapping[str, object],
    chosen: Mapping[str, int],
    gpus: int,
    nodes: int,
    network: str,
    *,
    has_rdma: bool,
    on_cpu: bool,
) -> Iterator[str]:
    tensor = gpus * nodes
    flags, _unread = read({**rest, TP: tensor})
    refusals = [
        f"{TP}: {tensor} is not possible: the size {one.message}" for one in division.check(facts.config, flags, ())
    ]
    inside = chosen.get(TP, 1)
    if PP not in chosen:
        yield f"{TP}: {inside} divides each layer over all {nodes} nodes"
        if on_cpu:
            yield f"engines on processors of several nodes cannot have stages ({PP}): they die at the first request"
        elif has_rdma:
            yield f"{network}: fast enough for what the GPUs of all nodes exchange in each layer"
        else:
            yield f"{network}: slow for what the GPUs of all nodes exchange in each layer, but no stages are possible"
        return
    layers = f"{PP}: {chosen[PP]} gives each node a part of the layers"
    yield f"{TP}: {inside} divides a layer inside a node, {layers}" if inside > 1 else layers
    if refusals:
        yield refusals[0]
    if not has_rdma:
        yield f"{network}: stages exchange little, while {TP} over nodes would exchange data in each layer"
