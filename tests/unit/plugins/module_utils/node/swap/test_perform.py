# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A swap ends, although any part dies in the middle, and no client notices.

Each act of the swaps in EXHAUSTIVE is tried with four faults: the act fails before it is done or after, the process of
the swap is killed, the node restarts. In CI, each act is tried with two of them. FakeNode checks the invariants at
each act.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import lock, swaps
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap import perform

from .fake_node import NAME, FakeNode, Fault, scenario

SCENARIOS: dict[str, tuple[Mapping[str, Any], str]] = {
    "good": ({}, swaps.DONE),
    "unfit": ({"unfit": {2}}, swaps.RETURNED),
    "dead": ({"dead": {2}}, swaps.RETURNED),
    "failing": ({"failing": {2}}, swaps.RETURNED),
    "another port": ({"moves_to": 5006}, swaps.DONE),
    "another port, failing": ({"moves_to": 5006, "failing": {2}}, swaps.RETURNED),
    "deaf gateway": ({"deaf": True}, swaps.DONE),
    "bridge": ({"others": False, "bridge_problem": ""}, swaps.DONE),
    "bridge, failing": ({"others": False, "bridge_problem": "", "failing": {2}}, swaps.RETURNED),
    "held": ({"others": False}, swaps.DONE),
    "first start": ({"origin": None}, swaps.DONE),
    "first start, unfit": ({"origin": None, "unfit": {2}}, swaps.STUCK),
    "neither starts": ({"dead": {1, 2}}, swaps.STUCK),
}

EXHAUSTIVE = (
    "good",
    "another port, failing",
    *(
        pytest.param(name, marks=pytest.mark.full)
        for name in ("failing", "bridge, failing", "first start", "neither starts")
    ),
)
"""Swaps that together take all steps of an instance on one node, forward and back."""

FAULTS = {
    "raise before": Fault("raise", after=False),
    "raise after": Fault("raise"),
    "kill": Fault("kill"),
    "restart": Fault("restart"),
}

DOUBLE = 12
"""Pairs of faults for each scenario; in CI a quarter."""

MakeNode = Callable[[], FakeNode]


@pytest.fixture
def make_node(monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeNode]:
    """Makes a fresh node at each call, and removes the files of the previous node."""
    made: list[FakeNode] = []
    with tempfile.TemporaryDirectory() as root:

        def make() -> FakeNode:
            if made:
                shutil.rmtree(made[-1].paths.root)
            made.append(FakeNode(Path(root, str(len(made))), monkeypatch))
            return made[-1]

        yield make


ACTS: dict[str, list[str]] = {}
"""The acts of swaps without faults, by their scenario."""


def acts_of(make_node: MakeNode, name: str) -> list[str]:
    """The acts of a swap without faults, which are the same each time."""
    if name not in ACTS:
        changes, outcome = SCENARIOS[name]
        node = make_node()
        scenario(node, changes)
        assert node.check_end(node.run()) == outcome
        ACTS[name] = node.acts
    return ACTS[name]


def outcome_of(make_node: MakeNode, name: str, faults: Mapping[int, Fault]) -> str:
    """The outcome of a swap in which some acts fail, by their numbers."""
    node = make_node()
    scenario(node, SCENARIOS[name][0])
    node.faults = dict(faults)
    try:
        return node.check_end(node.run())
    except BaseException as error:
        hit = [f"{fault.kind} {'after' if fault.after else 'before'} {at}" for at, fault in faults.items()]
        acts = [f"{at} {act}" for at, act in enumerate(node.acts, 1)]
        error.add_note("\n".join([f"{name}: {'; '.join(hit)}", *acts, *node.said]))
        raise


def tried(acts: Sequence[str], quick: bool, kind: str = "kill") -> Iterator[tuple[int, str]]:
    """Acts and their numbers, from 1. In CI, some kinds of faults take the odd acts, the other kinds the even acts."""
    first = 1 if quick and kind in ("restart", "raise after") else 0
    yield from [*enumerate(acts, 1)][first :: 2 if quick else 1]


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_swap_without_faults_has_the_outcome_of_its_scenario(make_node: MakeNode, name: str) -> None:
    acts_of(make_node, name)


@pytest.mark.once
@pytest.mark.parametrize("name", EXHAUSTIVE)
@pytest.mark.parametrize("kind", ["kill", "restart"])
def test_a_swap_that_dies_at_any_act_has_the_same_outcome(
    make_node: MakeNode, name: str, kind: str, quick: bool
) -> None:
    expected = SCENARIOS[name][1]
    for at, _act in tried(acts_of(make_node, name), quick, kind):
        assert outcome_of(make_node, name, {at: FAULTS[kind]}) == expected


