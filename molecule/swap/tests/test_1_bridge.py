# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An only replica with a bridge: its clients do not wait."""

from __future__ import annotations

import json
import re
from typing import Any

import haproxy
import pytest
from fleet import Fleet, instances, unharmed
from node import Node, wait_for

pytestmark = pytest.mark.full

PORT = 5105


def bridged(model: str) -> list[dict[str, Any]]:
    """The instance of hosts.yml, with another model and a port for a bridge."""
    return [{**one, "bridge_port": PORT} for one in instances(model)]


def bridge_state(fleet: Fleet) -> str:
    """The status of the bridge at the gateway."""
    (node,) = fleet.nodes
    return haproxy.states(fleet.gateway, "set_main")[f"main_bridge.{node.name}"]


def assert_no_leftovers(fleet: Fleet) -> None:
    (node,) = fleet.nodes
    assert bridge_state(fleet).startswith("DOWN")
    assert node.run("docker ps --all --format '{{.Names}}'") == "vllm-main"
    assert node.run("ls /var/lib/inference/releases /var/lib/inference/drain") == (
        "/var/lib/inference/drain:\n\n/var/lib/inference/releases:\nmain"
    )
    assert node.run(f"ss --no-header --listening --tcp --numeric 'sport = :{PORT}'") == ""
    assert node.run("systemctl list-units --all --plain --no-legend 'vllm@*' | cut -d' ' -f1") == "vllm@main.service"
    assert [one["name"] for one in json.loads(node.run("inferctl status --json"))["instances"]] == ["main"]


def test_the_clients_of_the_only_replica_do_not_wait(lone: Fleet) -> None:
    said: list[str] = []
    report = lone.load().during(lambda: said.append(lone.update(instances=bridged("tiny-b"))))
    unharmed(report)
    assert f"side by side: a bridge serves meanwhile, on port {PORT}" in said[0]
    assert set(report.texts) == {"I am tiny-a", "I am tiny-b"}
    assert lone.answers() == ["I am tiny-b."] and lone.up() == [lone.nodes[0].name]
    assert_no_leftovers(lone)
    loaded = re.search(r"of which it loaded for (\d+) s", said[0])
    assert loaded
    # If the gateway had held requests, one of them would have waited for the whole load.
    print(f"longest answer: {max(report.latencies):.1f} s; loaded for {loaded[1]} s")
    assert max(report.latencies) < int(loaded[1]) / 2


def test_a_bridge_that_does_not_start_leaves_the_engine_alone(lone: Fleet) -> None:
    (node,) = lone.nodes
    before = node.engine_pid()
    # The plan would refuse the model, so the check of the fit is off.
    broken = bridged("tiny-broken")
    report = lone.load().during(lambda: lone.update(check=False, instances=broken, vllm_check_fit=False))
    unharmed(report)
    assert set(report.texts) == {"I am tiny-b"} and node.engine_pid() == before
    assert_no_leftovers(lone)


def test_the_bridge_of_a_killed_update_serves_until_the_next_update(lone: Fleet) -> None:
    (node,) = lone.nodes
    before = node.engine_pid()

    def update() -> None:
        started = lone.start_update(instances=bridged("tiny-a"))
        wait_for("the instance is drained", lambda: gone(node, before), 600)
        started.kill()
        # After one failed check, a busy server is `UP 1/2`, and serves.
        assert bridge_state(lone).startswith("UP"), started.said()[-3000:]
        assert node.name not in lone.up(), "the instance gets requests while it is swapped"
        assert lone.answer_to("main") == "I am tiny-a."
        assert "main_bridge: is the bridge of main for an update" in node.run("inferctl status", check=False)
        lock = lone.releases()[node.name]["lock"]
        # The node may have ended its swap before this run reads it.
        said = lone.update(instances=bridged("tiny-a"))
        assert f"run {lock['run_id']} was cut off here; this run continues its work" in said

    report = lone.load().during(update)
    unharmed(report)
    assert lone.answers() == ["I am tiny-a."] and lone.up() == [node.name]
    assert_no_leftovers(lone)


def gone(node: Node, pid: int) -> bool:
    return node.run("docker inspect --format '{{.State.Pid}}' vllm-main", check=False) != str(pid)
