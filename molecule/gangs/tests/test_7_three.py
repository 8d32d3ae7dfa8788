# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A gang of three nodes, of the same name: a member is added, and removed again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import three_heads
import yaml
from gang import ENDED, NAME, SILENCE, TIMES, Gang, all_gone, third_node
from node import CACHE, EPHEMERAL, PROJECT, playbook, wait_for

pytestmark = pytest.mark.full

HOSTS: dict[str, Any] = yaml.safe_load((PROJECT / "molecule/gangs/hosts.yml").read_text())["inference"]["hosts"]
MODEL = "tiny-three"


def stop(gang: Gang) -> None:
    """Stop the instance on all members, the leader first."""
    for node in gang.nodes:
        node.run(f"systemctl stop vllm@{NAME}")


def declared(weights: Path) -> dict[str, Any]:
    """Variables that declare the instance over three nodes."""
    host = HOSTS["deb12"]
    entry = {**host["models"]["tiny-a"], "model": f"controller:{weights}", "tensor-parallel-size": 3, "max-num-seqs": 8}
    instance = {**host["instances"][0], "model": MODEL, "nodes": ["deb12", "deb13", "third"]}
    return {"models": {MODEL: entry}, "instances": [instance]}


@pytest.fixture(scope="module")
def three(gang: Gang) -> Iterator[Gang]:
    """The gang with a third member. Its nodes change, so all members stop, as docs/gangs.md says."""
    weights = EPHEMERAL / MODEL
    three_heads.make(CACHE / "models/tiny-a", weights)
    environment = HOSTS["deb12"]["vllm_environment"]

    def site(connection: dict[str, Any]) -> dict[str, Any]:
        # The third node does not get the demo's instance.
        host = {**connection, "instances": [], "vllm_environment": environment}
        return {"inference": {"hosts": {"third": host}}}

    gang.wait_serving()
    try:
        with third_node(gang.scenario, site) as third:
            stop(gang)
            began = time.monotonic()
            playbook("inference", **declared(weights))
            TIMES.append(f"three members: set up from two in {time.monotonic() - began:.0f} s")
            yield Gang(*gang.nodes, third)
    finally:
        stop(gang)
        playbook("inference")
    gang.wait_serving()
    assert gang.answer() == "I am tiny-a."


@pytest.fixture
def serving(three: Gang) -> Gang:
    """The gang of three, once it serves, with a full budget."""
    three.wait_serving()
    three.reset_counts()
    return three


def test_a_gang_of_three_members_answers(serving: Gang) -> None:
    assert serving.answer() == "I am tiny-a."
    workers = [node.run("pgrep --full VLLM::Worke[r]", check=False) for node in serving.nodes]
    assert all(workers), workers
    members = serving.status(serving.leader)["gang"]["members"]
    assert [(member["node"], member["state"]) for member in members] == [
        (node.name, "serving") for node in serving.nodes
    ]
    assert {serving.doctor(node)[0] for node in serving.nodes} == {"ok"}


def test_the_end_of_the_last_members_engine_ends_all_three(serving: Gang) -> None:
    with serving.fault("three members: the last follower's engine is killed, idle", ENDED):
        serving.kill_engine(serving.nodes[2])


def test_a_cut_link_to_a_member_ends_all_engines_and_only_that_member_is_missing(serving: Gang) -> None:
    lost, other = serving.nodes[2], serving.follower
    epoch, pids, began = serving.epoch(), serving.engine_pids(), time.monotonic()
    with serving.cut(lost):
        wait_for("all engines end", lambda: all_gone(pids) and serving.engines_gone(), SILENCE)
        TIMES.append(f"three members: one is cut off, idle: all ended after {time.monotonic() - began:.1f} s")
        wait_for("the leader waits", lambda: serving.status(serving.leader)["state"] == "waiting", 60)
        # The member that the leader still reaches waits with the leader.
        wait_for("the other member waits", lambda: serving.status(other)["gang"]["state"] == "waiting", 60)
        status, message = serving.doctor(serving.leader)
        assert status == "fail" and f"{lost.name} is missing" in message and other.name not in message, message
        assert serving.engines_gone()
    serving.wait_next(epoch, "the member is back")
    serving.assert_alone("a member of three is cut off")


def test_a_gang_of_three_waits_for_a_stopped_member(serving: Gang) -> None:
    serving.follower.run(f"systemctl stop vllm@{NAME}")
    wait_for("the leader waits", lambda: serving.status(serving.leader)["state"] == "waiting", 60)
    wait_for("all engines end", serving.engines_gone, 30)
    started = time.time()
    serving.follower.run(f"systemctl start --no-block vllm@{NAME}")
    serving.wait_serving()
    TIMES.append(f"three members: the stopped one starts: {serving.again(started)}")
