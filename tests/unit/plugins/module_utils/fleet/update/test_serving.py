# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which servers are up, by gateway."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.module_utils.fleet.update.serving import (
    NODES,
    Serving,
    View,
    gateways,
    left_out,
)
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.view import GatewayView


def view(gateway: str, name: str, *up: str) -> GatewayView:
    facts = {"known": True, "silent": "", "bridge_known": True, "hold_seconds": 60}
    return GatewayView.from_dict({"gateway": gateway, "name": name, "up": list(up), **facts})


SEEN = [view("gw1", "main", "a", "b"), view("gw2", "main", "b"), view("gw2", "main", "b")]


def test_the_views_of_two_gateways_are_not_merged() -> None:
    serving = Serving.of(SEEN, {"main": {"a"}, "side": {"a"}})
    assert serving.views["main"] == [View("gw1", frozenset("ab")), View("gw2", frozenset("b"))]
    assert [serving.count("main", host) for host in "abc"] == [1, 2, 0]
    assert [gateways(serving.lost("main", going)) for going in ("a", "b", "ab", "")] == ["", "gw2", "gw1, gw2", ""]
    assert serving.sets("b") == {"main": ["gw1", "gw2"]}


def test_without_a_gateway_the_reports_of_nodes_count() -> None:
    serving = Serving.of(SEEN, {"side": {"a"}, "idle": set()})
    assert serving.asked("main") and not serving.asked("side") and not serving.asked("unknown")
    assert gateways(serving.lost("side", "a")) == NODES
    # A set without a server has no server to lose.
    assert serving.lost("idle", "a") == serving.lost("unknown", "a") == []


def test_an_answer_that_differs_is_another_view() -> None:
    """Two nodes have asked one gateway, which has lost a node in between. Both answers count."""
    serving = Serving.of([view("gw", "main", "a", "b"), view("gw", "main", "b")], {})
    assert gateways(serving.lost("main", "b")) == "gw"


def test_a_swapped_instance_serves_at_every_gateway_without_its_bridge() -> None:
    serving = Serving.of([view("gw1", "main", "main_bridge.a"), view("gw2", "main")], {})
    assert serving.lost("main", "a") == []
    serving.back("main", ["a"])
    serving.back("new", ["a"])
    assert serving.views["main"] == [View("gw1", frozenset("a")), View("gw2", frozenset("a"))]
    assert gateways(serving.lost("main", "a")) == "gw1, gw2" and gateways(serving.lost("new", "a")) == NODES


def test_a_node_that_cannot_be_reached_is_named_with_its_gateways() -> None:
    serving = Serving.of([*SEEN, view("gw1", "side", "b")], {})
    assert left_out(serving, ["c", "b"]) == [
        "b cannot be reached, and is left out: it gets requests for main (by gw1, gw2), side (by gw1)",
        "c cannot be reached, and is left out: no gateway sends it requests",
    ]