@pytest.mark.once
@pytest.mark.parametrize("name", EXHAUSTIVE)
@pytest.mark.parametrize("kind", ["raise before", "raise after"])
def test_a_swap_ends_although_any_one_act_fails(make_node: MakeNode, name: str, kind: str, quick: bool) -> None:
    """A failure in `begun` or `bridge` refuses the swap. Later, the swap goes on, or goes back if it can."""
    acts = acts_of(make_node, name)
    for at, act in tried(acts, quick, kind):
        outcome = outcome_of(make_node, name, {at: FAULTS[kind]})
        step = act.partition(":")[0]
        if step in ("", "unbridge") or act.endswith("/swap/main.json"):
            # A record that the disk does not take is kept in memory.
            assert outcome == SCENARIOS[name][1]
        elif step in ("begun", "bridge"):
            assert outcome == swaps.REFUSED
        elif SCENARIOS[name][0].get("origin", 1) is not None and name != "neither starts":
            # One error of nft or systemctl on the way back does not make the swap stuck.
            assert outcome in (swaps.DONE, swaps.RETURNED, swaps.REFUSED)
        else:
            assert outcome in (swaps.DONE, swaps.RETURNED, swaps.REFUSED, swaps.STUCK)


@pytest.mark.parametrize("name", ["failing", "unfit"])
@pytest.mark.parametrize(
    "what", ["close 5005", "open 5005", "stop main", "start main", "remove var/lib/inference/drain"]
)
def test_a_step_that_fails_for_a_while_on_the_way_back_is_not_stuck(make_node: MakeNode, name: str, what: str) -> None:
    node = make_node()
    scenario(node, SCENARIOS[name][0])
    node.fails_on_return = (what, 40.0)
    assert node.check_end(node.run()) == swaps.RETURNED
    assert any("try 5 of 6" in words for words in node.said)


def test_a_step_that_keeps_failing_on_the_way_back_is_stuck(make_node: MakeNode) -> None:
    node = make_node()
    scenario(node, SCENARIOS["unfit"][0])
    node.fails_on_return = ("start main", 1000.0)
    began = node.clock
    assert node.check_end(node.run()) == swaps.STUCK
    assert 60 <= node.clock - began <= 90
    found = node.swap()
    assert found and "is not fit to serve; and then: a fault at: start main" in found.failure


def test_the_gate_is_kept_closed_while_a_step_waits_for_its_next_try(make_node: MakeNode) -> None:
    """`nft flush ruleset` opens every gate, and a step that waits does not check the gates."""
    node = make_node()
    scenario(node, SCENARIOS["unfit"][0])
    node.fails_on_return = ("start main", 1000.0)
    pause = node.sleep

    def flushed(seconds: float) -> None:
        swap = node.swap()
        if swap and swap.tries:
            node.closed.clear()
        pause(seconds)

    node.sleep = flushed  # type: ignore[method-assign]
    assert node.check_end(node.run()) == swaps.STUCK
    # The waits between tries take 60 s, with about one check in each second.
    assert node.acts.count(": close 5005") >= 50


