# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The faults of engines, supervisors and the link, while a client reads a long answer, and further idle faults."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest
from gang import ENDED, NAME, OUTLIVES, SILENCE, TIMES, TOKENS, WHOLE, Client, Gang, all_gone
from node import Node, wait_for

pytestmark = pytest.mark.full

FAULTS: dict[str, tuple[Callable[[Gang], None], float]] = {
    "the follower's engine is killed": (lambda gang: gang.kill_engine(gang.follower), ENDED),
    "the leader's engine is killed": (lambda gang: gang.kill_engine(gang.leader), ENDED),
    "the follower's supervisor is killed": (lambda gang: gang.kill_supervisor(gang.follower), ENDED),
    "the leader's supervisor is killed": (lambda gang: gang.kill_supervisor(gang.leader), ENDED),
    # The engine itself must notice the death of a worker, and end.
    "a worker of the follower is killed": (lambda gang: gang.kill_worker(gang.follower), 2 * OUTLIVES),
    "a worker of the leader is killed": (lambda gang: gang.kill_worker(gang.leader), 2 * OUTLIVES),
}


def bare_start(gang: Gang) -> float:
    """Seconds from the start of both containers, without supervisors, to an answer of the engine."""
    for node in gang.nodes:
        node.run(f"systemctl stop vllm@{NAME}")
    try:
        create(gang.leader, gang)
        create(gang.follower, gang)
        began = time.monotonic()
        for node in gang.nodes:
            node.run(f"docker start vllm-{NAME}")
        wait_for("the bare engines serve", gang.answer)
        return time.monotonic() - began
    finally:
        for node in gang.nodes:
            node.run(f"docker rm --force vllm-{NAME}")
        for node in gang.nodes:
            node.run(f"systemctl start --no-block vllm@{NAME}")


def create(node: Node, gang: Gang) -> None:
    """Create the container of the active release."""
    number = gang.status(node)["release"]["active"]
    release = json.loads(node.run(f"cat /var/lib/inference/releases/{NAME}/{number}/release.json"))
    words = " ".join(f"'{word}'" for word in release["container_argv"])
    node.run(f"docker {words}")


def test_a_bare_start_is_measured_for_comparison(serving: Gang) -> None:
    """The report prints this time next to the times after faults. No limit: other work on the machine changes both."""
    TIMES.append(f"bare start of the same engines: {bare_start(serving):.1f} s")
    serving.wait_serving()
    TIMES.append(f"the start of the gang after that: {serving.log(serving.leader).rpartition('ready ')[2][:11]}")


@pytest.mark.parametrize("name", FAULTS)
def test_a_gang_serves_again_after_a_fault_while_a_client_reads(serving: Gang, name: str) -> None:
    inject, ended = FAULTS[name]
    client = Client(serving.leader)
    with serving.fault(f"{name}, busy", ended, client):
        inject(serving)


@pytest.mark.parametrize("name", FAULTS)
def test_a_gang_serves_again_after_an_idle_fault(serving: Gang, name: str) -> None:
    inject, ended = FAULTS[name]
    with serving.fault(f"{name}, idle", ended):
        inject(serving)


def cut(gang: Gang, name: str, client: Client | None = None) -> None:
    """Cut the link until all engines have ended. Then restore the link, and wait until the gang serves."""
    epoch, pids, began = gang.epoch(), gang.engine_pids(), time.time()
    with gang.cut():
        wait_for("both sides end", lambda: all_gone(pids) and gang.engines_gone(), SILENCE)
        saw = f"; the client saw {client.saw()}" if client else ""
    restored = time.time()
    gang.wait_next(epoch, "the link is back")
    words = ", ".join(f"{node} {at - began:.1f} s" for node, at in gang.ends(began).items())
    TIMES.append(f"{name}: engines ended after {words}; from the link's return, {gang.again(restored)}{saw}")
    gang.assert_alone(name)


def test_a_gang_serves_again_after_a_cut_while_a_client_reads(serving: Gang) -> None:
    cut(serving, "the link is cut, busy", Client(serving.leader))


def test_a_gang_serves_again_after_an_idle_cut(serving: Gang) -> None:
    cut(serving, "the link is cut, idle")


def test_an_idle_gang_waits_for_a_stopped_follower(serving: Gang) -> None:
    began = time.monotonic()
    serving.follower.run(f"systemctl stop vllm@{NAME}")
    TIMES.append(f"a follower is stopped, idle: stopped after {time.monotonic() - began:.1f} s")
    wait_for("the leader waits", lambda: serving.status(serving.leader)["state"] == "waiting", 60)
    assert serving.engines_gone() and not serving.status(serving.leader)["drain"]
    started = time.time()
    serving.follower.run(f"systemctl start --no-block vllm@{NAME}")
    serving.wait_serving()
    TIMES.append(f"the stopped follower starts: {serving.again(started)}")


def test_a_stop_of_a_follower_lets_a_client_finish(serving: Gang) -> None:
    client, began = Client(serving.leader, TOKENS), time.monotonic()
    serving.follower.run(f"systemctl stop vllm@{NAME}")
    stopped, saw = time.monotonic() - began, client.saw()
    serving.follower.run(f"systemctl start --no-block vllm@{NAME}")
    TIMES.append(f"a follower is stopped, busy: stopped after {stopped:.1f} s; the client saw {saw}")
    assert saw.endswith(WHOLE), saw
    serving.wait_serving()


def test_a_gang_serves_again_after_a_worker_hangs(serving: Gang) -> None:
    epoch, began = serving.epoch(), time.time()
    serving.follower.run("pkill -STOP -f VLLM::Worke[r]")
    serving.wait_next(epoch, "a follower's worker hangs", 400)
    TIMES.append(f"a worker of the follower hangs, idle: {serving.times(began)}")
    serving.assert_alone("a worker hangs")
