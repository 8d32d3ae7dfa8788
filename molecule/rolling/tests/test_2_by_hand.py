# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`inferctl swap` on the nodes, without a controller: swaps are killed, collide, or go back."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any

import pytest
from fleet import Fleet, unharmed
from node import Node
from own_swap import at_each_step, settled, started, swap


def kill_and_reload(node: Node, gateway: Node) -> None:
    """Kill the process of the swap, and reload HAProxy."""
    node.run("systemctl kill --signal KILL inference-swap@main", check=False)
    gateway.run("systemctl reload haproxy")


@pytest.mark.parametrize(
    "steps", [("drain", "probe"), pytest.param(("gate", "start", "watch"), marks=pytest.mark.full)]
)
def test_a_swap_that_is_killed_goes_on_and_no_client_notices(fleet: Fleet, steps: tuple[str, ...]) -> None:
    fleet.wait_up()
    node = fleet.nodes[1]
    target = "tiny-a" if fleet.models()[1] == "tiny-b" else "tiny-b"
    reports: list[dict[str, Any]] = []

    def swapped_under_fire() -> None:
        process = started(node, target)
        at_each_step(node, steps, process, partial(kill_and_reload, node, fleet.gateway))
        reports.append(json.loads(process.communicate(timeout=300)[0]))

    unharmed(fleet.busy().load().during(swapped_under_fire, seconds_after=3))
    (report,) = reports
    assert report["outcome"] == "done", report
    assert fleet.models()[1] == target and node.ask() == f"I am {target}."
    settled(node)


# Unit tests show which node yields, at each moment: node/swap/test_begin.py, test_leave.py and test_outage.py.
@pytest.mark.full
def test_two_nodes_that_begin_a_swap_at_once_fail_no_request(fleet: Fleet) -> None:
    fleet.wait_up()
    targets = ["tiny-a" if model == "tiny-b" else "tiny-b" for model in fleet.models()]
    reports: list[dict[str, Any]] = []

    def both() -> None:
        processes = [started(node, target) for node, target in zip(fleet.nodes, targets, strict=True)]
        reports.extend(json.loads(process.communicate(timeout=600)[0]) for process in processes)

    unharmed(fleet.busy().load().during(both, seconds_after=3))
    # A node waits for another node that is drained already. If both drain at once, the node whose name sorts first
    # continues.
    assert "done" in [report["outcome"] for report in reports], reports
    for report, model, target in zip(reports, fleet.models(), targets, strict=True):
        assert (report["outcome"] == "done") == (model == target), reports
        if report["outcome"] != "done":
            assert report["outcome"] == "refused", reports
            assert re.search("deb12 drains the same set, and goes first|deb1[23] swaps, too", report["failure"])
    for node in fleet.nodes:
        settled(node)


@pytest.mark.full
def test_a_release_that_cannot_serve_goes_back_without_a_controller(fleet: Fleet) -> None:
    fleet.wait_up()
    node, before = fleet.nodes[0], fleet.models()
    reports: list[dict[str, Any]] = []
    unharmed(fleet.busy().load().during(lambda: reports.append(swap(node, "tiny-broken")), seconds_after=3))
    (report,) = reports
    assert report["outcome"] == "returned" and "does not start" in report["failure"], report
    assert fleet.models() == before
    settled(node)
