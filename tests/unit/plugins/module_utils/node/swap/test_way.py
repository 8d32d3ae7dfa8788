# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ways of a swap: who serves clients while an engine is away."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.node.swap import way
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.gateways import Server, SetView, Views

OWN = ("node1", "main_bridge.node1")
NO_BRIDGE = "it has no bridge_port"


def view(gateway: str = "gw1", hold: int = 120, known: bool = True, **statuses: str) -> SetView:
    """The view of a gateway; `bridge` is the instance's own bridge."""
    names = {name.replace("bridge", OWN[1]): status for name, status in statuses.items()}
    servers = {name: Server(status.startswith("UP"), status, 100, 0, 0) for name, status in names.items()}
    return SetView(gateway, known, hold_seconds=hold, servers=servers)


def choose(*views: SetView, silent: dict[str, str] | None = None, **known: Any) -> way.Way:
    question: dict[str, Any] = {
        "name": "main",
        "own": OWN,
        "serves": True,
        "allow_downtime": False,
        "vouched": False,
        "deaf": (),
        "needed": 60,
        "unbridged": lambda: NO_BRIDGE,
    }
    return way.choose(way.Question(**{**question, **known}), Views(views, silent or {}))


ALONE = view(node1="UP", bridge="DOWN")
TWO = view(node1="UP", node2="UP")


def test_with_another_server_at_each_gateway_others_serve() -> None:
    assert choose(TWO, view("gw2", node1="UP", node2="UP 1/2")) == way.Way(way.OTHERS)


def test_each_gateway_must_have_another_server() -> None:
    assert choose(TWO, view("gw2", node1="UP", node2="DOWN")).kind == way.HELD


def test_an_engine_without_requests_is_swapped_at_once() -> None:
    assert choose(ALONE, serves=False) == way.Way(way.UNCHANGED)
    # After a swap that is stuck, no gateway sends requests.
    assert choose(view(node1="DRAIN"), silent={}).kind == way.UNCHANGED


def test_a_gateway_without_any_server_loses_nothing() -> None:
    """Another server is required only at gateways where this node is the only server."""
    empty = view("gw2", node1="DOWN", node2="DOWN")
    assert choose(TWO, empty) == way.Way(way.OTHERS)
    assert choose(empty).kind == way.UNCHANGED
    assert choose(ALONE, empty).kind == way.HELD


def test_a_lone_engine_gets_a_bridge_if_one_can_run() -> None:
    assert choose(ALONE, unbridged=lambda: "") == way.Way(way.BRIDGE)
    assert choose(ALONE, unbridged=lambda: "", allow_downtime=True) == way.Way(way.BRIDGE)
    found = choose(view(node1="UP"), unbridged=lambda: "")
    assert found.kind == way.HELD and found.patience == 60, "no gateway knows the bridge"


def test_without_a_bridge_gateways_hold_requests_as_long_as_they_can() -> None:
    assert choose(ALONE, view("gw2", hold=90, node1="UP")) == way.Way(way.HELD, patience=30)
    short = choose(ALONE, needed=121)
    start = "main is the only server of its set. Judged by the last load, the swap may take 121 s"
    assert short.problem.startswith(
        f"{start}, but gateways run with gateway_hold_seconds 120: set gateway_hold_seconds to 121 or more"
    )
    way_out = "run baremetal.inference.site for the gateways, or add a replica. No second engine can serve meanwhile"
    assert f", then {way_out}: {NO_BRIDGE}" in short.problem
    unknown = choose(ALONE, needed=None)
    assert "how long its release loads is unknown" in unknown.problem
    assert short.permission == unknown.permission == "allow_downtime"


def test_downtime_is_a_way_if_it_is_allowed() -> None:
    assert choose(ALONE, allow_downtime=True) == way.Way(way.DOWNTIME)
    assert choose(ALONE, allow_downtime=True, deaf=["gw1"]) == way.Way(way.DOWNTIME)
    assert choose(TWO, allow_downtime=True) == way.Way(way.OTHERS)


def test_a_gateway_that_does_not_check_the_agent_forbids_the_swap_of_a_lone_engine() -> None:
    assert "gw1 does not check this node's agent: repair that gateway first" in choose(ALONE, deaf=["gw1"]).problem
    assert choose(TWO, deaf=["gw1"]) == way.Way(way.OTHERS)


def test_a_gateway_that_checks_but_does_not_answer_forbids_the_swap() -> None:
    silent = {"gw2": "gw2 does not answer"}
    assert choose(TWO, silent=silent) == way.Way(
        way.OTHERS, None, "gw2 does not answer. Correct that first", "allow_downtime"
    )
    assert choose(TWO, silent=silent, allow_downtime=True) == way.Way(way.OTHERS)
    # A gateway that neither answers nor checks counts as down, and needs no server.
    assert choose(TWO, silent=silent, deaf=["gw2"]) == way.Way(way.OTHERS)


@pytest.mark.parametrize("unaware", [view("gw2", known=False), view("gw2", node2="UP")])
def test_a_gateway_that_does_not_know_the_instance_forbids_the_swap(unaware: SetView) -> None:
    assert choose(TWO, unaware).problem == "gw2 does not know main of this node: run baremetal.inference.site there"


def test_the_run_must_vouch_or_allow_downtime_if_no_gateway_answers() -> None:
    assert choose().problem.endswith("no gateway that would hold requests")
    assert choose().permission == "allow_downtime"
    assert "no gateway shows who else serves" in choose(silent={"gw1": "x"}, deaf=["gw1"]).problem
    assert choose(allow_downtime=True) == choose(vouched=True) == way.Way(way.DOWNTIME)
    assert choose(vouched=True, silent={"gw1": "x"}, deaf=["gw1"]) == way.Way(way.DOWNTIME)


def test_of_nodes_that_drain_at_once_the_first_by_name_goes_first() -> None:
    views = Views(
        (view(node1="DRAIN", node0="DRAIN", node2="DRAIN (agent)", bridge="DRAIN"), view("gw2", node1="UP")), {}
    )
    assert way.yields_to("node1", views, OWN) == ["node0"]
    assert way.yields_to("node0", views, ("node0",)) == []
    assert way.yields_to("node2", views, ("node2",)) == ["node0", "node1"]
    assert (
        way.no_other_server("main", ["gw1", "gw2"]) == "gw1, gw2 would have no server left for main without this node"
    )


@pytest.mark.parametrize("count", range(2, 6))
def test_only_one_of_several_nodes_that_drain_at_once_continues(count: int) -> None:
    chosen = random.Random(29 + count)
    for _time in range(50):
        nodes = chosen.sample([f"node{number}" for number in range(1, 20)], count)
        statuses: dict[str, Any] = {**dict.fromkeys(nodes, "DRAIN"), **dict.fromkeys(("gone", "gone2"), "DOWN")}
        views = Views((view(**statuses), view("gw2", **dict(reversed(statuses.items())))), {})
        goes = [node for node in nodes if not way.yields_to(node, views, (node, f"main_bridge.{node}"))]
        assert goes == [min(nodes)]
