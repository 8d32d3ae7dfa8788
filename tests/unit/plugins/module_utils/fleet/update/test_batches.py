# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""In which order a fleet is swapped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.fleet.update.batches import (
    Batch,
    BatchError,
    Due,
    batches,
    size_of,
)
from ansible_collections.baremetal.inference.plugins.module_utils.fleet.update.serving import Serving, View

SIZES = (1, "25%", "50%", "100%")


def fleet(hosts: int, *names: str) -> list[Due]:
    return [Due(f"n{number:02}", name) for number in range(hosts) for name in names or ("main",)]


def told(*views: tuple[str, str, str]) -> Serving:
    """Gateway, set, and hosts of the set that are up there."""
    made = Serving()
    for gateway, name, up in views:
        made.views.setdefault(name, []).append(View(gateway, frozenset(up.split())))
    return made


def all_healthy(due: list[Due]) -> Serving:
    names = {item.name for item in due}
    return told(*(("gw", name, " ".join(item.host for item in due if item.name == name)) for name in names))


def sizes(made: list[Batch]) -> list[int]:
    return [len(batch.items) for batch in made]


@pytest.mark.parametrize(
    ("size", "total", "expected"), [(1, 20, 1), ("3", 20, 3), ("25%", 20, 5), ("25%", 3, 1), ("100%", 7, 7)]
)
def test_sizes(size: str | int, total: int, expected: int) -> None:
    assert size_of(size, total) == expected


@pytest.mark.parametrize("size", ["0", "0%", "101%", "half", "-1", "", 0, "1.5"])
def test_what_is_no_size(size: str | int) -> None:
    with pytest.raises(BatchError, match=r"use a whole number from 1, or 1% to 100%"):
        size_of(size, 10)


def test_no_size_at_all() -> None:
    with pytest.raises(BatchError, match="update_batches is empty"):
        batches([], Serving(), [])


def test_a_canary_and_then_growing_batches() -> None:
    due = fleet(20)
    made = batches(due, all_healthy(due), SIZES)
    assert sizes(made) == [1, 5, 10, 4]
    assert made[0].items == (Due("n00", "main"),)
    assert not any(batch.alone for batch in made)


def test_one_replica_stays() -> None:
    due = fleet(4)
    assert sizes(batches(due, all_healthy(due), ["100%"])) == [3, 1]
    two = fleet(2)
    made = batches(two, all_healthy(two), ["100%"])
    assert sizes(made) == [1, 1]
    assert not any(batch.alone for batch in made)


def test_a_gang_is_an_instance_of_each_of_its_nodes() -> None:
    due = [Due("n0", "big", ("n1",)), Due("n1", "side"), Due("n2", "side"), Due("n3", "big", ("n4",))]
    made = batches(due, told(("gw", "big", "n0 n3"), ("gw", "side", "n1 n2")), ["100%"])
    for batch in made:
        nodes = [node for item in batch.items for node in item.nodes]
        assert len(nodes) == len(set(nodes))
    assert sorted(item for batch in made for item in batch.items) == sorted(due)
    assert not any(batch.alone for batch in made)


def test_the_only_replica_goes_alone_and_is_named() -> None:
    due = fleet(1)
    assert batches(due, all_healthy(due), SIZES) == [Batch((due[0],), (due[0],))]
    # Another one of its set, which does not serve, gets its turn first, and serves when this one goes.
    two = fleet(2)
    made = batches(two, told(("gw", "main", "n00")), ["100%"])
    assert made == [Batch((two[1],), ()), Batch((two[0],), ())]


def test_those_that_do_not_serve_come_first_and_all_at_once() -> None:
    due = fleet(4)
    made = batches(due, told(("gw", "main", "n00 n01")), ["100%"])
    assert made[0].items[:2] == (Due("n02", "main"), Due("n03", "main"))


def test_replicas_that_are_not_due_count() -> None:
    assert sizes(batches(fleet(2), told(("gw", "main", "n00 n01 other")), ["100%"])) == [2]


def test_each_gateway_keeps_a_server() -> None:
    """One gateway has lost n02, the other one n03: what both have is not enough to tell who may go together."""
    due, seen = fleet(2), told(("gw1", "main", "n00 n01 n03"), ("gw2", "main", "n00 n01"))
    made = batches(due, seen, ["100%"])
    assert made == [Batch((due[0],), ()), Batch((due[1],), ())]
    # Two nodes, each the only one of a gateway. When the first serves again, both gateways have it.
    made = batches(due, told(("gw1", "main", "n00"), ("gw2", "main", "n01")), ["100%"])
    assert made == [Batch((due[0],), (due[0],)), Batch((due[1],), ())]


def test_the_plan_leaves_what_was_seen_alone() -> None:
    seen = told(("gw", "main", "n00"))
    batches(fleet(2), seen, SIZES)
    assert seen == told(("gw", "main", "n00"))


def test_a_node_swaps_one_instance_at_a_time() -> None:
    due = fleet(2, "main", "small")
    for batch in batches(due, all_healthy(due), ["100%"]):
        assert len({item.host for item in batch.items}) == len(batch.items)


SETS = "abc"
SERVERS = st.sets(st.tuples(st.integers(0, 9), st.sampled_from(SETS)), max_size=20)


@given(
    SERVERS,
    st.lists(SERVERS, min_size=1, max_size=3),
    st.lists(st.sampled_from([1, 2, "10%", "25%", "50%", "100%"]), min_size=1, max_size=4),
)
def test_everybody_has_one_turn_and_no_gateway_loses_a_set_unsaid(
    due: set[tuple[int, str]], gateways: list[set[tuple[int, str]]], wanted: list[str | int]
) -> None:
    """Nodes that are not in the run, among them those that cannot be reached, count as gateways have them."""
    items = [Due(f"n{host}", name) for host, name in due]
    up = {
        (gateway, name): {f"n{host}" for host, other in serving if other == name}
        for gateway, serving in enumerate(gateways)
        for name in SETS
    }
    seen = told(*((f"gw{gateway}", name, " ".join(hosts)) for (gateway, name), hosts in up.items()))
    made = batches(items, seen, wanted)
    assert sorted(item for batch in made for item in batch.items) == sorted(items)
    for batch in made:
        assert len({item.host for item in batch.items}) == len(batch.items)
        for (_gateway, name), hosts in up.items():
            going = [item for item in batch.items if item.name == name]
            if hosts and hosts <= {item.host for item in going}:
                # What is planned as alone has no fellow of its set beside it.
                assert going == [item for item in batch.alone if item.name == name] and len(going) == 1
        for item in batch.items:
            for hosts in (hosts for (_gateway, name), hosts in up.items() if name == item.name):
                hosts.add(item.host)
