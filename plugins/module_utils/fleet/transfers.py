# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Assigns to each node of a play a model to fetch and a source, in turns. Private to the collection; pure.

A turn takes one minute. After each turn, new turns are assigned, and a node that has fetched a model is a source for
other nodes. With a limit of 4 nodes per source, 1, 5, 25, then 125 nodes have the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

NETWORK = ""
"""Stands for the model's own source, in place of a node's name."""


@dataclass(frozen=True)
class Turn:
    """The model that a node fetches in a turn. `source` is the name of a node, or NETWORK."""

    model: str
    source: str


@dataclass(frozen=True)
class Node:
    """A node's state. A model has the same name on all nodes, whatever its source."""

    name: str
    wants: Sequence[str] = ()
    """Models that the node still needs, in the order of fetching."""
    has: Collection[str] = frozenset()
    """Models that are complete and verified in the node's store."""
    refuses: Collection[str] = frozenset()
    """Nodes from which this node got wrong data or none."""
    failed: Collection[str] = frozenset()
    """Models that the node could not fetch from the network."""
    active: bool = True
    """Whether the node still takes part in the play."""
    gives: bool = True
    """Whether other nodes can fetch from this node."""
    last: Turn | None = None
    """The node's previous turn."""


@dataclass(frozen=True)
class Limits:
    """How many nodes may fetch at the same time: from the network, and from one other node."""

    network: int
    source: int
    peers: bool = True
    """Whether nodes may fetch from each other."""


@dataclass
class _Table:
    """The turns that are assigned so far."""

    feeds: Counter[str] = field(default_factory=Counter)
    """Number of nodes that fetch from each node."""
    fetchers: int = 0
    """Number of nodes that fetch from the network."""
    awaited: set[str] = field(default_factory=set)
    """Models that a node now fetches from the network, and will give to other nodes."""


def deal(nodes: Sequence[Node], limits: Limits) -> dict[str, Turn]:
    """The next turn of each node that has one. While an active node wants a model, at least one node has a turn.

    A model that no active node can give is fetched from the network. As soon as one of these nodes can give models to
    others, the nodes after it wait for it. No node waits after a failed fetch, which can be the node's fault or the
    network's, and without peers.
    """
    table = _Table()
    turns: dict[str, Turn] = {}
    for node in filter(_is_fetching, nodes):
        if node.last and table.fetchers < limits.network:
            turns[node.name] = _note(table, node, node.last)
    for node in nodes:
        for model in node.wants if node.active and node.name not in turns else ():
            source = _source(node, model, nodes, limits, table)
            if source is not None:
                turns[node.name] = _note(table, node, Turn(model, source))
                break
    return turns


def foresee(nodes: Sequence[Node], limits: Limits) -> dict[str, list[Turn]]:
    """The turns of each node until it has all models, if each model takes one turn and nothing fails."""
    found: dict[str, list[Turn]] = {node.name: [] for node in nodes}
    while turns := deal(nodes, limits):
        for name, turn in turns.items():
            found[name].append(turn)
        nodes = [_after(node, turns) for node in nodes]
    return found


def _is_fetching(node: Node) -> bool:
    """Whether a node is in the middle of a transfer from the network. With another source, it would start again."""
    last = node.last
    return node.active and last is not None and last.source == NETWORK and last.model in node.wants


def _note(table: _Table, node: Node, turn: Turn) -> Turn:
    if turn.source == NETWORK:
        table.fetchers += 1
        if node.gives:
            table.awaited.add(turn.model)
    else:
        table.feeds[turn.source] += 1
    return turn


def _source(node: Node, model: str, nodes: Sequence[Node], limits: Limits, table: _Table) -> str | None:
    """The source from which a node may fetch a model now; None if the node has to wait."""
    holders = [each.name for each in nodes if limits.peers and each.active and each.gives and model in each.has]
    usable = [name for name in holders if name not in node.refuses]
    if usable:
        source = min(usable, key=lambda name: table.feeds[name])
        return source if table.feeds[source] < limits.source else None
    alone = limits.peers and not holders and not any(model in each.failed for each in nodes)
    if table.fetchers >= limits.network or (alone and model in table.awaited):
        return None
    return NETWORK


def _after(node: Node, turns: Mapping[str, Turn]) -> Node:
    turn = turns.get(node.name)
    if turn is None:
        return node
    left = [model for model in node.wants if model != turn.model]
    return replace(node, wants=left, has={*node.has, turn.model}, last=turn)
