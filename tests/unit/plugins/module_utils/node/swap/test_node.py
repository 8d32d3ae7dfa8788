# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts of a node for the steps of its swap."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import idle
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases, swaps
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap import gateways
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.gateways import SetView, Views
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.node import SETTLED_SECONDS

from ...conftest import stage
from .fake_node import NAME, RUN, SINCE, FakeNode


def test_gateways_have_a_server_for_an_instance_and_a_server_for_its_bridge(fake: FakeNode) -> None:
    assert fake.node().own == ("node1", "main_bridge.node1")
    fake.settings = replace(fake.settings, node="rack-7")
    assert fake.node().own == ("rack-7", "main_bridge.rack-7")


def test_the_port_is_that_of_the_active_release_or_else_of_the_target(fake: FakeNode) -> None:
    assert fake.node().port(2) == 5005
    with fake.resting():
        files.write(fake.paths.active(NAME), None)
    assert releases.active_number(fake.paths, NAME) is None and fake.node().port(2) == 5005
    assert fake.node().port(7) is None


def test_the_engine_counts_its_requests_in_flight(fake: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int | None] = [3, None]
    monkeypatch.setattr(idle, "in_flight", lambda *_given: counts.pop(0))
    assert fake.node().in_flight() == 3
    assert fake.node().in_flight() == 0, "the engine reports no number"
    fake.engines.clear()
    assert fake.node().in_flight() == 0, "the engine does not run, and is not asked"


def test_an_engine_that_cannot_be_asked_counts_as_an_engine_without_requests(
    fake: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_given: object) -> int:
        raise PermissionError("/etc/inference/env/main.env")

    monkeypatch.setattr(idle, "in_flight", refuse)
    assert fake.node().in_flight() == 0


def test_a_node_waits_for_a_gateway_that_was_just_reloaded(fake: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new process of HAProxy shows the states that the old process saved, until the agents have been checked."""
    began = fake.clock
    monkeypatch.setattr(
        gateways, "ask_all", lambda *_given: Views((SetView("gw1", True, age=int(fake.clock - began)),), {})
    )
    assert fake.node().ask().shown[0].age == 0
    assert fake.node().ask_settled().shown[0].age == gateways.YOUNG_SECONDS
    monkeypatch.setattr(gateways, "ask_all", lambda *_given: Views((SetView("gw1", True, age=0),), {}))
    began = fake.clock
    assert fake.node().ask_settled().shown[0].age == 0
    assert SETTLED_SECONDS <= fake.clock - began < SETTLED_SECONDS + 1


@pytest.mark.parametrize("outcome", [swaps.DONE, swaps.RETURNED, swaps.REFUSED])
def test_a_gate_left_closed_by_an_earlier_swap_is_opened_when_an_engine_serves(fake: FakeNode, outcome: str) -> None:
    """A swap to release 3 was stuck; then the operator swaps to release 2."""
    with fake.resting():
        stage(fake.paths, NAME, 5006, "bfloat16")
        fake.closed |= {5006, 22}
    fake.unfit, fake.silent = {2} if outcome == swaps.RETURNED else set(), outcome == swaps.REFUSED
    fake.begin()
    report = fake.run()
    assert report and report.outcome == outcome
    assert fake.closed == {22}, "the closed port 22 belongs to another program"


def test_a_gate_stays_closed_if_another_instance_may_need_it(fake: FakeNode) -> None:
    with fake.resting():
        stage(fake.paths, NAME, 5006, "bfloat16")
        stage(fake.paths, NAME, 5007, "bfloat16")
        stage(fake.paths, "other", 5006, "float32")
        fake.closed |= {5006, 5007, 5008}
        assert fake.node().left_gates() == (5006, 5007)
        swaps.begin(fake.paths, "other", swaps.Swap(1, 2, RUN, SINCE, step=swaps.START, closed_port=5007))
    assert fake.node().left_gates() == ()
