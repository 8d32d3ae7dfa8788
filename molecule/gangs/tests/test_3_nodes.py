# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of whole nodes and of Docker, and stops of the leader."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from gang import LONG, NAME, SILENCE, TIMES, TOKENS, WHOLE, Client, Gang, gone, reboot
from node import Node, wait_for

pytestmark = pytest.mark.full

MEMBERS = ("follower", "leader")


def test_a_restart_of_dockerd_does_not_disturb_a_gang(serving: Gang) -> None:
    epoch, client = serving.epoch(), Client(serving.leader, TOKENS)
    for node in serving.nodes:
        node.run("systemctl restart docker")
    time.sleep(12)
    saw = client.saw()
    TIMES.append(f"dockerd restarts on both nodes, busy: the client saw {saw}")
    assert saw.endswith(WHOLE), saw
    assert serving.epoch() == epoch and serving.serves()


@pytest.mark.parametrize("member", MEMBERS)
@pytest.mark.parametrize(("goes", "tokens"), [(Node.cut_power, LONG), (reboot, TOKENS)], ids=["power", "reboot"])
def test_a_gang_serves_again_after_a_member_loses_power_or_reboots(
    serving: Gang, member: str, goes: Callable[[Node], None], tokens: int
) -> None:
    epoch, pids, node = serving.epoch(), serving.engine_pids(), getattr(serving, member)
    (other,) = (one for one in serving.nodes if one is not node)
    client, began = Client(serving.leader, tokens), time.monotonic()
    goes(node)
    wait_for("the other engine ends", lambda: gone(other, pids[other]), 20)
    ended, saw = time.monotonic() - began, client.saw()
    serving.wait_next(epoch, "the node is back")
    TIMES.append(
        f"the {member}'s node boots after {goes.__name__}, busy: the other engine was gone after {ended:.1f} s,"
        f" serves after {time.monotonic() - began:.0f} s; the client saw {saw}"
    )
    if goes is reboot and member == "follower":
        assert saw.endswith(WHOLE), saw
    serving.assert_alone(member)


@pytest.mark.parametrize("member", MEMBERS)
def test_a_gang_waits_for_an_idle_member_without_power(serving: Gang, member: str) -> None:
    """The link is cut before the power, so that the other member sees no end of a connection: only silence."""
    epoch, pids, node = serving.epoch(), serving.engine_pids(), getattr(serving, member)
    (other,) = (one for one in serving.nodes if one is not node)
    began = time.monotonic()
    with serving.cut():
        node.power_off()
        wait_for("the other engine ends", lambda: gone(other, pids[other]), SILENCE)
        ended = time.monotonic() - began
        state = "waiting" if other is serving.leader else "missing"
        wait_for("the other member reports the loss", lambda: serving.status(other)["state"] == state, 60)
        assert not serving.engine_runs(other)
        status, message = serving.doctor(other)
        assert status == "fail" and node.name in message, message
    began = time.monotonic()
    node.power_on()
    serving.wait_next(epoch, "the node is back")
    serves = time.monotonic() - began
    TIMES.append(
        f"the {member}'s node loses power, idle: the other engine ended after {ended:.1f} s,"
        f" serves {serves:.0f} s after the power is back"
    )
    serving.assert_alone(member)


def test_a_stopped_leader_finishes_its_request_and_then_the_follower_ends(serving: Gang) -> None:
    client, began = Client(serving.leader, TOKENS), time.monotonic()
    serving.leader.run(f"systemctl stop vllm@{NAME}")
    stopped, saw = time.monotonic() - began, client.saw()
    assert saw.endswith(WHOLE), saw
    wait_for("the follower's engine ends", lambda: not serving.engine_runs(serving.follower), 20)
    serving.leader.run(f"systemctl start --no-block vllm@{NAME}")
    TIMES.append(f"the leader is stopped, busy: stopped after {stopped:.1f} s; the client saw {saw}")
    serving.wait_serving()
