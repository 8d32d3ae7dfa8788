# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of a swap's steps, forward and back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import swaps
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.swaps import Swap
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap import machine
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.acts import STEPS

BEGUN = Swap(1, 2, "run", "2026-11-25T12:00:00Z", step=swaps.BEGUN)

FORWARD = ["begun", "bridge", "drain", "gate", "stop", "start", "probe", "admit", "watch", "prove", "unbridge"]


BACK = ["drain", "gate", "stop", "start", "probe", "admit", "prove", "unbridge"]

TRIES = len(machine.WAITS) + 1


def way(swap: Swap | machine.Ended, failing: dict[int, str] | None = None) -> tuple[list[str], Swap | machine.Ended]:
    """The steps of a swap, and its end. `failing`: numbers of steps that fail at each try, with reasons."""
    taken: list[str] = []
    while isinstance(swap, Swap) and swap.step != swaps.STUCK:
        if not swap.tries:
            taken.append(swap.step)
        reason = (failing or {}).get(len(taken))
        swap = machine.failed(swap, reason) if reason else machine.passed(swap)
    return taken, swap


def test_a_swap_without_a_failure_takes_all_steps() -> None:
    taken, end = way(BEGUN)
    assert taken == FORWARD
    assert isinstance(end, machine.Ended) and end.outcome == swaps.DONE and end.swap.touched and not end.swap.failure


@pytest.mark.parametrize("at", range(1, 5))
def test_a_swap_that_fails_before_the_stop_is_refused(at: int) -> None:
    taken, end = way(BEGUN, {at: "no"})
    assert taken == [*FORWARD[:at], swaps.RELEASE, swaps.UNBRIDGE]
    assert isinstance(end, machine.Ended) and (end.outcome, end.swap.failure) == (swaps.REFUSED, "no")


@pytest.mark.parametrize("at", range(5, 10))
def test_a_swap_that_fails_later_goes_back_without_a_watch(at: int) -> None:
    taken, end = way(BEGUN, {at: "no"})
    assert taken == [*FORWARD[:at], *BACK]
    assert isinstance(end, machine.Ended) and (end.outcome, end.swap.failure) == (swaps.RETURNED, "no")
    assert end.swap.release == 1


def test_a_bridge_that_cannot_be_removed_is_reported_and_no_failure() -> None:
    _taken, end = way(BEGUN, {11: "busy"})
    assert isinstance(end, machine.Ended) and end.outcome == swaps.DONE
    assert end.swap.notes["kept_bridge"] == "busy" and not end.swap.failure


@pytest.mark.parametrize(
    ("failing", "reason"), [({5: "a", 9: "b"}, "a; and then: b"), ({2: "a", 3: "b"}, "a; and then: b")]
)
def test_a_swap_that_fails_on_the_way_back_is_stuck(failing: dict[int, str], reason: str) -> None:
    _taken, end = way(BEGUN, failing)
    assert isinstance(end, Swap) and (end.step, end.failure) == (swaps.STUCK, reason)


@pytest.mark.parametrize(
    ("step", "returning"),
    [*((step, True) for step in BACK[:-1]), (swaps.RELEASE, False), (swaps.PROVE, False)],
    ids=str,
)
def test_a_step_of_a_way_back_and_the_step_prove_are_tried_again(step: str, returning: bool) -> None:
    swap = Swap(1, 2, "run", "2026-11-25T12:00:00Z", step=step, returning=returning, touched=returning, failure="a")
    for tries in range(1, TRIES):
        again = machine.failed(swap, "nft is busy")
        assert isinstance(again, Swap) and (again.step, again.tries, again.failure) == (step, tries, "a")
        following = machine.passed(again)
        assert isinstance(following, Swap) and (following.step, following.tries) != (step, tries)
        assert following.tries == 0, "the next step begins with its first try"
        swap = again
    last = machine.failed(swap, "nft is busy")
    assert isinstance(last, Swap) and last.step == (swaps.UNBRIDGE if step == swaps.PROVE else swaps.STUCK)


def test_a_step_that_has_waited_long_for_an_engine_is_not_tried_again() -> None:
    swap = Swap(1, 2, "run", "2026-11-25T12:00:00Z", step=swaps.START, returning=True, touched=True, failure="a")
    assert machine.failed(swap, "no answer", machine.SLOW_SECONDS - 1) == replace(swap, tries=1)
    assert machine.failed(swap, "no answer", machine.SLOW_SECONDS) == replace(
        swap, step=swaps.STUCK, failure="a; and then: no answer"
    )


def test_a_missing_mark_on_the_way_back_keeps_no_requests_away() -> None:
    """The release before is proven by its probe: a mark that cannot be written is only reported."""
    _taken, end = way(BEGUN, {9: "no", 16: "the disk is full"})
    assert isinstance(end, machine.Ended) and (end.outcome, end.swap.failure) == (swaps.RETURNED, "no")
    assert end.swap.notes["unproven"] == "the disk is full"


