# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Further faults of a gang of real engines. test_1_faults.py shows nearly the same in CI."""

from __future__ import annotations

import time

import pytest
from gang import KNOWN, NAME, TIMES, Gang, all_gone, gone
from node import playbook, wait_for

pytestmark = pytest.mark.full


def test_an_engine_of_the_leader_that_dies_idle_ends_the_followers(serving: Gang) -> None:
    pid = serving.follower.engine_pid(NAME)
    with serving.fault("the leader's engine is killed", KNOWN, lambda: gone(serving.follower, pid)):
        serving.kill_engine(serving.leader)


def test_a_killed_supervisor_of_a_follower_leaves_no_engine(serving: Gang) -> None:
    pids = {node: node.engine_pid(NAME) for node in serving.nodes}
    with serving.fault("the follower's supervisor is killed", KNOWN, lambda: all_gone(pids)):
        serving.follower.run(f"kill -9 {serving.follower.unit('MainPID', NAME)}")


def test_dockerd_restarts_and_nothing_happens(serving: Gang) -> None:
    epoch = serving.epoch()
    for node in serving.nodes:
        node.run("systemctl restart docker")
    time.sleep(12)
    assert serving.epoch() == epoch and serving.serves()


@pytest.mark.parametrize("member", ["follower", "leader"])
def test_a_member_that_loses_power_comes_back(serving: Gang, member: str) -> None:
    epoch, began = serving.epoch(), time.monotonic()
    getattr(serving, member).cut_power()
    wait_for("another epoch serves", lambda: serving.epoch() > epoch and serving.serves())
    TIMES.append(f"the {member}'s node loses power and boots: serves after {time.monotonic() - began:.0f} s")


def active(gang: Gang) -> list[int]:
    """The active release of each node."""
    return [gang.status(node)["release"]["active"] for node in gang.nodes]


def test_a_swap_moves_all_members_and_a_rollback_moves_them_back(serving: Gang) -> None:
    before = active(serving)
    model = {"model": "controller:{{ demo_cache }}/models/tiny-a", "dtype": "float32", "max-model-len": 512}
    model |= {"max-num-seqs": 4, "enforce-eager": True, "tensor-parallel-size": 2}
    playbook("inference", models={"tiny-a": model})
    following, leading = (serving.status(node)["release"]["desired"] for node in serving.nodes[::-1])
    assert active(serving) == before != [leading, following]
    for command, wanted in ((f"swap {NAME} --to {leading}", [leading, following]), (f"rollback {NAME}", before)):
        began = time.monotonic()
        serving.leader.run(f"inferctl {command} --allow-downtime")
        TIMES.append(f"{command.split()[0]} of the gang: {time.monotonic() - began:.0f} s")
        assert active(serving) == wanted and serving.serves()
    assert f"moves to release {following}, as its leader says" in serving.log(serving.follower)
    playbook("inference")
