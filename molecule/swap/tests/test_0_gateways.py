# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Both gateways are reloaded in each step of a swap: HAProxy 2.6 and 3.0, with real engines."""

from __future__ import annotations

import json
import subprocess
import time

import pytest
from fleet import Fleet, unharmed
from node import Node, wait_for
from own_swap import settled, started, step

pytestmark = pytest.mark.full

LONG = {"drain", "start", "watch"}
"""Steps that take longer than a look."""


def reloaded_in_each_step(fleet: Fleet, node: Node, process: subprocess.Popen[str]) -> set[str]:
    """Reload all gateways when a swap has come to another step, until the swap ends. Returns the steps."""
    seen: list[str] = []
    while process.poll() is None:
        now = step(node)
        if now and now not in seen:
            seen.append(now)
            for gateway in fleet.gateways:
                gateway.run("systemctl reload haproxy")
        time.sleep(0.2)
    return set(seen)


def swapped(fleet: Fleet, node: Node) -> None:
    """Swap a node to its other model under load, and check that no client has noticed."""
    target = "tiny-a" if node.ask() == "I am tiny-b." else "tiny-b"
    seen: set[str] = set()
    reports: list[dict[str, str]] = []

    def swap() -> None:
        process = started(node, target)
        seen.update(reloaded_in_each_step(fleet, node, process))
        assert process.stdout
        reports.append(json.loads(process.stdout.read()))

    unharmed(fleet.load(clients=4).during(swap, seconds_after=3))
    assert reports[0]["outcome"] == "done", reports
    assert seen >= LONG, seen
    assert node.ask() == f"I am {target}."
    settled(node)


def test_each_of_two_replicas(fleet: Fleet) -> None:
    # Both nodes keep both releases; the inventory asks for the first one.
    instances = [{"name": "main", "model": "tiny-b", "port": 5005, "accelerator": "cpu"}]
    fleet.gateway.site("--limit", fleet.limit, instances=instances)
    fleet.wait_up()
    for node in fleet.nodes:
        swapped(fleet, node)
        fleet.wait_up()


def test_an_only_replica(fleet: Fleet) -> None:
    """Its requests wait at both gateways."""
    first, second = fleet.nodes
    second.run("systemctl stop vllm@main")
    try:
        wait_for("the second node is down", lambda: fleet.up() == [first.name], 60)
        swapped(fleet, first)
    finally:
        second.run("systemctl start --no-block vllm@main")
        second.wait_ready()
    # As the next tests expect.
    instances = [{"name": "main", "model": "tiny-a", "port": 5005, "accelerator": "cpu"}]
    fleet.wait_up()
    fleet.update(instances=instances)
    assert fleet.answers() == ["I am tiny-a."] * 2
