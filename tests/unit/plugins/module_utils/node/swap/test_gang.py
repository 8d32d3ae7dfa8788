# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The swap of a whole gang under faults: real state machines of swap, leader and followers in a simulated world."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import gangs, swaps
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.swaps import Move, Swap
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.messages import Prove
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap import machine

from ..gang.world import NEW, OLD, World

DIGESTS = {1: OLD, 2: NEW}
"""The leader's releases. A follower of rank 1 has them as 11 and 12."""

STEP_SECONDS, MEMBERS_SECONDS, LOAD_SECONDS = 30.0, 20.0, 50.0
"""Time limits of steps, of missing members, and of a load."""

GOOD, UNREADY, UNFIT = "good", "unready", "unfit"
"""How the next release behaves: it serves, its engines never load, or it does not pass the probe."""


class Failed(Exception):
    """A step has failed."""


class Killed(Exception):
    """The process of the swap, or its node, has died."""


class Swapping(World):
    """A gang of three, swapped by its leader. An event has the seconds since the event before, a name and a rank."""

    outlives = 30.0
    """Longer than in World: the leader may be lost just before it notices the loss of a member."""

    def __init__(self, quality: str, events: list[tuple[float, str, int]]) -> None:
        super().__init__(3)
        self.quality = quality
        self.events = [(pause, EVENTS[name], rank) for pause, name, rank in events]
        self.next_event = 0.0
        self.swap: Swap | None = None
        self.gated = False
        self.probed = {OLD}
        self.dies = False
        self.disturbed_back = False
        self.outcome = ""

    # The swap.

    def perform(self) -> None:
        """Swap the gang, as node/swap/perform.py does."""
        moves = {f"gpu-{rank}": Move(10 * rank + 1, 10 * rank + 2) for rank in (1, 2)}
        self.swap = Swap(1, 2, "run", "2026-11-26T06:00:00Z", step=swaps.BEGUN, gang=True, moves=moves)
        self.next_event = self.now + (self.events[0][0] if self.events else 0.0)
        while self.swap.step != swaps.STUCK:
            began = self.now
            try:
                if self.swap.tries:
                    self.run(machine.WAITS[self.swap.tries - 1])
                self.act(self.swap)
                following = machine.passed(self.swap)
            except Failed as error:
                following = machine.failed(self.swap, str(error), self.now - began)
            except Killed:
                self.dies = False
                rebooted = not self.nodes[0].powered
                while not self.nodes[0].powered:
                    super().step()
                    self.happen()
                if rebooted:
                    self.swap = machine.restarted(self.swap)
                continue
            if isinstance(following, machine.Ended):
                self.swap, self.outcome = None, following.outcome
                return
            self.swap = following
        self.outcome = swaps.STUCK

    def act(self, swap: Swap) -> None:
        leader, wanted = self.nodes[0], DIGESTS[swap.release or 0]
        if swap.step == swaps.GATE:
            self.gated = True
        elif swap.step == swaps.STOP:
            self.stop(0)
            self.need(lambda: leader.machine is None, STEP_SECONDS, "the leader does not stop")
        elif swap.step == swaps.START:
            if leader.digest != wanted or not leader.wanted:
                leader.digest = wanted
                self.start(0)
            self.await_ready(swap)
        elif swap.step == swaps.PROBE:
            if not self.serving or (wanted == NEW and self.quality == UNFIT):
                raise Failed("unfit")
            self.probed.add(wanted)
        elif swap.step in (swaps.ADMIT, swaps.RELEASE):
            self.gated = False
        elif swap.step == swaps.WATCH:
            self.run(3)
            if not self.serving:
                raise Failed("it does not serve under load")
        elif swap.step == swaps.MEMBERS:
            self.need(lambda: all(node.proven == wanted for node in self.nodes[1:]), STEP_SECONDS, "behind")
        elif swap.step == swaps.PROVE:
            behind = [node for node in self.nodes[1:] if node.proven != wanted]
            assert not behind or swap.notes.get("behind"), "the leader's mark comes last"
            leader.proven = wanted

    def await_ready(self, swap: Swap) -> None:
        began = loads = self.now
        while not self.serving:
            self.step()
            waiting = self.nodes[0].machine is None or self.nodes[0].machine.phase == gangs.WAITING
            if waiting and swap.returning:
                loads = self.now
            elif waiting and self.now - began > MEMBERS_SECONDS:
                raise Failed("a member is missing")
            if self.now - loads > LOAD_SECONDS:
                raise Failed("it does not load")

    def need(self, condition: Callable[[], bool], seconds: float, reason: str) -> None:
        if not self.run(seconds, condition):
            raise Failed(reason)

    # What the leader's supervisor reads of the swap, as in node/gang/sides.py.

    def expected(self) -> dict[str, int]:
        number = 1 if self.nodes[0].digest == OLD else 2
        return {f"gpu-{rank}": self.swap.release_of(f"gpu-{rank}", number) for rank in (1, 2)} if self.swap else {}

    def proof(self) -> Prove | None:
        leader = self.nodes[0]
        if self.swap is None:
            return Prove("", 0) if leader.proven == leader.digest else None
        passed = self.swap.step in (swaps.MEMBERS, swaps.PROVE, swaps.UNBRIDGE)
        return Prove("", 0) if passed and DIGESTS[self.swap.release or 0] == leader.digest else None

    # Time and events.

    def step(self) -> None:
        super().step()
        if self.swap is not None:
            self.happen()
            if self.dies or not self.nodes[0].powered:
                raise Killed

    def happen(self) -> None:
        if self.now < self.next_event:
            return
        if not self.events:
            mend(self)
            return
        _pause, event, rank = self.events.pop(0)
        self.next_event = self.now + (self.events[0][0] if self.events else 20.0)
        event(self, rank)
        self.disturbed_back |= self.swap is not None and self.swap.returning

    def _loaded(self) -> bool:
        return super()._loaded() and not (self.quality == UNREADY and self.nodes[0].digest == NEW)

    def _check(self) -> None:
        super()._check()
        run = {node.digest for node in self.nodes if node.engine and node.engine == self.epoch}
        assert len(run) <= 1, "members run different releases"
        if self.serving and not self.gated:
            assert self.nodes[0].digest in self.probed, "clients reach a release that was not probed"


