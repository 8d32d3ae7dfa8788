# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of a gang of real engines. After each, both engines serve in a new epoch, and nothing is left."""

from __future__ import annotations

import json
import time

import pytest
from gang import NAME, TIMES, Gang
from node import Node, wait_for

KNOWN = 6.0
"""Seconds until an engine is gone, as seen through docker and a busy machine. The channel knows within 2 s."""

SILENCE = 20.0
"""Seconds until both sides have ended after a cut: 10 s of silence, and the ends of the engines."""


def engines_gone(gang: Gang) -> bool:
    return not any(gang.engine_runs(node) for node in gang.nodes)


def test_a_late_member_starts_the_gang_and_it_answers(gang: Gang) -> None:
    gang.wait_serving()
    assert gang.answer() == "I am tiny-a."
    assert "  deb13" in gang.leader.run("inferctl status", check=False)
    assert gang.status(gang.follower)["port"] == 0
    gang.follower.run(f"systemctl stop vllm@{NAME}")
    wait_for("the leader waits", lambda: gang.status(gang.leader)["state"] == "waiting", 60)
    time.sleep(5)
    assert engines_gone(gang)
    (check,) = json.loads(gang.leader.run("inferctl doctor engine-gangs --json", check=False))["checks"]
    assert check["status"] == "fail" and "deb13 is missing" in check["message"]
    gang.follower.run(f"systemctl start --no-block vllm@{NAME}")
    gang.wait_serving()


@pytest.mark.parametrize("member", ["leader", "follower"])
def test_an_engine_that_dies_idle_ends_the_other_one(serving: Gang, member: str) -> None:
    dead: Node = getattr(serving, member)
    (other,) = (node for node in serving.nodes if node is not dead)
    pid = other.engine_pid(NAME)

    def ended() -> bool:
        return not other.run(f"ps -p {pid} -o pid=", check=False)

    with serving.fault(f"the {member}'s engine dies", KNOWN, ended):
        serving.kill_engine(dead)


@pytest.mark.parametrize("member", ["leader", "follower"])
def test_a_supervisor_that_dies_leaves_no_engine(serving: Gang, member: str) -> None:
    dead: Node = getattr(serving, member)
    pids = {node.name: node.engine_pid(NAME) for node in serving.nodes}

    def ended() -> bool:
        return not any(node.run(f"ps -p {pids[node.name]} -o pid=", check=False) for node in serving.nodes)

    with serving.fault(f"the {member}'s supervisor dies", KNOWN, ended):
        dead.run(f"kill -9 {dead.unit('MainPID', NAME)}")


def test_a_cut_link_ends_both_sides_and_heals(serving: Gang) -> None:
    epoch, began = serving.epoch(), time.monotonic()
    routes = [(node, f"blackhole {other.address}") for node, other in (serving.nodes, serving.nodes[::-1])]
    for node, route in routes:
        node.run(f"ip route add {route}")
    wait_for("both sides end", lambda: engines_gone(serving), SILENCE)
    TIMES.append(f"the link is cut: both sides ended after {time.monotonic() - began:.1f} s")
    wait_for("the leader waits", lambda: serving.status(serving.leader)["state"] == "waiting", 60)
    assert serving.status(serving.follower)["state"] == "missing"
    for node, route in routes:
        node.run(f"ip route del {route}")
    wait_for("another epoch serves", lambda: serving.epoch() > epoch and serving.serves())


def test_a_member_that_is_stopped_lets_requests_finish(serving: Gang) -> None:
    began = time.monotonic()
    serving.follower.run(f"systemctl stop vllm@{NAME}")
    TIMES.append(f"a stopped follower was drained and stopped within {time.monotonic() - began:.0f} s")
    wait_for("the leader waits", lambda: serving.status(serving.leader)["state"] == "waiting", 60)
    assert engines_gone(serving)
    assert not serving.status(serving.leader)["drain"]
    serving.follower.run(f"systemctl start --no-block vllm@{NAME}")
    serving.wait_serving()


def test_dockerd_restarts_and_nothing_happens(serving: Gang) -> None:
    epoch = serving.epoch()
    for node in serving.nodes:
        node.run("systemctl restart docker")
    time.sleep(12)
    assert serving.epoch() == epoch and serving.serves()


@pytest.mark.full
def test_a_member_that_reboots_comes_back(serving: Gang) -> None:
    epoch = serving.epoch()
    serving.follower.cut_power()
    wait_for("another epoch serves", lambda: serving.epoch() > epoch and serving.serves())
