# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The instances that a removal takes from nodes, and the last server of a set."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.fleet.update.removals import (
    Host,
    RemovalPlan,
    Selection,
    plan_removals,
)

from ...conftest import instance_facts

GATEWAY = {
    "gateway": "gw",
    "known": True,
    "silent": "",
    "bridge_known": True,
    "hold_seconds": 60,
}


def host(*names: str, declared: tuple[str, ...] = ("main",), up: tuple[str, ...] | None = None, **more: Any) -> dict:
    """A node whose instances serve a model of their name. `up`: the servers of each set that are up at the gateway."""
    return {
        "instances": [instance_facts(name, f"{name}-model", **more) for name in names],
        "declared": [{"name": name, "model": f"{name}-model"} for name in declared],
        "gateways": [] if up is None else [{**GATEWAY, "name": name, "up": list(up)} for name in names],
        "unreachable": [],
    }


def planned(hosts: dict[str, dict[str, Any]], wanted: Selection, allow_downtime: bool) -> RemovalPlan:
    read = {name: Host.from_dict(facts) for name, facts in hosts.items()}
    return plan_removals(read, wanted, allow_downtime=allow_downtime)


TWO = {"n1": host("main", up=("n1", "n2")), "n2": host("main", up=("n1", "n2"))}


def test_without_a_selection_undeclared_instances_are_reported() -> None:
    found = planned({"n1": host("main", "old")}, Selection(), allow_downtime=False)
    assert found.names == {"n1": []} and found.problems == []
    assert found.lines == ["n1: old is on the node, and the inventory does not declare it"]
    assert planned({"n1": host("main")}, Selection(), allow_downtime=False).lines == [
        "the inventory declares all instances on the nodes"
    ]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Selection(instance="main"), ["main"]),
        (Selection(instance="gone"), ["gone"]),
        (Selection(instance="nobody"), []),
        (Selection(model="old-model"), ["old"]),
        (Selection(everything=True), ["gone", "main", "old"]),
        (Selection(orphans=True), ["old"]),
    ],
)
def test_the_selection_names_the_instances(wanted: Selection, expected: list[str]) -> None:
    found = planned({"n1": host("main", "old", declared=("main", "gone"))}, wanted, allow_downtime=True)
    assert found.names == {"n1": expected}


def test_an_instance_that_is_declared_absent_is_an_orphan() -> None:
    facts = host("main") | {"declared": [{"name": "main", "model": "a", "state": "absent"}]}
    assert planned({"n1": facts}, Selection(orphans=True), allow_downtime=True).names == {"n1": ["main"]}


def test_items_without_a_name_are_no_instances() -> None:
    facts = host("main") | {"declared": [{"name": ["main"]}, {"model": "a"}, "main", {"name": "main"}]}
    assert planned({"n1": facts}, Selection(everything=True), allow_downtime=True).names == {"n1": ["main"]}


def test_the_line_warns_about_an_instance_that_is_still_declared() -> None:
    found = planned({"n1": host("main", "old")}, Selection(everything=True), allow_downtime=True)
    assert found.lines == [
        "n1: main (main-model) is removed; the inventory still declares it:"
        " baremetal.inference.site would start it again",
        "n1: old (old-model) is removed",
    ]


def test_without_a_match_nothing_is_removed() -> None:
    assert planned({"n1": host()}, Selection(orphans=True), allow_downtime=False).lines == [
        "no instance matches: nothing is removed"
    ]


def test_the_last_server_of_a_set_stays() -> None:
    one = planned({"n1": TWO["n1"]}, Selection(instance="main"), allow_downtime=False)
    assert one.problems == []
    (both,) = planned(TWO, Selection(instance="main"), allow_downtime=False).problems
    assert both.startswith("main on n1, n2: gw has no other server for it")
    assert planned(TWO, Selection(instance="main"), allow_downtime=True).problems == []


def test_each_gateway_keeps_a_server() -> None:
    """Another server at gw does not help gw2."""
    second = [{**GATEWAY, "name": "main", "gateway": "gw2", "up": ["n1"]}]
    hosts = {**TWO, "n1": {**TWO["n1"], "gateways": TWO["n1"]["gateways"] + second}}
    (problem,) = planned({"n1": hosts["n1"]}, Selection(instance="main"), allow_downtime=False).problems
    assert problem.startswith("main on n1: gw2 has no other server for it")


@pytest.mark.parametrize("up", [("n1",), None])
def test_a_gang_ends_with_any_of_its_members(up: tuple[str, ...] | None) -> None:
    follower = {"n2": host("main", up=up, gang=("n1", "n2"))}
    (problem,) = planned(follower, Selection(everything=True), allow_downtime=False).problems
    assert problem.startswith("main on n1: ") and "clients would get errors" in problem
    both = {**follower, "n1": host("main", up=up, gang=("n1", "n2"))}
    assert len(planned(both, Selection(instance="main"), allow_downtime=False).problems) == 1
    other = {"n2": host("main", up=("n1", "n3"), gang=("n1", "n2"))}
    assert planned(other, Selection(everything=True), allow_downtime=False).problems == []


def test_a_removal_is_refused_while_a_gateway_cannot_be_reached() -> None:
    hosts = {**TWO, "n1": {**TWO["n1"], "unreachable": ["gw2"]}}
    (problem,) = planned({"n1": hosts["n1"]}, Selection(instance="main"), allow_downtime=True).problems
    assert problem.startswith("gw2: the gateway cannot be reached") and "leave it out" in problem
    assert planned(hosts, Selection(), allow_downtime=False).problems == []


def test_the_bridge_of_an_instance_is_no_other_server() -> None:
    facts = {"n1": host("main", up=("n1", "main_bridge.n1"))}
    assert planned(facts, Selection(instance="main"), allow_downtime=False).problems


def test_without_a_gateway_the_reports_of_nodes_count() -> None:
    (problem,) = planned({"n1": host("main")}, Selection(instance="main"), allow_downtime=False).problems
    assert problem.startswith("main on n1: no other node serves it, so clients would get errors")
    assert not planned({"n1": host("main", serving=False)}, Selection(instance="main"), allow_downtime=False).problems


def test_a_set_without_a_server_can_be_removed() -> None:
    assert not planned({"n1": host("main", up=())}, Selection(instance="main"), allow_downtime=False).problems


def test_a_swap_that_was_cut_off_is_a_problem() -> None:
    (problem,) = planned({"n1": host("main", swapping=True)}, Selection(instance="main"), allow_downtime=True).problems
    assert "run baremetal.inference.update_model first" in problem
