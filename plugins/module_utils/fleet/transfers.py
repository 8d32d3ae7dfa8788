# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which node of a play takes which model from where, in turns. Private to the collection; pure.

A turn is a slice of some seconds. The turns are dealt anew after each, so that a node that has a model by then feeds
others from then on: with a limit of 4 for each source, 1, 5, 25, 125 nodes have it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

NETWORK = ""
"""In the place of a node's name: the model's own source."""


@dataclass(frozen=True)
class Turn:
    """What a node brings now: `source` is a node, or NETWORK."""

    model: str
    source: str


@dataclass(frozen=True)
class Node:
    """How far a node is. Models are named by what they are, wherever they come from."""

    name: str
    wants: Sequence[str] = ()
    """What it has still to get, in this order."""
    has: Collection[str] = frozenset()
    """What is complete in its store, and verified."""
    refuses: Collection[str] = frozenset()
    """Nodes that gave it something wrong, or nothing."""
    failed: Collection[str] = frozenset()
    """What it could not fetch from the network."""
    active: bool = True
    """Whether it still takes part in the play."""
    gives: bool = True
    """Whether others can reach it."""
    last: Turn | None = None
    """What it was at in the turn before."""


@dataclass(frozen=True)
class Limits:
    """How many nodes fetch from the network, and take from one node, at a time."""

    network: int
    source: int
    peers: bool = True
    """Whether nodes take from each other at all."""


@dataclass
class _Table:
    """Who has been dealt what so far."""

    feeds: Counter[str] = field(default_factory=Counter)
    fetchers: int = 0
    awaited: set[str] = field(default_factory=set)
    """Models that a node fetches which will give them to the others."""


def deal(nodes: Sequence[Node], limits: Limits) -> dict[str, Turn]:
    """The next turn of each node that has one. There is at least one as long as an active node wants something.

    A model that no node has yet is fetched from the network by one node alone, the first that wants the model, until
    the model is there. Where this has failed for one node, all nodes may fetch: it is then unknown whether the node or
    the network was at fault.
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
    """From where each node will get all that it wants, if each takes one turn for it and nothing fails."""
    found: dict[str, list[Turn]] = {node.name: [] for node in nodes}
    while turns := deal(nodes, limits):
        for name, turn in turns.items():
            found[name].append(turn)
        nodes = [_after(node, turns) for node in nodes]
    return found


def _is_fetching(node: Node) -> bool:
    """Whether it is in the middle of a transfer from the network: another source would begin at zero."""
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
    """From where a node may bring a model now; None where it has to wait."""
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
