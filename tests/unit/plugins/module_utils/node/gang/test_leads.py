# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The leader's side without an engine. test_follows.py has whole gangs of processes."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.docker_api import Docker
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.core.systemd import Notifier
from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang.members import Gang
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import gangs
from ansible_collections.baremetal.inference.plugins.module_utils.node import supervisor
from ansible_collections.baremetal.inference.plugins.module_utils.node.events import Events
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang import leads
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.channel import Dialer, Heard
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.leads import Leads
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.messages import (
    Hello,
    Leaving,
    Offers,
    Prove,
    Welcome,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.orders import DRAIN, KILL, RUN, Send
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.record import Record
from ansible_collections.baremetal.inference.plugins.module_utils.node.supervisor import Supervisor

from ....ports import free_port
from .machines import members, until
from .test_sides import release


class Leader:
    """A leader's side, and what it did with the drain."""

    def __init__(self, root: Path) -> None:
        self.paths = Paths(root)
        self.secret = root / "gang.key"
        self.secret.write_text("0123456789abcdef")
        self.gang = Gang("big", 0, members(2), free_port(), 29510, "a" * 64)
        self.drained: list[str] = []
        self.idle = False
        self.side = Leads(
            self.gang,
            self.secret,
            Record(self.paths, self.gang, lambda text: None),
            Notifier({}),
            drain=self.drained.append,
            undrain=lambda: self.drained.append(""),
            is_idle=lambda: self.idle,
        )

    def follower(self, wake: Callable[[], None] = lambda: None) -> Dialer:
        gang = Gang("big", 1, members(2), self.gang.gang_port, 29510, "a" * 64)
        made = Dialer(gang, self.secret, wake, lambda: Hello("gpu-1", 1, "a" * 64, 3, ""))
        made.want(True, 0.05)
        return made


@pytest.fixture
def leader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Leader]:
    for name, value in (("IDLE_INTERVAL", 0.05), ("GATEWAYS_NOTICE", 0.2), ("POLL", 0.05)):
        monkeypatch.setattr(leads, name, value)
    yield Leader(tmp_path)


def test_gathering_ends_with_the_last_member_and_is_recorded(leader: Leader) -> None:
    with Events() as events, leader.side.over(events) as side, leader.follower():
        assert side.gather()
        assert side.order().engine == RUN
        side.engine_ready()
    known = gangs.read(leader.paths, "big")
    assert known is not None and known.state == gangs.ENDED and known.epoch == 1
    assert known.detail == "the leader's engine ended: the supervisor ends"
    # The drain that a killed process left is removed at the start, and the drain of this process is removed at the end.
    assert leader.drained == ["", ""]


def test_the_offers_of_a_follower_are_recorded_and_a_proof_is_sent(leader: Leader) -> None:
    proof = Prove("", 0)
    leader.side._proof = lambda: proof
    with Events() as events, leader.side.over(events) as side, leader.follower(events.wake) as follower:
        assert side.gather()
        side.engine_ready()
        heard: list[Heard] = []

        def received(kind: type) -> bool:
            heard.extend(event for event in follower.events() if isinstance(event, Heard))
            side.order()
            return any(isinstance(event.message, kind) for event in heard)

        until(lambda: received(Welcome))
        follower.perform([Send(heard[0].link, Offers(3, 2, 4, "4:bbbbbbbbbbbb 3:aaaaaaaaaaaa"))])
        until(lambda: received(Prove))

        def recorded() -> bool:
            side.order()
            known = gangs.read(leader.paths, "big")
            seen = known.members[1] if known else None
            return seen is not None and (seen.active, seen.current, seen.desired) == (3, 2, 4)

        until(recorded)


def test_a_stop_ends_the_wait_for_members(leader: Leader) -> None:
    with Events() as events, leader.side.over(events) as side:
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGTERM)).start()
        assert not side.gather()
    known = gangs.read(leader.paths, "big")
    assert known is not None and known.state == gangs.STOPPED and known.planned


def test_a_stop_while_dockerd_is_slow_is_no_fault(leader: Leader, monkeypatch: pytest.MonkeyPatch) -> None:
    """The unit is stopped before its container runs."""
    dockerd = threading.Event()
    monkeypatch.setattr(supervisor, "attach", lambda *_given: dockerd.wait(10))
    made = Supervisor(replace(release(), gang=leader.gang), Docker(leader.secret), Notifier({}), gang=leader.side)
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGTERM)).start()
    with leader.follower():
        assert made.run() == 0
    dockerd.set()
    known = gangs.read(leader.paths, "big")
    assert known is not None and (known.state, known.planned) == (gangs.STOPPED, True), known


def test_a_member_that_leaves_drains_the_instance_until_it_is_idle(leader: Leader) -> None:
    with Events() as events, leader.side.over(events) as side, leader.follower(events.wake) as follower:
        assert side.gather()
        side.engine_ready()
        links: list[int] = []

        def heard() -> bool:
            links.extend(event.link for event in follower.events() if isinstance(event, Heard))
            return bool(links)

        until(heard)
        link = links[0]
        follower.perform([Send(link, Leaving("a reboot"))])
        until(lambda: side.order().engine == DRAIN)
        threading.Timer(0.3, lambda: setattr(leader, "idle", True)).start()
        began = time.monotonic()
        side.empty(20.0)
        assert 0.2 < time.monotonic() - began < 5
        assert leader.drained[1] == "gpu-1 leaves: a reboot"


def test_a_drain_ends_with_its_limit_or_with_the_gang(leader: Leader) -> None:
    with Events() as events, leader.side.over(events) as side:
        with leader.follower(events.wake) as follower:
            assert side.gather()
            side.engine_ready()
            side.stop()
            began = time.monotonic()
            side.empty(0.3)
            assert time.monotonic() - began < 3
            assert side.order().engine == DRAIN
            follower.want(False)
        until(lambda: side.order().engine == KILL)
        began = time.monotonic()
        side.empty(20.0)
        assert time.monotonic() - began < 1


def test_a_channel_that_fails_ends_the_engine(leader: Leader, monkeypatch: pytest.MonkeyPatch) -> None:
    with Events() as events, leader.side.over(events) as side, leader.follower():
        assert side.gather()
        monkeypatch.setattr(leader.side._channel, "_maintain", lambda now: 1 / 0)
        until(lambda: side.order().engine == KILL)
        assert "the gang's channel has failed" in side.order().reason
