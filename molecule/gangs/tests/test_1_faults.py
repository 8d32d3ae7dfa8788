# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A gang of real engines, and its faults while idle.

A load takes up to two minutes. So some tests make two faults, the second one while the next epoch loads. The other
files have each fault alone.
"""

from __future__ import annotations

import socket
import time

import pytest
from gang import ENDED, NAME, SILENCE, TIMES, Gang, all_gone
from node import wait_for


def test_the_gang_answers_and_the_leader_shows_its_follower(serving: Gang) -> None:
    assert serving.answer() == "I am tiny-a."
    assert "  deb13" in serving.leader.run("inferctl status", check=False)
    assert serving.status(serving.follower)["port"] == 0
    assert {serving.doctor(node)[0] for node in serving.nodes} == {"ok"}
    listening = serving.follower.run("ss --listening --numeric --tcp --no-header")
    assert ":5005 " not in listening and ":5110 " not in listening, listening
    # The key is for supervisors alone.
    assert "gangs-scenario-key" not in serving.leader.run(f"docker inspect vllm-{NAME}")
    first = next(line for line in serving.log(serving.leader).splitlines() if "ready after" in line)
    TIMES.append(f"first start: {first.partition(': ')[2][:60]}")


def test_connections_of_other_processes_change_nothing(serving: Gang) -> None:
    """The firewall refuses one process. The other process has a member's address, but not the gang's key."""
    epoch, address = serving.epoch(), serving.leader.address
    with pytest.raises(OSError):
        socket.create_connection((address, 5110), timeout=3)
    garbage = f"import socket; socket.create_connection(('{address}', 5110), 3).sendall(b'x' * 5000)"
    serving.follower.run(f'python3 -c "{garbage}"')
    said = "a process at .* (deb13) sends a line of more than"
    wait_for(
        "the leader logs the process",
        lambda: serving.leader.run(f"journalctl -u vllm@{NAME} | grep '{said}'", False),
        20,
    )
    assert serving.epoch() == epoch and serving.serves()


def test_no_engine_outlives_its_gang(serving: Gang) -> None:
    """The follower's idle engine dies. While the next epoch loads, the leader's supervisor dies: systemd removes the
    leader's engine, and the follower ends its own."""
    epoch, pids = serving.epoch(), serving.engine_pids()
    serving.kill_engine(serving.follower)
    wait_for("all engines end", lambda: all_gone(pids), ENDED)
    serving.wait_loading(epoch)
    pids = serving.engine_pids()
    serving.kill_supervisor(serving.leader)
    wait_for("all engines end again", lambda: all_gone(pids), ENDED)
    serving.wait_next(epoch + 1, "the leader's supervisor is killed")
    serving.assert_alone("the leader's supervisor is killed")


def test_a_gang_serves_again_after_a_cut_link_and_a_late_member(serving: Gang) -> None:
    epoch, began = serving.epoch(), time.monotonic()
    with serving.cut():
        wait_for("both sides end", serving.engines_gone, SILENCE)
        TIMES.append(f"the link is cut, idle: both sides ended after {time.monotonic() - began:.1f} s")
        wait_for("the leader waits", lambda: serving.status(serving.leader)["state"] == "waiting", 60)
        wait_for("the follower misses its leader", lambda: serving.status(serving.follower)["state"] == "missing", 60)
    serving.wait_loading(epoch)
    serving.follower.run(f"systemctl stop vllm@{NAME}")
    wait_for("the leader waits again", lambda: serving.status(serving.leader)["state"] == "waiting", 60)
    time.sleep(3)
    assert serving.engines_gone()
    status, message = serving.doctor(serving.leader)
    assert status == "fail" and "deb13 is missing" in message
    began = time.monotonic()
    serving.follower.run(f"systemctl start --no-block vllm@{NAME}")
    serving.wait_serving()
    TIMES.append(f"a late follower starts: serves after {time.monotonic() - began:.0f} s")
