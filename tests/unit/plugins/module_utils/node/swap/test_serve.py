# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A release starts, proves itself behind the gate, and gets clients back."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from types import ModuleType

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import wait
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import (
    drains,
    history,
    pins,
    releases,
    swaps,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.swaps import Swap
from ansible_collections.baremetal.inference.plugins.module_utils.engine.swap_terms import Terms
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap import leave, proof, serve, traffic
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.acts import STEPS
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.node import StepFailed
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.serving import SHARE_SECONDS
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.traffic import DEAF_SECONDS

from .fake_node import GATEWAY, NAME, PORTS, SINCE, Engine, FakeNode

SWAP = Swap(1, 2, "run", SINCE, touched=True, closed_port=PORTS[NAME], reason="why")


def at(fake: FakeNode, step: str, running: int | None, swap: Swap = SWAP) -> Swap:
    """A swap at a step behind the gate. The release `running` runs. After the step `probe`, it has passed the probe."""
    with fake.resting():
        fake.engines.clear()
        swap = replace(swap, step=step)
        swaps.write(fake.paths, NAME, swap)
        leave.keep_away(fake.node(), drains.UPDATE, "why")
        fake.closed.add(PORTS[NAME])
        if running is not None:
            releases.activate(fake.paths, NAME, running)
            fake.engines[NAME] = Engine(running, fit=step not in (swaps.START, swaps.PROBE))
    return swap


def test_a_release_starts_once(fake: FakeNode) -> None:
    swap = at(fake, swaps.START, None)
    assert serve.start(fake.node(), swap)["notes"]["load_seconds"] == 12.5
    assert fake.engines[NAME].release == 2
    starts = len([act for act in fake.acts if "start main" in act])
    serve.start(fake.node(), swap)
    assert len([act for act in fake.acts if "start main" in act]) == starts == 1, "the release runs already"


def test_a_drain_that_is_gone_after_a_restart_of_the_node_is_recorded_again(fake: FakeNode) -> None:
    swap = at(fake, swaps.START, 2)
    with fake.resting():
        drains.undrain(fake.paths, NAME, None, drains.parse_time(SINCE))
    serve.start(fake.node(), swap)
    assert fake.drain(NAME)


def test_a_release_that_does_not_start_fails_the_step(fake: FakeNode) -> None:
    fake.dead = {2}
    with pytest.raises(StepFailed, match=r"release 2 of main does not start\. Its last log lines:\nno memory"):
        serve.start(fake.node(), at(fake, swaps.START, None))


def test_without_a_release_before_there_is_nothing_to_start(fake: FakeNode) -> None:
    with pytest.raises(StepFailed, match="the swap cannot return"):
        serve.start(fake.node(), replace(SWAP, origin=None, returning=True))


@pytest.mark.parametrize(
    ("changes", "golden", "origin"),
    [
        ({}, [{"prompt": "1+1", "expect": "2"}], 1),
        # A release that served before is not judged by golden prompts or speed.
        ({"back": True}, [], None),
        ({"returning": True, "target": 1, "origin": 2}, [], None),
    ],
)
def test_only_a_release_that_never_served_is_judged_by_golden_prompts_and_speed(
    fake: FakeNode,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, object],
    golden: list[dict[str, str]],
    origin: int | None,
) -> None:
    asked = []
    accept = proof.accept

    def recorded(*given: object, **more: object) -> object:
        asked.append((given[1:], more))
        return accept(*given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(proof, "accept", recorded)
    fake.settings = replace(fake.settings, golden={"tiny-a": [{"prompt": "1+1", "expect": "2"}]})
    swap = at(fake, swaps.PROBE, 2, replace(SWAP, **changes))  # type: ignore[arg-type]
    assert serve.probe(fake.node(), swap)["notes"]["tokens_per_second"] == 42.0
    bound = Terms().speed_bound if origin else 0.0
    assert asked == [((NAME, 2, golden), {"origin": origin, "speed_bound": bound})]


@pytest.mark.parametrize(
    ("step", "module", "name"),
    [(swaps.START, wait, "wait_ready"), (swaps.PROBE, proof, "accept")],
    ids=["start", "probe"],
)
def test_the_gate_is_kept_closed_until_the_release_is_judged(
    fake: FakeNode, monkeypatch: pytest.MonkeyPatch, step: str, module: ModuleType, name: str
) -> None:
    """`nft flush ruleset` opens every gate, also while a step waits for the engine."""
    monkeypatch.setattr(traffic, "GATE_INTERVAL", 0.01)
    swap = at(fake, step, 2)
    real = getattr(module, name)
    held = []

    def flushed(*given: object, **more: object) -> object:
        with fake.resting():
            fake.closed.clear()
            deadline = time.monotonic() + 10
            while PORTS[NAME] not in fake.closed and time.monotonic() < deadline:
                time.sleep(0.005)
            held.append(PORTS[NAME] in fake.closed)
            fake.closed.add(PORTS[NAME])
        return real(*given, **more)

    monkeypatch.setattr(module, name, flushed)
    STEPS[step](fake.node(), swap)
    assert held == [True]


def test_the_gate_opens_before_the_undrain(fake: FakeNode) -> None:
    swap = at(fake, swaps.ADMIT, 2)
    notes = serve.admit(fake.node(), swap)["notes"]
    assert [act.partition(": ")[2] for act in fake.acts] == ["open 5005", "remove var/lib/inference/drain/main"]
    assert notes["unheard"] == [] and notes["admitted"] and "drained_by" not in notes


def test_the_drain_of_another_owner_stays_and_is_reported(fake: FakeNode) -> None:
    swap = at(fake, swaps.ADMIT, 2)
    with fake.resting():
        drains.drain(fake.paths, [NAME], drains.Drain("mira", "disk", SINCE), force=True)
    assert serve.admit(fake.node(), swap)["notes"]["drained_by"] == "mira"
    assert fake.said == ["main stays drained by mira until undrained: disk"]


def test_a_gateway_that_does_not_answer_or_check_does_not_fail_the_swap(fake: FakeNode) -> None:
    for away in ("silent", "deaf"):
        swap = at(fake, swaps.ADMIT, 2)
        with fake.resting():
            fake._belief[NAME] = ("up", 2)
            setattr(fake, away, True)
        began = fake.clock
        assert serve.admit(fake.node(), swap)["notes"]["unheard"] == ["gw1"]
        assert DEAF_SECONDS <= fake.clock - began < 2 * DEAF_SECONDS
        assert "cannot tell whether gw1 sends requests to main again" in fake.said
        setattr(fake, away, False)


def test_a_gateway_that_sends_no_requests_fails_the_swap(fake: FakeNode) -> None:
    """A dead agent is no excuse: the engine would stay without requests."""
    swap = at(fake, swaps.ADMIT, 2)
    fake._belief[NAME], fake.deaf = ("drain", 2), True
    began = fake.clock
    with pytest.raises(StepFailed, match="main does not get its full share: gw1 shows node1 as DRAIN"):
        serve.admit(fake.node(), swap)
    assert fake.clock - began >= SHARE_SECONDS
    # On the way back, a missing share is no failure.
    serve.admit(fake.node(), replace(at(fake, swaps.ADMIT, 2), returning=True))


def test_a_release_is_watched_for_the_watch_seconds_of_the_terms(fake: FakeNode) -> None:
    swap = at(fake, swaps.WATCH, 2, replace(SWAP, terms=Terms(watch_seconds=5)))
    fake.closed.clear()
    notes = serve.watch(fake.node(), swap)["notes"]
    assert notes["speed"] == "fast enough" and notes["errors"] == ""
    assert serve.watch(fake.node(), replace(swap, terms=Terms(watch_seconds=0))) == {}
    fake.failing = {2}
    with pytest.raises(proof.Unfit, match="stopped serving"):
        serve.watch(fake.node(), swap)


def test_a_release_that_has_passed_is_proven_and_recorded(fake: FakeNode) -> None:
    view = fake._views().shown[0]
    notes = {
        "load_seconds": 12.5,
        "tokens_per_second": 42.0,
        "requests": [asdict(replace(view, requests=3, gateway=GATEWAY.name))],
    }
    swap = at(fake, swaps.PROVE, 2, replace(SWAP, notes=notes))
    fake.closed.clear()
    found = serve.prove(fake.node(), swap)["notes"]
    assert releases.proven(fake.paths, NAME, 2)
    known = history.last(fake.paths, NAME, 2)
    assert known and (known.load_seconds, known.tokens_per_second) == (12.5, 42.0)
    assert found["pinned"] is False and found["meanwhile"] == 7, "the inventory asks for release 2"


def test_a_release_that_the_inventory_does_not_ask_for_is_pinned_unless_the_swap_returned(fake: FakeNode) -> None:
    swap = at(fake, swaps.PROVE, 1, replace(SWAP, origin=2, target=1, back=True))
    fake.closed.clear()
    assert serve.prove(fake.node(), swap)["notes"]["pinned"] is True
    pin = pins.read(fake.paths, NAME)
    assert pin and (pin.release, pin.reason) == (1, "why")
    back = at(fake, swaps.PROVE, 2, replace(SWAP, origin=2, target=1, returning=True))
    fake.closed.clear()
    assert serve.prove(fake.node(), back)["notes"]["pinned"] is False
