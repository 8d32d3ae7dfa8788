# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Swaps of a gang, a member that has another release, and a drain by a follower's name."""

from __future__ import annotations

import time

import pytest
from gang import NAME, TIMES, Gang
from node import playbook, wait_for

pytestmark = pytest.mark.full

OTHER_RELEASE = """
import sys
sys.path.insert(0, "/usr/local/lib")
from inference.core.paths import Paths
from inference.engine import activation
activation._install(Paths(), sys.argv[1], int(sys.argv[2]))
"""


def test_a_swap_moves_all_members_and_a_rollback_moves_them_back(serving: Gang) -> None:
    before = serving.active()
    playbook("inference", gang_sequences=4)
    wanted = [serving.status(node)["release"]["desired"] for node in serving.nodes]
    assert serving.active() == before != wanted
    # No gateway holds the gang's requests, and there is no other replica.
    refused = serving.leader.run(f"inferctl swap {NAME} --to {wanted[0]} 2>&1 || true")
    assert "--allow-downtime" in refused, refused
    assert serving.active() == before and serving.serves(), refused
    follower = serving.follower.run(f"inferctl swap {NAME} --to {wanted[1]} --allow-downtime 2>&1 || true")
    assert "run the command on deb12" in follower, follower
    for command, expected in ((f"swap {NAME} --to {wanted[0]}", wanted), (f"rollback {NAME}", before)):
        began = time.monotonic()
        serving.leader.run(f"inferctl {command} --allow-downtime")
        TIMES.append(f"{command.split()[0]} of the gang: {time.monotonic() - began:.0f} s")
        assert serving.active() == expected and serving.serves()
    assert f"moves to release {wanted[1]}, as its leader says" in serving.log(serving.follower)
    # The inventory asks for the release that serves: the rollback's pin ends.
    playbook("inference")


def test_a_member_with_another_release_moves_to_the_release_of_the_leader(serving: Gang) -> None:
    before = serving.active()
    other = before[1] + 1
    serving.follower.run(f"systemctl stop vllm@{NAME}")
    serving.follower.run(f"python3 -c '{OTHER_RELEASE}' {NAME} {other}")
    assert serving.active()[1] == other
    began = time.monotonic()
    serving.follower.run(f"systemctl start --no-block vllm@{NAME}")
    wait_for("the follower is back at its release", lambda: serving.active() == before, 60)
    serving.wait_serving()
    TIMES.append(f"another release on the follower: serves after {time.monotonic() - began:.0f} s")


def test_a_drain_of_a_follower_drains_the_gang_at_its_leader(serving: Gang) -> None:
    epoch, name = serving.epoch(), serving.follower.name
    playbook(name, name="baremetal.inference.drain", reason="a new disk")
    try:
        assert "a new disk" in serving.leader.run("inferctl drains --json")
        assert "a new disk" not in serving.follower.run("inferctl drains --json")
        # Engines go on: a drain keeps only new requests of gateways away.
        assert serving.serves() and serving.epoch() == epoch
    finally:
        playbook(name, name="baremetal.inference.undrain")
    assert "a new disk" not in serving.leader.run("inferctl drains --json")


def test_an_update_of_a_lone_gang_needs_allow_downtime(serving: Gang) -> None:
    before = serving.active()
    update = "baremetal.inference.update_model"
    said = playbook("inference", check=False, name=update, gang_sequences=4)
    assert "allow_downtime" in said and serving.active() == before and serving.serves()
    began = time.monotonic()
    playbook("inference", name=update, gang_sequences=4, allow_downtime=True)
    TIMES.append(f"update_model of a lone gang: {time.monotonic() - began:.0f} s")
    assert serving.active() != before and serving.serves()
    playbook("inference", name=update, allow_downtime=True)
    assert serving.active() == before and serving.serves()
