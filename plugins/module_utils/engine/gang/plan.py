# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans an engine over several nodes, as one of its members sees it. Private to the collection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...models.config.facts import ModelFacts
from ...models.fit import over_nodes
from ...models.fit.capabilities import Capability
from ...models.fit.devices import Device
from ...models.fit.division import TP
from ...models.fit.flags import PARALLEL_SIZES, count, world_size
from ...models.fit.misfit import Misfit
from .network import UNKNOWN, Network

DIVISION = "division"
"""The name of the check that a model is divided over its nodes."""


@dataclass(frozen=True)
class Span:
    """The nodes of an engine, and the place of this node among them."""

    nodes: int = 1
    rank: int = 0
    network: Network = UNKNOWN
    declared: bool = True
    """Whether the inventory declares the nodes. Otherwise, an operator asks for a plan over so many nodes."""


ONE_NODE = Span()


@dataclass(frozen=True)
class Planned:
    """The flags of an engine over several nodes, with the problems and notes of its plan about these flags."""

    flags: Mapping[str, Any]
    added: Mapping[str, int]
    """The proposed flags, which the model registry entry does not have."""
    problems: tuple[Misfit, ...] = ()
    notes: tuple[str, ...] = ()


def divide(
    span: Span,
    flags: Mapping[str, Any],
    facts: ModelFacts | None,
    devices: Sequence[Device],
    environment: Mapping[str, str],
    lowest: Capability | None,
    draft: ModelFacts | None,
) -> Planned:
    """The division over the nodes: that of the flags, or a proposed one where the flags have none."""
    notes = tuple(_notes(span, flags, devices))
    divided = any(flags.get(flag) is not None for flag in PARALLEL_SIZES)
    shared = world_size(flags) % span.nodes == 0
    if divided and shared:
        return Planned(flags, {}, notes=notes)
    proposal = None
    if facts:
        proposal = over_nodes.propose(
            facts,
            flags,
            devices,
            span.nodes,
            str(span.network),
            has_rdma=span.network.has_rdma,
            environment=environment,
            lowest_capability=lowest,
            draft=draft,
        )
    fits = [proposal.flags] if proposal and not proposal.misfits else []
    reasons = tuple(f"proposed: {reason}" for reason in proposal.reasons) if proposal else ()
    if divided:
        message = f"cannot share the {world_size(flags)} ranks of these flags evenly"
        return Planned(flags, {}, (Misfit(DIVISION, "nodes", span.nodes, message, fits),), (*notes, *reasons))
    problems = []
    if span.declared:
        message = f"need flags that divide the model: set {' or '.join(PARALLEL_SIZES[:2])} in its entry"
        problems.append(Misfit(DIVISION, "nodes", span.nodes, message, fits))
    added = proposal.flags if proposal else {}
    return Planned({**flags, **added}, added, tuple(problems), (*notes, *reasons))


def _notes(span: Span, flags: Mapping[str, Any], devices: Sequence[Device]) -> Iterator[str]:
    ranks = count(flags.get(TP)) or 1
    here = 1 if any(device.is_cpu for device in devices) else max(world_size(flags) // span.nodes, 1)
    if ranks > here and not span.network.has_rdma:
        yield (
            f"{TP}: {ranks} divides each layer over {span.nodes} nodes, which exchange data in each layer "
            f"({span.network}): without RDMA, answers are slow"
        )
