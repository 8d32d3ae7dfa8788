# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A gang of real engines, and its faults while idle. After each, both engines serve in a new epoch."""

from __future__ import annotations

import json
import socket
import time

import pytest
from gang import NAME, TIMES, Gang
from node import Node, wait_for

SILENCE = 20.0
"""Seconds until both sides have ended after a cut: 10 s of silence, and the ends of the engines."""


def engines_gone(gang: Gang) -> bool:
    return not any(gang.engine_runs(node) for node in gang.nodes)


def doctor(node: Node) -> tuple[str, str]:
    """Status and message of the doctor's check of gangs."""
    (check,) = json.loads(node.run("inferctl doctor engine-gangs --json", check=False))["checks"]
    return check["status"], check["message"]


def test_the_gang_answers_and_each_node_shows_its_members(serving: Gang) -> None:
    assert serving.answer() == "I am tiny-a."
    assert "  deb13" in serving.leader.run("inferctl status", check=False)
    assert serving.status(serving.follower)["port"] == 0
    assert {doctor(node)[0] for node in serving.nodes} == {"ok"}
    listening = serving.follower.run("ss --listening --numeric --tcp --no-header")
    assert ":5005 " not in listening and ":5110 " not in listening, listening
    # The key is for supervisors alone.
    assert "gangs-scenario-key" not in serving.leader.run(f"docker inspect vllm-{NAME}")
    first = next(line for line in serving.log(serving.leader).splitlines() if "ready after" in line)
    TIMES.append(f"first start: {first.partition(': ')[2][:60]}")


def test_strangers_change_nothing(serving: Gang) -> None:
    """One without the key at a member's address, and one that the firewall keeps out."""
    epoch, address = serving.epoch(), serving.leader.address
    with pytest.raises(OSError):
        socket.create_connection((address, 5110), timeout=3)
    garbage = f"import socket; socket.create_connection(('{address}', 5110), 3).sendall(b'x' * 5000)"
    serving.follower.run(f'python3 -c "{garbage}"')
    said = "a process at .* (deb13) sends a line of more than"
    wait_for("the leader says so", lambda: serving.leader.run(f"journalctl -u vllm@{NAME} | grep '{said}'", False), 20)
    assert serving.epoch() == epoch and serving.serves()


def test_a_stopped_member_is_waited_for(serving: Gang) -> None:
    began = time.monotonic()
    serving.follower.run(f"systemctl stop vllm@{NAME}")
    TIMES.append(f"a follower is stopped: drained and stopped after {time.monotonic() - began:.1f} s")
    wait_for("the leader waits", lambda: serving.status(serving.leader)["state"] == "waiting", 60)
    assert engines_gone(serving) and not serving.status(serving.leader)["drain"]
    time.sleep(5)
    assert engines_gone(serving)
    status, message = doctor(serving.leader)
    assert status == "fail" and "deb13 is missing" in message
    began = time.monotonic()
    serving.follower.run(f"systemctl start --no-block vllm@{NAME}")
    serving.wait_serving()
    TIMES.append(f"a late follower starts: serves after {time.monotonic() - began:.0f} s")


def test_an_engine_of_a_follower_that_dies_idle_ends_the_leaders(serving: Gang) -> None:
    with serving.fault("the follower's engine is killed, idle"):
        serving.kill_engine(serving.follower)


def test_a_killed_leader_leaves_no_engine(serving: Gang) -> None:
    """Its supervisor dies. systemd removes its own engine, and the follower ends the other one."""
    with serving.fault("the leader's supervisor is killed, idle"):
        serving.kill_supervisor(serving.leader)


def test_a_cut_link_ends_both_sides_and_heals(serving: Gang) -> None:
    epoch, began = serving.epoch(), time.monotonic()
    with serving.cut():
        wait_for("both sides end", lambda: engines_gone(serving), SILENCE)
        ended = time.monotonic() - began
        wait_for("the leader waits", lambda: serving.status(serving.leader)["state"] == "waiting", 60)
        assert serving.status(serving.follower)["state"] == "missing"
    healed = time.monotonic()
    serving.wait_next(epoch, "the link is back")
    serves = time.monotonic() - healed
    TIMES.append(f"the link is cut, idle: both sides ended after {ended:.1f} s; serves {serves:.0f} s after its return")