def test_a_lock_that_another_run_has_taken_stops_no_swap(make_node: MakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node = make_node()
    scenario(node, {})

    def taken(_paths: object, wanted: lock.Lock, *_given: object) -> None:
        raise lock.Locked("this node is locked by run other", wanted)

    monkeypatch.setattr(lock, "take", taken)
    assert node.check_end(node.run()) == swaps.DONE
    assert any(words.endswith("the node's lock: this node is locked by run other") for words in node.said)


def test_the_count_of_tries_continues_after_a_kill(make_node: MakeNode) -> None:
    node = make_node()
    scenario(node, SCENARIOS["unfit"][0])
    node.fails_on_return = ("start main", 1000.0)
    node.killed_at_rest = True
    assert node.check_end(node.run()) == swaps.STUCK
    assert len([words for words in node.said if ": start, try" in words]) == 5


def test_the_release_before_serves_although_its_mark_cannot_be_written(make_node: MakeNode) -> None:
    node = make_node()
    scenario(node, SCENARIOS["failing"][0])
    node.fails_on_return = ("write var/lib/inference/history", 1000.0)
    report = node.run()
    assert report and node.check_end(report) == swaps.RETURNED
    assert report.unproven.startswith("a fault at: write var/lib/inference/history")


def test_a_full_disk_at_the_last_step_does_not_turn_the_swap_back(make_node: MakeNode) -> None:
    full_from = next(at for at, act in enumerate(acts_of(make_node, "good"), 1) if act.startswith("prove: "))
    node = make_node()
    scenario(node, {})
    node.full_from = full_from
    began = node.clock
    assert node.check_end(node.run()) == swaps.DONE
    assert node.clock - began >= 60 and any("prove, try 6 of 6" in words for words in node.said)


def test_a_report_names_the_term_that_would_allow_the_swap(make_node: MakeNode) -> None:
    node = make_node()
    scenario(node, {"others": False, "deaf": True})
    report = node.run()
    assert report and node.check_end(report) == swaps.REFUSED
    assert "is the only server of its set" in report.failure and report.permission == "allow_downtime"


@pytest.mark.parametrize("content", [None, "{", "[]", '{"schema": 7}', '{"schema": 1}'])
def test_a_damaged_file_of_settings_ends_the_swap_at_once(
    make_node: MakeNode, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    node = make_node()
    scenario(node, {})
    with node.resting():
        files.write(node.paths.swap_settings, content)
    monkeypatch.setattr(perform, "Traffic", lambda *_given: node.node().traffic)
    report = perform.perform(node.paths, NAME)
    assert report and report.outcome == swaps.REFUSED
    assert report.failure.startswith(str(node.paths.swap_settings)) and "run baremetal.inference.site" in report.failure


@pytest.mark.parametrize("kind", ["kill", "restart"])
@pytest.mark.parametrize("name", ["good", "failing", pytest.param("bridge", marks=pytest.mark.full)])
def test_a_swap_ends_although_the_node_no_longer_knows_its_gateways(
    make_node: MakeNode, name: str, kind: str, quick: bool
) -> None:
    """The way back needs no gateways. A release that was not probed does not stay."""
    for at, act in tried(acts_of(make_node, name), quick, kind):
        node = make_node()
        scenario(node, SCENARIOS[name][0])
        node.forgets, node.faults = True, {at: FAULTS[kind]}
        report = node.run()
        outcome = node.check_end(report)
        assert report and outcome != swaps.STUCK, f"{kind} {at} {act}"
        reported = "swap.json is damaged: run baremetal.inference.site" in (*report.words, report.failure)
        assert reported or not node.unknown or act.endswith("remove var/lib/inference/swap/main.json"), (
            f"{kind} {at} {act}"
        )
        assert not (outcome == swaps.DONE and act.startswith(("drain", "gate", "stop", "probe"))), f"{kind} {at} {act}"


@pytest.mark.once
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_swap_ends_although_any_two_acts_fail(make_node: MakeNode, name: str, quick: bool) -> None:
    chosen = random.Random(f"{name} 29")
    count = len(acts_of(make_node, name))
    for _number in range(DOUBLE // 4 if quick else DOUBLE):
        first, second = sorted(chosen.sample(range(1, count + 20), 2))
        outcome_of(make_node, name, {at: chosen.choice(list(FAULTS.values())) for at in (first, second)})


@pytest.mark.once
@pytest.mark.parametrize("kind", ["kill", "restart"])
@pytest.mark.parametrize("name", ["good", "failing", pytest.param("bridge", marks=pytest.mark.full)])
def test_a_swap_whose_record_is_damaged_ends(make_node: MakeNode, name: str, kind: str, quick: bool) -> None:
    """No gate and no drain stays, no client loses a request, and only what has passed its probe serves."""
    for at, act in tried(acts_of(make_node, name), quick, kind):
        node = make_node()
        scenario(node, SCENARIOS[name][0])
        node.faults = {at: Fault(kind, damage='{"schema": 2, "origin": 1')}
        report = node.run()
        case = f"{kind} {at} {act}"
        assert report, case
        outcome = node.check_end(report)
        if not node.damaged:
            # The act had failed by itself, or the record was gone.
            assert outcome == SCENARIOS[name][1], case
            continue
        assert outcome in (swaps.RETURNED, swaps.REFUSED), case
        assert report.failure.startswith(f"{node.paths.swap(NAME)} is damaged ("), case


@pytest.mark.once
@pytest.mark.parametrize("name", ["good", pytest.param("failing", marks=pytest.mark.full)])
def test_a_swap_ends_on_a_disk_that_is_full_from_any_act_on(make_node: MakeNode, name: str, quick: bool) -> None:
    """No invariant breaks, and the next swap, with room on the disk, serves."""
    acts = acts_of(make_node, name)
    installs = next(at for at, act in enumerate(acts, 1) if act.startswith("start: "))
    for at, act in tried(acts, quick):
        node = make_node()
        scenario(node, SCENARIOS[name][0])
        node.full_from = at
        outcome = node.check_end(node.run())
        # If the new release was not installed, the release before can serve again without a write to the disk.
        assert outcome != swaps.STUCK or at >= installs, f"{at} {act}"
        # A release that has started and passes all checks serves, even if nothing can be written.
        assert name != "good" or outcome != swaps.STUCK or act.startswith("start: "), f"{at} {act}"
        if outcome == swaps.STUCK:
            node.full_from = None
            node.failing, node.unfit = set(), set()
            found = node.swap()
            assert found
            node.begin(found.origin, touched=found.touched, closed_port=found.closed_port)
            assert node.check_end(node.run()) == swaps.DONE, f"{at} {act}"


@pytest.mark.once
@pytest.mark.parametrize("name", ["good", "failing", "bridge"])
def test_a_gateway_that_is_lost_at_any_act_stops_no_swap_half_way(make_node: MakeNode, name: str, quick: bool) -> None:
    for at, act in tried(acts_of(make_node, name), quick):
        node = make_node()
        scenario(node, SCENARIOS[name][0])
        node.gateway_lost_at = at
        assert node.check_end(node.run()) != swaps.STUCK, f"{at} {act}"
