# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which node takes which model from where."""

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
        # The first that wants it fetches it, and the others wait.
        (fresh(3), {"n0": Turn("m", NETWORK)}),
        # Who has it feeds as many as it may, and nobody fetches it.
        (
            [*fresh(3), Node("a", has={"m"})],
            {"n0": Turn("m", "a"), "n1": Turn("m", "a")},
        ),
        # Two that have it share the others evenly.
        (
            [Node("a", has={"m"}), *fresh(3), Node("b", has={"m"})],
            {"n0": Turn("m", "a"), "n1": Turn("m", "b"), "n2": Turn("m", "a")},
        ),
        # One that left the play gives nothing, and takes nothing.
        ([Node("a", has={"m"}, active=False), *fresh(1)], {"n0": Turn("m", NETWORK)}),
        ([Node("a", wants=["m"], active=False), *fresh(1)], {"n0": Turn("m", NETWORK)}),
        # One that gave something wrong is not asked again: another, else the network, though others take from it.
        (
            [Node("a", has={"m"}), Node("b", has={"m"}), Node("c", wants=["m"], refuses={"a"})],
            {"c": Turn("m", "b")},
        ),
        (
            [Node("a", has={"m"}), Node("b", wants=["m"]), Node("c", wants=["m"], refuses={"a"})],
            {"b": Turn("m", "a"), "c": Turn("m", NETWORK)},
        ),
        # Waiting for one model, a node fetches another, which nobody has.
        (
            [Node("a", wants=["m"]), Node("b", wants=["m", "k"])],
            {"a": Turn("m", NETWORK), "b": Turn("k", NETWORK)},
        ),
        # Who is in the middle of a transfer goes on with it, and nobody else begins it.
        (
            [Node("a", wants=["k"], has={"m"}), Node("b", wants=["m", "k"], last=Turn("k", NETWORK))],
            {"b": Turn("k", NETWORK)},
        ),
        # Nobody waits for one that will not give it.
        (
            [Node("a", wants=["m"], gives=False), Node("b", wants=["m"])],
            {"a": Turn("m", NETWORK), "b": Turn("m", NETWORK)},
        ),
        ([Node("a", has={"m"}, gives=False), Node("b", wants=["m"])], {"b": Turn("m", NETWORK)}),
        # As many as may fetch from the network at a time.
        ([Node(name, wants=[name]) for name in "abc"], {"a": Turn("a", NETWORK), "b": Turn("b", NETWORK)}),
        # One could not fetch it: the others do not try one after the other.
        (
            [Node("a", wants=["m"], failed={"m"}, active=False), *fresh(3)],
            {"n0": Turn("m", NETWORK), "n1": Turn("m", NETWORK)},
        ),
    ],
)
def test_turns(nodes: list[Node], expected: dict[str, Turn]) -> None:
    assert deal(nodes, LIMITS) == expected


def test_without_peers_each_fetches_for_itself() -> None:
    nodes = [Node("a", has={"m"}), *fresh(3)]
    assert deal(nodes, Limits(2, 2, peers=False)) == {"n0": Turn("m", NETWORK), "n1": Turn("m", NETWORK)}


def test_who_has_it_feeds_others_from_then_on() -> None:
    """In waves: 1, 3, 9, 27 nodes have it, and none ever feeds more than two at a time."""
    found = foresee(fresh(27), LIMITS)
    sources = [turn.source for turns in found.values() for turn in turns]
    assert sources.count(NETWORK) == 1 and found["n0"] == [Turn("m", NETWORK)]
    assert len(sources) == 27
    # The first one in three waves, those that it fed first in two.
    assert Counter(Counter(sources).values()) == {6: 1, 4: 2, 2: 6, 1: 1}


def test_everybody_gets_everything_whatever_goes_wrong() -> None:
    nodes = [
        Node(f"n{number}", wants=["m", "k"], refuses={f"n{(number + step) % 9}" for step in range(number)})
        for number in range(9)
    ]
    found = foresee(nodes, Limits(1, 1))
    assert all(sorted(turn.model for turn in turns) == ["k", "m"] for turns in found.values())
