# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which node fetches which model from which source."""

from __future__ import annotations

from collections import Counter

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.fleet.transfers import (
    NETWORK,
    Limits,
    Node,
    Turn,
    deal,
    foresee,
)

LIMITS = Limits(network=2, source=2)


def fresh(count: int) -> list[Node]:
    return [Node(f"n{number}", wants=["m"]) for number in range(count)]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([], {}),
        ([Node("a", has={"m"}), Node("b")], {}),
        # The first node that wants a model fetches it, and the others wait.
        (fresh(3), {"n0": Turn("m", NETWORK)}),
        # A node with the model is the source of as many nodes as allowed, and no node uses the network.
        (
            [*fresh(3), Node("a", has={"m"})],
            {"n0": Turn("m", "a"), "n1": Turn("m", "a")},
        ),
        # Two nodes with the model share the other nodes evenly.
        (
            [Node("a", has={"m"}), *fresh(3), Node("b", has={"m"})],
            {"n0": Turn("m", "a"), "n1": Turn("m", "b"), "n2": Turn("m", "a")},
        ),
        # A node that left the play is no source, and fetches nothing.
        ([Node("a", has={"m"}, active=False), *fresh(1)], {"n0": Turn("m", NETWORK)}),
        ([Node("a", wants=["m"], active=False), *fresh(1)], {"n0": Turn("m", NETWORK)}),
        # A node does not fetch again from a node that gave wrong data: another node is the source, or else the network.
        (
            [Node("a", has={"m"}), Node("b", has={"m"}), Node("c", wants=["m"], refuses={"a"})],
            {"c": Turn("m", "b")},
        ),
        (
            [Node("a", has={"m"}), Node("b", wants=["m"]), Node("c", wants=["m"], refuses={"a"})],
            {"b": Turn("m", "a"), "c": Turn("m", NETWORK)},
        ),
        # While a node waits for one model, it fetches another model.
        (
            [Node("a", wants=["m"]), Node("b", wants=["m", "k"])],
            {"a": Turn("m", NETWORK), "b": Turn("k", NETWORK)},
        ),
        # A node in the middle of a transfer continues, and no other node fetches this model.
        (
            [Node("a", wants=["k"], has={"m"}), Node("b", wants=["m", "k"], last=Turn("k", NETWORK))],
            {"b": Turn("k", NETWORK)},
        ),
        # No node waits for a node that cannot be a source.
        (
            [Node("a", wants=["m"], gives=False), Node("b", wants=["m"])],
            {"a": Turn("m", NETWORK), "b": Turn("m", NETWORK)},
        ),
        ([Node("a", has={"m"}, gives=False), Node("b", wants=["m"])], {"b": Turn("m", NETWORK)}),
        # At most two nodes fetch from the network.
        ([Node(name, wants=[name]) for name in "abc"], {"a": Turn("a", NETWORK), "b": Turn("b", NETWORK)}),
        # After a failed fetch, as many other nodes as allowed fetch from the network, not one by one.
        (
            [Node("a", wants=["m"], failed={"m"}, active=False), *fresh(3)],
            {"n0": Turn("m", NETWORK), "n1": Turn("m", NETWORK)},
        ),
    ],
)
def test_each_node_gets_its_next_turn(nodes: list[Node], expected: dict[str, Turn]) -> None:
    assert deal(nodes, LIMITS) == expected


def test_without_peers_nodes_fetch_from_the_network_alone() -> None:
    nodes = [Node("a", has={"m"}), *fresh(3)]
    assert deal(nodes, Limits(2, 2, peers=False)) == {"n0": Turn("m", NETWORK), "n1": Turn("m", NETWORK)}


def test_a_node_with_the_model_is_a_source_in_later_turns() -> None:
    """After each turn, 1, 3, 9, then 27 nodes have the model. A node is the source of at most two nodes at a time."""
    found = foresee(fresh(27), LIMITS)
    sources = [turn.source for turns in found.values() for turn in turns]
    assert sources.count(NETWORK) == 1 and found["n0"] == [Turn("m", NETWORK)]
    assert len(sources) == 27
    # The first node is a source in three turns. Its first two receivers are sources in two turns.
    assert Counter(Counter(sources).values()) == {6: 1, 4: 2, 2: 6, 1: 1}


def test_every_node_gets_every_model_despite_refused_sources() -> None:
    nodes = [
        Node(f"n{number}", wants=["m", "k"], refuses={f"n{(number + step) % 9}" for step in range(number)})
        for number in range(9)
    ]
    found = foresee(nodes, Limits(1, 1))
    assert all(sorted(turn.model for turn in turns) == ["k", "m"] for turns in found.values())
