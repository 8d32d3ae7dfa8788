# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The leader's decisions: single transitions, and every order of two events in a simulated gang."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import gangs
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.leader import (
    EXIT_GRACE,
    PROVE_INTERVAL,
    REFUSAL,
    Leader,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.messages import (
    Down,
    Exited,
    Go,
    Hello,
    Joined,
    Leaving,
    Message,
    Move,
    Offers,
    Prove,
    Ready,
    Refused,
    Stopping,
    Welcome,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.orders import (
    DRAIN,
    KILL,
    NONE,
    RUN,
    Actions,
    Close,
    Send,
)

from .world import NEW, OLD, World, gang

EPOCH = 7


def hello(rank: int = 1, digest: str = OLD, node: str = "") -> Hello:
    return Hello(node or f"gpu-{rank}", rank, digest, 3, "")


def sent(actions: Actions, link: int) -> list[Message]:
    return [action.message for action in actions if isinstance(action, Send) and action.link == link]


def closed(actions: Actions) -> set[int]:
    return {action.link for action in actions if isinstance(action, Close)}


def joined(size: int = 2) -> Leader:
    """A leader whose gang loads. Follower 1 has the connection 11, follower 2 has 12."""
    leader = Leader(gang(0, size), EPOCH)
    for rank in range(1, size):
        leader.receive(10 + rank, hello(rank), f"10.0.0.{rank + 1}", 0.0)
    for rank in range(1, size):
        leader.receive(10 + rank, Joined(EPOCH), f"10.0.0.{rank + 1}", 0.0)
    return leader


def serving(size: int = 2) -> Leader:
    leader = joined(size)
    leader.engine_ready()
    return leader


def test_nothing_starts_before_the_last_member_is_there() -> None:
    leader = Leader(gang(0, 3), EPOCH)
    actions = leader.receive(11, hello(1), "10.0.0.2", 0.0)
    assert sent(actions, 11) == [Welcome()]
    assert leader.order.engine == NONE
    assert [seat.member.node for seat in leader.missing()] == ["gpu-2"]
    actions = leader.receive(12, hello(2), "10.0.0.3", 1.0)
    assert sent(actions, 11) == [Go(EPOCH)]
    assert sent(actions, 12) == [Welcome(), Go(EPOCH)]
    assert (leader.order.engine, leader.order.epoch, leader.phase) == (RUN, EPOCH, gangs.LOADING)


def test_the_leader_waits_again_for_a_member_that_was_lost() -> None:
    leader = Leader(gang(0, 3), EPOCH)
    leader.receive(11, hello(1), "10.0.0.2", 0.0)
    leader.lost(11, "was silent for 10 s")
    leader.receive(12, hello(2), "10.0.0.3", 1.0)
    assert leader.order.engine == NONE
    assert [(seat.member.node, seat.detail) for seat in leader.missing()] == [("gpu-1", "was silent for 10 s")]


def test_a_member_with_another_gang_digest_is_refused_and_must_move() -> None:
    leader = Leader(gang(0), EPOCH)
    actions = leader.receive(11, hello(digest=NEW), "10.0.0.2", 0.0)
    refused, move = sent(actions, 11)
    assert isinstance(refused, Refused) and move == Move(0, OLD)
    assert "gpu-1 has the gang digest bbbbbbbbbbbb, and gpu-0 has aaaaaaaaaaaa" in refused.reason
    assert closed(actions) == {11}
    (seat,) = leader.missing()
    assert (seat.state, seat.detail) == (gangs.REFUSED, f"{refused.reason}: it moves")
    leader.receive(12, Hello("gpu-1", 1, NEW, 3, "has no such release"), "10.0.0.2", 0.0)
    assert seat.detail == f"{refused.reason}: has no such release"
    leader.tick(REFUSAL)
    assert seat.state == gangs.MISSING
    leader.receive(12, hello(), "10.0.0.2", 40.0)
    assert leader.order.engine == RUN


@pytest.mark.parametrize(
    ("message", "address"),
    [
        (hello(rank=2), "10.0.0.2"),
        (hello(rank=0, node="gpu-0"), "10.0.0.1"),
        (hello(node="gpu-9"), "10.0.0.2"),
        (hello(), "10.0.0.9"),
    ],
)
def test_only_a_member_at_its_own_address_is_accepted(message: Hello, address: str) -> None:
    leader = Leader(gang(0), EPOCH)
    actions = leader.receive(11, message, address, 0.0)
    (refused,) = sent(actions, 11)
    assert isinstance(refused, Refused) and "is no member of this gang at gpu-0" in refused.reason
    assert closed(actions) == {11}
    assert leader.missing()[0].state == gangs.MISSING
    assert leader.order.engine == NONE


def test_a_message_without_a_hello_closes_the_connection() -> None:
    leader = joined()
    assert closed(leader.receive(99, Exited(EPOCH, "exit code 1"), "10.0.0.2", 0.0)) == {99}
    assert leader.order.engine == RUN


def test_the_message_ready_is_sent_to_all_followers() -> None:
    leader = joined(3)
    actions = leader.engine_ready()
    assert sent(actions, 11) == sent(actions, 12) == [Ready(EPOCH)]
    assert {seat.state for seat in leader.seats.values()} == {gangs.SERVING}
    assert leader.engine_ready() == []


@pytest.mark.parametrize("start", [joined, serving])
def test_a_lost_member_ends_the_gang_at_once(start: Callable[[int], Leader]) -> None:
    leader = start(3)
    actions = leader.lost(12, "closed the connection")
    assert (leader.order.engine, leader.order.reason) == (KILL, "gpu-2 is gone: it closed the connection")
    assert not leader.order.planned
    assert [type(message) for message in sent(actions, 11)] == [Down]
    assert 11 in closed(actions)
    leader.engine_ended("killed")
    assert (leader.order.engine, leader.phase) == (NONE, gangs.ENDED)


@pytest.mark.parametrize("start", [joined, serving])
def test_the_end_of_a_followers_engine_ends_the_gang_at_once(start: Callable[[], Leader]) -> None:
    leader = start()
    actions = leader.receive(11, Exited(EPOCH, "exit code 137"), "10.0.0.2", 0.0)
    assert leader.order.engine == KILL
    assert leader.order.reason == "the engine of gpu-1 ended: exit code 137"
    assert [type(message) for message in sent(actions, 11)] == [Down]
    # The reason stays when the connection goes.
    leader.lost(11, "closed the connection")
    assert leader.seats[1].state == gangs.ENDED


def test_messages_of_another_epoch_are_ignored() -> None:
    leader = serving()
    assert leader.receive(11, Exited(EPOCH - 1, "exit code 1"), "10.0.0.2", 0.0) == []
    assert leader.order.engine == RUN


def test_the_end_of_the_leaders_engine_is_sent_to_all_followers() -> None:
    leader = serving(3)
    actions = leader.engine_ended("exit code 1")
    for link in (11, 12):
        assert sent(actions, link) == [Down("the leader's engine ended: exit code 1")]
    assert (leader.order.engine, leader.phase, leader.order.planned) == (NONE, gangs.ENDED, False)
    assert leader.engine_ended("again") == []


def test_a_stop_drains_first_and_members_end_last() -> None:
    leader = serving()
    actions = leader.stop()
    assert sent(actions, 11) == [Stopping("gpu-0 stops the instance")]
    assert (leader.order.engine, leader.order.planned) == (DRAIN, True)
    assert leader.stop() == []
    actions = leader.engine_ended("drained")
    assert [type(message) for message in sent(actions, 11)] == [Down]
    assert leader.phase == gangs.STOPPED


def test_a_stop_while_members_are_missing_or_load_needs_no_drain() -> None:
    leader = Leader(gang(0, 3), EPOCH)
    leader.receive(11, hello(1), "10.0.0.2", 0.0)
    assert [type(message) for message in sent(leader.stop(), 11)] == [Down]
    assert (leader.order.engine, leader.phase) == (NONE, gangs.STOPPED)
    leader = joined()
    assert [type(message) for message in sent(leader.stop(), 11)] == [Down]
    assert (leader.order.engine, leader.order.planned) == (KILL, True)


def test_a_member_that_leaves_starts_a_drain() -> None:
    leader = serving(3)
    actions = leader.receive(11, Leaving("its unit is being stopped"), "10.0.0.2", 0.0)
    assert sent(actions, 12) == [Stopping("gpu-1 leaves: its unit is being stopped")]
    assert (leader.order.engine, leader.order.planned) == (DRAIN, True)
    assert leader.seats[1].state == gangs.LEAVING
    # The loss of the leaving member ends the drain at once, and the end counts as planned.
    leader.lost(11, "closed the connection")
    assert (leader.order.engine, leader.order.planned) == (KILL, True)


def test_another_member_that_is_lost_in_a_drain_is_a_failure() -> None:
    leader = serving(3)
    leader.receive(11, Leaving("its unit is being stopped"), "10.0.0.2", 0.0)
    leader.lost(12, "was silent for 10 s")
    assert (leader.order.engine, leader.order.planned) == (KILL, False)


def test_the_leaders_engine_gets_time_to_end_in_a_drain() -> None:
    leader = serving()
    leader.stop()
    leader.receive(11, Exited(EPOCH, "exit code 0"), "10.0.0.2", 100.0)
    leader.lost(11, "closed the connection")
    assert leader.order.engine == DRAIN
    leader.tick(100.0 + EXIT_GRACE - 0.1)
    assert leader.order.engine == DRAIN
    leader.tick(100.0 + EXIT_GRACE)
    assert leader.order.engine == KILL


def test_a_new_connection_of_a_member_replaces_its_old_connection() -> None:
    leader = Leader(gang(0, 3), EPOCH)
    leader.receive(11, hello(1), "10.0.0.2", 0.0)
    actions = leader.receive(21, hello(1), "10.0.0.2", 1.0)
    assert closed(actions) == {11}
    assert leader.lost(11, "closed the connection") == []
    leader.receive(12, hello(2), "10.0.0.3", 2.0)
    assert leader.order.engine == RUN


def test_a_member_that_starts_anew_ends_the_gang() -> None:
    leader = serving()
    actions = leader.receive(21, hello(), "10.0.0.2", 1.0)
    assert (leader.order.engine, leader.order.reason) == (KILL, "gpu-1 started anew")
    assert closed(actions) >= {11, 21}
    assert [type(message) for message in sent(leader.receive(22, hello(), "10.0.0.2", 1.5), 22)] == [Down]


def test_a_member_runs_the_release_that_a_swap_has_recorded() -> None:
    """Two releases may have the same digest: GPUs, for example, are not part of the digest."""
    leader = Leader(gang(0), EPOCH, {"gpu-1": 4})
    actions = leader.receive(11, hello(), "10.0.0.2", 0.0)
    refused, move = sent(actions, 11)
    assert refused == Refused("gpu-1 has its release 3, and its release 4 must run") and move == Move(4, OLD)
    assert closed(actions) == {11} and leader.order.engine == NONE
    leader.receive(12, Hello("gpu-1", 1, OLD, 4, ""), "10.0.0.2", 1.0)
    assert leader.order.engine == RUN


def test_members_are_asked_to_mark_a_proven_release_until_they_offer_the_mark() -> None:
    leader = serving(3)
    assert leader.tick(0.0) == []
    leader.proof = Prove("", 0)
    assert leader.tick(1.0) == [Send(11, leader.proof), Send(12, leader.proof)]
    assert leader.tick(2.0) == []
    leader.receive(11, Offers(3, 3, 3, "3:aaaaaaaaaaaa"), "10.0.0.2", 2.0)
    assert leader.seats[1].offers.current == 3
    assert leader.tick(1.0 + PROVE_INTERVAL) == [Send(12, leader.proof)]


def test_a_gang_that_does_not_serve_proves_nothing() -> None:
    leader = joined()
    leader.proof = Prove("", 0)
    assert leader.tick(1.0) == []


# Every order of two events, and random orders of up to six.

EVENTS: dict[str, Callable[[World, int], None]] = {
    "engine dies": World.engine_dies,
    "supervisor dies": World.supervisor_dies,
    "cut": World.cut,
    "heal": World.heal,
    "power off": World.power_off,
    "power on": World.power_on,
    "stop": World.stop,
    "start": World.start,
    "another digest": World.change_digest,
    "stranger": World.stranger,
}

CHOICES = [(name, rank) for name in EVENTS for rank in (0, 1)]


def mend(world: World) -> None:
    for node in world.nodes:
        world.heal(node.rank)
        world.start(node.rank)
        if not node.powered:
            world.power_on(node.rank)
        if node.digest != OLD:
            world.restore_digest(node.rank)


def recovers(world: World) -> bool:
    mend(world)
    return world.run(60, lambda: world.serving)


@pytest.mark.parametrize("gap", [0.0, 0.5, 12.0])
@pytest.mark.parametrize("begin", [0.0, 3.0, 10.0], ids=["gathering", "loading", "serving"])
def test_a_gang_serves_again_after_every_order_of_two_events(begin: float, gap: float) -> None:
    """`World.step` checks that no engine runs without `go`, and that no engine outlives its gang for too long."""
    begun = World()
    begun.run(begin)
    untouched = pickle.dumps(begun)
    # Only the state decides how a world goes on. Many pairs of events lead to one state, which is tried once.
    known: set[bytes] = set()
    for first, one in CHOICES:
        world: World = pickle.loads(untouched)
        EVENTS[first](world, one)
        world.run(gap)
        # The time until the second event is simulated once for all second events.
        after_first = pickle.dumps(world)
        for second, other in CHOICES:
            world = pickle.loads(after_first)
            EVENTS[second](world, other)
            state = pickle.dumps(world)
            if state in known:
                continue
            known.add(state)
            world.run(14)
            assert recovers(world), (first, one, second, other)


@given(st.lists(st.tuples(st.sampled_from(sorted(EVENTS)), st.integers(0, 2), st.floats(0, 15)), max_size=6))
@settings(max_examples=settings().max_examples * 2 // 5)
def test_a_gang_serves_again_after_random_events(events: list[tuple[str, int, float]]) -> None:
    world = World(3)
    # The leader may be cut off while it waits out a member's silence. Then the others wait out the leader's silence.
    world.outlives = 22.0
    for name, rank, pause in events:
        EVENTS[name](world, rank)
        world.run(pause)
    assert recovers(world)


@pytest.mark.parametrize("event", ["engine dies", "supervisor dies", "another digest"])
@pytest.mark.parametrize("rank", [1, 2])
def test_all_engines_end_within_two_seconds_after_a_member_is_lost(event: str, rank: int) -> None:
    world = World(3)
    assert world.run(30, lambda: world.serving)
    epoch = world.epoch
    EVENTS[event](world, rank)
    assert world.run(2, lambda: not any(node.engine == epoch for node in world.nodes))


@pytest.mark.parametrize("event", ["cut", "power off"])
@pytest.mark.parametrize("rank", [0, 1])
def test_all_engines_end_after_ten_seconds_of_silence(event: str, rank: int) -> None:
    world = World(3)
    assert world.run(30, lambda: world.serving)
    epoch, others = world.epoch, [1, 2] if rank == 0 else [0]
    EVENTS[event](world, rank)
    world.run(8.5)
    assert all(world.nodes[other].engine == epoch for other in others)
    assert world.run(3, lambda: not any(node.engine == epoch for node in world.nodes))


def test_a_slow_first_load_does_not_end_the_gang() -> None:
    world = World()
    world._loaded = lambda: world.now > 4000  # type: ignore[method-assign]
    world.run(3900)
    assert world.epoch == 1 and [node.engine for node in world.nodes] == [1, 1]
    assert world.run(200, lambda: world.serving)


def test_the_first_epoch_waits_for_a_late_member() -> None:
    world = World()
    world.power_off(1)
    world.run(3600)
    assert world.epoch == 1
    world.power_on(1)
    assert world.run(10, lambda: world.serving) and world.epoch == 1


def test_a_stop_of_a_member_lets_requests_finish() -> None:
    world = World()
    assert world.run(30, lambda: world.serving)
    world.stop(1)
    world.run(2)
    assert [node.engine for node in world.nodes] == [1, 1]
    assert world.run(5, lambda: not any(node.engine for node in world.nodes))
    world.run(60)
    assert world.nodes[1].machine is None
    world.start(1)
    assert world.run(20, lambda: world.serving)
