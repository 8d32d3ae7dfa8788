# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The batches in which a fleet is swapped."""

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


def serving_of(*views: tuple[str, str, str]) -> Serving:
    """Make the servers that are up from views: gateway, set, and the hosts that are up."""
    made = Serving()
    for gateway, name, up in views:
        made.views.setdefault(name, []).append(View(gateway, frozenset(up.split())))
    return made


def all_healthy(due: list[Due]) -> Serving:
    names = {item.name for item in due}
    return serving_of(*(("gw", name, " ".join(item.host for item in due if item.name == name)) for name in names))


def sizes(made: list[Batch]) -> list[int]:
    return [len(batch.items) for batch in made]


@pytest.mark.parametrize(
    ("size", "total", "expected"), [(1, 20, 1), ("3", 20, 3), ("25%", 20, 5), ("25%", 3, 1), ("100%", 7, 7)]
)
def test_a_size_is_a_number_or_a_share(size: str | int, total: int, expected: int) -> None:
    assert size_of(size, total) == expected


@pytest.mark.parametrize("size", ["0", "0%", "101%", "half", "-1", "", 0, "1.5", pytest.param("1" * 5000, id="digits")])
def test_an_invalid_size_is_an_error(size: str | int) -> None:
    with pytest.raises(BatchError, match=r"use a whole number from 1, or 1% to 100%"):
        size_of(size, 10)


def test_at_least_one_size_is_required() -> None:
    with pytest.raises(BatchError, match="update_batches is empty"):
        batches([], Serving(), [])


def test_batches_have_the_declared_sizes() -> None:
    due = fleet(20)
    made = batches(due, all_healthy(due), SIZES)
    assert sizes(made) == [1, 5, 10, 4]
    assert made[0].items == (Due("n00", "main"),)
    assert not any(batch.alone for batch in made)


def test_one_replica_of_a_set_keeps_serving() -> None:
    due = fleet(4)
    assert sizes(batches(due, all_healthy(due), ["100%"])) == [3, 1]
    two = fleet(2)
    made = batches(two, all_healthy(two), ["100%"])
    assert sizes(made) == [1, 1]
    assert not any(batch.alone for batch in made)


def test_a_gang_is_an_instance_of_each_of_its_nodes() -> None:
    due = [Due("n0", "big", ("n1",)), Due("n1", "side"), Due("n2", "side"), Due("n3", "big", ("n4",))]
    made = batches(due, serving_of(("gw", "big", "n0 n3"), ("gw", "side", "n1 n2")), ["100%"])
    for batch in made:
        nodes = [node for item in batch.items for node in item.nodes]
        assert len(nodes) == len(set(nodes))
    assert sorted(item for batch in made for item in batch.items) == sorted(due)
    assert not any(batch.alone for batch in made)


def test_the_only_replica_is_swapped_alone_and_named() -> None:
    due = fleet(1)
    assert batches(due, all_healthy(due), SIZES) == [Batch((due[0],), (due[0],))]
    # Another instance of the set, which does not serve, comes first, and serves during the second swap.
    two = fleet(2)
    made = batches(two, serving_of(("gw", "main", "n00")), ["100%"])
    assert made == [Batch((two[1],), ()), Batch((two[0],), ())]


def test_instances_that_do_not_serve_come_first_and_all_at_once() -> None:
    due = fleet(4)
    made = batches(due, serving_of(("gw", "main", "n00 n01")), ["100%"])
    assert made[0].items[:2] == (Due("n02", "main"), Due("n03", "main"))


def test_replicas_count_even_if_they_are_not_due() -> None:
    assert sizes(batches(fleet(2), serving_of(("gw", "main", "n00 n01 other")), ["100%"])) == [2]


def test_each_gateway_keeps_a_server() -> None:
    """gw1 also has n03. But gw2 has only n00 and n01, so these two are not swapped together."""
    due, seen = fleet(2), serving_of(("gw1", "main", "n00 n01 n03"), ("gw2", "main", "n00 n01"))
    made = batches(due, seen, ["100%"])
    assert made == [Batch((due[0],), ()), Batch((due[1],), ())]
    # Each node is the only server of a gateway. When the first node serves again, both gateways have it.
    made = batches(due, serving_of(("gw1", "main", "n00"), ("gw2", "main", "n01")), ["100%"])
    assert made == [Batch((due[0],), (due[0],)), Batch((due[1],), ())]


def test_the_plan_does_not_change_the_views() -> None:
    seen = serving_of(("gw", "main", "n00"))
    batches(fleet(2), seen, SIZES)
    assert seen == serving_of(("gw", "main", "n00"))


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
def test_every_instance_is_in_one_batch_and_only_an_instance_marked_as_alone_takes_a_gateways_last_server(
    due: set[tuple[int, str]], gateways: list[set[tuple[int, str]]], wanted: list[str | int]
) -> None:
    """Nodes outside the run count as servers if a gateway sends them requests."""
    items = [Due(f"n{host}", name) for host, name in due]
    up = {
        (gateway, name): {f"n{host}" for host, other in serving if other == name}
        for gateway, serving in enumerate(gateways)
        for name in SETS
    }
    seen = serving_of(*((f"gw{gateway}", name, " ".join(hosts)) for (gateway, name), hosts in up.items()))
    made = batches(items, seen, wanted)
    assert sorted(item for batch in made for item in batch.items) == sorted(items)
    for batch in made:
        assert len({item.host for item in batch.items}) == len(batch.items)
        for (_gateway, name), hosts in up.items():
            going = [item for item in batch.items if item.name == name]
            if hosts and hosts <= {item.host for item in going}:
                # An instance that is marked as alone is the only instance of its set in the batch.
                assert going == [item for item in batch.alone if item.name == name] and len(going) == 1
        for item in batch.items:
            for hosts in (hosts for (_gateway, name), hosts in up.items() if name == item.name):
                hosts.add(item.host)