def test_a_release_that_passed_all_checks_does_not_go_back_for_a_missing_mark() -> None:
    taken, end = way(BEGUN, {10: "the disk is full"})
    assert taken == FORWARD
    assert isinstance(end, machine.Ended) and (end.outcome, end.swap.failure) == (swaps.DONE, "")
    assert end.swap.notes["unproven"] == "the disk is full"


def test_without_a_release_before_there_is_no_way_back() -> None:
    _taken, end = way(Swap(None, 2, "run", "2026-11-25T12:00:00Z", step=swaps.BEGUN), {6: "dead"})
    assert isinstance(end, Swap) and end.step == swaps.STUCK and "the swap cannot return" in end.failure


def test_a_refusal_names_the_permission_that_would_allow_the_step() -> None:
    refused = machine.failed(replace(BEGUN, step=swaps.GATE), "busy", permission="force")
    assert isinstance(refused, Swap) and (refused.step, refused.permission) == (swaps.RELEASE, "force")
    back = machine.failed(replace(BEGUN, step=swaps.PROBE, touched=True), "no", permission="force")
    assert isinstance(back, Swap) and back.permission == ""


@pytest.mark.parametrize("step", STEPS)
def test_if_the_gateways_are_unknown_a_release_without_a_probe_goes_back(step: str) -> None:
    touched = step in (*FORWARD[4:], "members")
    swap = Swap(1, 2, "run", "2026-11-25T12:00:00Z", step=step, touched=touched)
    found = machine.blind(swap, "unknown")
    if step in ("admit", "watch", "members", "prove", "unbridge", swaps.RELEASE):
        assert found == swap
    else:
        assert (found.step, found.returning) == ((swaps.DRAIN, True) if touched else (swaps.RELEASE, False))
    back = replace(swap, returning=True)
    assert machine.blind(back, "unknown") == back


def test_if_the_gateways_are_unknown_and_nothing_served_before_the_engine_stays_behind_its_gate() -> None:
    swap = Swap(None, 2, "run", "2026-11-25T12:00:00Z", step=swaps.PROBE, touched=True, closed_port=5005)
    found = machine.blind(swap, "unknown")
    assert found.step == swaps.STUCK and found.gated


@pytest.mark.parametrize("step", STEPS)
def test_after_a_restart_of_the_node_an_engine_must_prove_itself_again(step: str) -> None:
    swap = Swap(1, 2, "run", "2026-11-25T12:00:00Z", step=step, touched=True, closed_port=5005)
    anew = machine.restarted(swap)
    assert anew.step == (swaps.START if step in (swaps.ADMIT, swaps.WATCH) else step)
    # The gate stays closed, except for a release that has passed all checks or was not stopped.
    passed = step in (swaps.MEMBERS, swaps.PROVE, swaps.UNBRIDGE, swaps.RELEASE)
    assert anew.gated is not passed


GANG = replace(BEGUN, gang=True)
GANG_FORWARD = ["begun", "staged", *FORWARD[1:-2], "members", *FORWARD[-2:]]
GANG_BACK = [*BACK[:-2], "members", *BACK[-2:]]


def test_a_gang_stages_first_and_its_followers_mark_the_release_before_the_leader() -> None:
    taken, end = way(GANG)
    assert taken == GANG_FORWARD
    assert isinstance(end, machine.Ended) and end.outcome == swaps.DONE


def test_a_gang_whose_follower_lacks_the_release_is_not_touched() -> None:
    taken, end = way(GANG, {2: "gpu-1 has no such release"})
    assert taken == ["begun", "staged", swaps.RELEASE, swaps.UNBRIDGE]
    assert isinstance(end, machine.Ended) and end.outcome == swaps.REFUSED and not end.swap.touched


@pytest.mark.parametrize("at", range(6, 11))
def test_a_gang_goes_back_as_a_whole(at: int) -> None:
    taken, end = way(GANG, {at: "no"})
    assert taken == [*GANG_FORWARD[:at], *GANG_BACK]
    assert isinstance(end, machine.Ended) and end.outcome == swaps.RETURNED


@pytest.mark.parametrize("failing", [{11: "gpu-1 is away"}, {7: "no", 14: "gpu-1 is away"}], ids=["forward", "back"])
def test_a_follower_that_is_behind_fails_no_swap(failing: dict[int, str]) -> None:
    taken, end = way(GANG, failing)
    assert "members" in taken
    assert isinstance(end, machine.Ended) and end.outcome in (swaps.DONE, swaps.RETURNED)
    assert end.swap.notes["behind"] == "gpu-1 is away"


def test_every_step_has_a_function() -> None:
    assert set(STEPS) == {*GANG_FORWARD, swaps.RELEASE}