def kill_swap(world: Swapping, _rank: int) -> None:
    world.dies = True


EVENTS: dict[str, Callable[..., None]] = {
    "engine dies": World.engine_dies,
    "supervisor dies": World.supervisor_dies,
    "cut": World.cut,
    "heal": World.heal,
    "power off": World.power_off,
    "power on": World.power_on,
    "swap dies": kill_swap,
}


def mend(world: World) -> None:
    for node in world.nodes:
        world.heal(node.rank)
        if not node.powered:
            world.power_on(node.rank)


def swapped(quality: str, events: list[tuple[float, str, int]]) -> Swapping:
    """The world after a swap with these events, when all members have been repaired."""
    world = Swapping(quality, events)
    assert world.run(30, lambda: world.serving)
    world.perform()
    mend(world)
    return world


def judge(world: Swapping, events: object) -> None:
    if world.outcome == swaps.STUCK:
        assert world.gated and world.disturbed_back, events
        return
    assert world.run(90, lambda: world.serving), events
    wanted = NEW if world.outcome == swaps.DONE else OLD
    assert {node.digest for node in world.nodes} == {wanted}, events
    assert world.nodes[0].proven == wanted, events
    assert world.run(30, lambda: all(node.proven == wanted for node in world.nodes)), events
    assert not world.gated, events


@pytest.mark.parametrize(
    ("quality", "outcome"), [(GOOD, swaps.DONE), (UNREADY, swaps.RETURNED), (UNFIT, swaps.RETURNED)]
)
def test_without_faults_the_next_release_decides_the_outcome_of_the_swap(quality: str, outcome: str) -> None:
    world = swapped(quality, [])
    assert world.outcome == outcome
    judge(world, "no events")


def test_a_gang_returns_if_a_follower_is_off_and_the_follower_joins_later() -> None:
    world = swapped(GOOD, [(0.0, "power off", 2), (200.0, "power on", 2)])
    assert world.outcome == swaps.RETURNED
    judge(world, "a follower was off")


def test_a_follower_that_is_off_while_members_mark_the_release_is_behind_and_marks_it_later() -> None:
    world = Swapping(GOOD, [])
    assert world.run(30, lambda: world.serving)
    act = world.act

    def off_at_members(swap: Swap) -> None:
        if swap.step == swaps.MEMBERS and not swap.tries:
            world.events = [(0.0, EVENTS["power off"], 1), (400.0, EVENTS["power on"], 1)]
            world.next_event = world.now
        act(swap)

    world.act = off_at_members  # type: ignore[method-assign]
    world.perform()
    assert world.outcome == swaps.DONE and world.nodes[1].proven == OLD
    mend(world)
    judge(world, "a follower was off")


@pytest.mark.parametrize("quality", [GOOD, UNFIT])
@pytest.mark.parametrize("at", [0.0, 2.0, 6.0, 9.0, 13.0, 20.0])
@pytest.mark.parametrize("name", ["engine dies", "supervisor dies", "cut", "power off", "swap dies"])
def test_a_swap_of_a_gang_ends_although_a_fault_comes_at_any_time(name: str, at: float, quality: str) -> None:
    for rank in (0, 1):
        events = [(at, name, rank), (15.0, "power on", rank), (0.0, "heal", rank)]
        judge(swapped(quality, events), events)


@given(
    st.sampled_from([GOOD, UNREADY, UNFIT]),
    st.lists(st.tuples(st.floats(0, 30), st.sampled_from(sorted(EVENTS)), st.integers(0, 2)), max_size=5),
)
@settings(max_examples=settings().max_examples * 2 // 5)
def test_a_swap_of_a_gang_ends_by_itself_under_random_faults(
    quality: str, events: list[tuple[float, str, int]]
) -> None:
    judge(swapped(quality, events), (quality, events))


def test_a_swap_may_change_only_the_release_of_a_follower() -> None:
    swap = Swap(4, 4, "run", "2026-11-26T06:00:00Z", gang=True, moves={"gpu-1": Move(1, 2)})
    assert swap.release_of("gpu-1", 4) == 1
    assert replace(swap, touched=True).release_of("gpu-1", 4) == 2
    assert replace(swap, touched=True, returning=True).release_of("gpu-1", 4) == 1
    assert swap.release_of("gpu-2", 4) == swap.release_of("gpu-1", 5) == 0
