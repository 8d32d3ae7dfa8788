# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The follower's decisions. test_leader.py simulates whole gangs of a leader and followers."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import gangs
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.follower import Follower
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.messages import (
    Down,
    Exited,
    Go,
    Joined,
    Leaving,
    Move,
    Offers,
    Prove,
    Ready,
    Refused,
    Stopping,
    Welcome,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.orders import KILL, NONE, RUN, Close, Send

from .world import NEW, OLD, gang

LINK, EPOCH = 5, 3


def follower() -> Follower:
    return Follower(gang(1))


def waiting() -> Follower:
    made = follower()
    made.receive(LINK, Welcome())
    return made


def loading() -> Follower:
    made = waiting()
    made.receive(LINK, Go(EPOCH))
    made.engine_started()
    return made


def serving() -> Follower:
    made = loading()
    made.receive(LINK, Ready(EPOCH))
    return made


def test_the_engine_starts_only_on_the_message_go() -> None:
    made = follower()
    assert not made.accepted
    assert made.wants_link and made.order.engine == NONE
    assert (made.hello.node, made.hello.rank, made.hello.digest) == ("gpu-1", 1, OLD)
    made.receive(LINK, Welcome())
    assert (made.phase, made.order.engine) == (gangs.WAITING, NONE)
    assert made.receive(LINK, Ready(EPOCH)) == [] and made.phase == gangs.WAITING
    made.receive(LINK, Go(EPOCH))
    assert (made.phase, made.order.engine, made.order.epoch) == (gangs.LOADING, RUN, EPOCH)
    assert made.accepted
    assert made.engine_started() == [Send(LINK, Joined(EPOCH))]
    made.receive(LINK, Ready(EPOCH))
    assert made.phase == gangs.SERVING


def test_a_leader_with_another_release_orders_a_move_and_no_engine() -> None:
    made = follower()
    made.receive(LINK, Refused("gpu-1 has the gang digest a"))
    made.receive(LINK, Move(4, NEW))
    assert made.move == Move(4, NEW) and made.order.engine == NONE


@pytest.mark.parametrize("made", [waiting(), loading(), serving()], ids=["waiting", "loading", "serving"])
def test_a_follower_that_is_accepted_does_not_move(made: Follower) -> None:
    phase = made.phase
    made.receive(LINK, Move(4, NEW))
    made.receive(LINK + 1, Move(4, NEW))
    assert made.move is None and made.phase == phase


def test_a_follower_does_not_move_before_its_container_is_created_anew() -> None:
    made = serving()
    made.lost(LINK, "closed the connection")
    made.receive(LINK + 1, Move(4, NEW))
    made.engine_ended("killed")
    made.receive(LINK + 1, Move(4, NEW))
    assert made.move is None


def test_the_next_hello_has_the_reason_why_a_follower_could_not_move() -> None:
    made = Follower(gang(1), 3)
    made.unmoved = "has no such release"
    assert (made.hello.release, made.hello.detail) == (3, "has no such release")
    made.receive(LINK, Welcome())
    assert made.hello.detail == ""


def test_each_connection_gets_the_offers_and_each_change_of_the_offers() -> None:
    one, other = Offers(3, 3, 3, "3:aaaaaaaaaaaa"), Offers(3, 3, 4, "4:bbbbbbbbbbbb 3:aaaaaaaaaaaa")
    made = follower()
    assert made.offer(one) == []
    assert made.receive(LINK, Welcome()) == [Send(LINK, one)]
    assert made.offer(one) == []
    assert made.offer(other) == [Send(LINK, other)]
    made.receive(LINK, Down("a stop"))
    assert made.receive(LINK + 1, Welcome()) == [Send(LINK + 1, other)]


def test_only_a_release_that_serves_is_marked_as_proven() -> None:
    made = loading()
    made.receive(LINK, Prove("a rollback", 1))
    assert made.proof is None
    made.receive(LINK, Ready(EPOCH))
    made.receive(LINK, Prove("a rollback", 1))
    assert made.proof == Prove("a rollback", 1)


def test_the_message_go_over_another_connection_starts_nothing() -> None:
    made = waiting()
    assert made.receive(LINK + 1, Go(EPOCH)) == [Close(LINK + 1)]
    assert made.order.engine == NONE


@pytest.mark.parametrize("made", [loading(), serving()], ids=["loading", "serving"])
def test_a_leader_that_is_gone_ends_the_engine_and_not_the_supervisor(made: Follower) -> None:
    made.lost(LINK, "was silent for 10 s")
    assert (made.order.engine, made.order.reason) == (KILL, "gpu-0 is gone: it was silent for 10 s")
    assert not made.wants_link, "no hello while an engine may run"
    made.engine_ended("killed")
    assert (made.phase, made.order.engine) == (gangs.MISSING, NONE)
    assert made.wants_container and not made.wants_link
    made.created()
    assert made.wants_link
    assert made.detail == "gpu-0 is gone: it was silent for 10 s"


def test_a_follower_accepts_epoch_1_of_a_restored_leader() -> None:
    """A node that is restored from a snapshot has lost the count of epochs."""
    made = serving()
    made.lost(LINK, "was silent for 10 s")
    made.engine_ended("killed")
    made.created()
    made.receive(LINK + 1, Welcome())
    made.receive(LINK + 1, Go(1))
    assert (made.phase, made.order.engine, made.order.epoch) == (gangs.LOADING, RUN, 1)
    assert made.engine_started() == [Send(LINK + 1, Joined(1))]


def test_the_message_down_ends_the_engine() -> None:
    made = serving()
    assert made.receive(LINK, Down("the gang has ended")) == [Close(LINK)]
    assert (made.order.engine, made.order.planned) == (KILL, True)


def test_the_end_of_a_followers_engine_is_sent_to_the_leader() -> None:
    made = serving()
    assert made.engine_ended("exit code 1") == [Send(LINK, Exited(EPOCH, "exit code 1")), Close(LINK)]
    assert (made.phase, made.order.engine, made.epoch) == (gangs.MISSING, NONE, 0)
    assert made.detail == "its engine ended: exit code 1"


def test_a_stop_waits_for_the_leader() -> None:
    made = serving()
    assert made.stop("a reboot", 100.0, 60.0) == [Send(LINK, Leaving("a reboot"))]
    assert made.stop("a reboot", 100.0, 60.0) == []
    made.receive(LINK, Stopping("gpu-1 leaves"))
    made.tick(159.0)
    assert (made.phase, made.order.engine) == (gangs.LEAVING, RUN)
    made.receive(LINK, Down("drained"))
    assert made.order.engine == KILL
    made.engine_ended("killed")
    assert made.phase == gangs.STOPPED and not made.wants_container and not made.wants_link


def test_a_stop_does_not_wait_for_ever() -> None:
    made = serving()
    made.stop("a reboot", 100.0, 60.0)
    made.tick(160.0)
    assert (made.order.engine, made.order.reason) == (KILL, "gpu-0 did not stop the gang in time")


@pytest.mark.parametrize("made", [follower(), waiting()], ids=["missing", "waiting"])
def test_a_stop_without_an_engine_is_immediate(made: Follower) -> None:
    made.stop("a stop", 0.0, 60.0)
    assert made.phase == gangs.STOPPED and not made.wants_link


def test_a_stop_while_the_engine_is_killed_takes_effect_after_the_engines_end() -> None:
    made = serving()
    made.lost(LINK, "closed the connection")
    assert made.stop("a stop", 0.0, 60.0) == []
    assert made.order.engine == KILL
    made.engine_ended("killed")
    assert made.phase == gangs.STOPPED


def test_a_refusal_is_shown_until_the_leader_answers_otherwise() -> None:
    made = follower()
    made.receive(LINK, Refused("gpu-1 has the gang digest b"))
    made.lost(LINK, "closed the connection")
    assert (made.phase, made.detail) == (gangs.REFUSED, "gpu-1 has the gang digest b")
    made.lost(LINK + 1, "cannot be reached (Connection refused)")
    assert (made.phase, made.detail) == (gangs.MISSING, "gpu-0 cannot be reached (Connection refused)")
    made.receive(LINK + 2, Welcome())
    assert made.phase == gangs.WAITING


def test_a_follower_keeps_dialing_a_leader_that_stopped_before_the_message_go() -> None:
    made = waiting()
    made.receive(LINK, Down("gpu-0 stops the instance"))
    assert (made.phase, made.order.engine) == (gangs.MISSING, NONE)
    assert made.wants_link and not made.wants_container
