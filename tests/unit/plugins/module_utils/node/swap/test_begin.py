# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The refusals of a swap before anything changes, and the way that the swap chooses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.engine import gate, load_time, prepare
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import drains, swaps
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.swaps import Swap
from ansible_collections.baremetal.inference.plugins.module_utils.engine.swap_terms import Terms
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap import begin, gateways, way
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.node import StepFailed

from .fake_node import BRIDGE, GATEWAY, NAME, SINCE, FakeNode

SWAP = Swap(1, 2, "run", SINCE, step=swaps.BEGUN)


def test_with_another_server_a_swap_needs_neither_bridge_nor_hold(fake: FakeNode) -> None:
    found = begin.begun(fake.node(), SWAP)
    assert found["bridged"] is False and fake.said == []
    notes = found["notes"]
    assert (notes["way"], notes["patience"], notes["bridge"], notes["counted"]) == (way.OTHERS, None, False, [{}])
    assert [gateways.from_note(each).gateway for each in notes["requests"]] == [GATEWAY.name]
    assert fake.acts == [], "the step changes nothing"


def test_a_lone_engine_gets_a_bridge(fake: FakeNode) -> None:
    fake.others, fake.bridge_problem = False, ""
    found = begin.begun(fake.node(), SWAP)
    assert found["bridged"] is True and found["notes"]["bridge"] is True
    assert fake.said == ["side by side: a second engine serves meanwhile"]


def test_without_a_bridge_gateways_hold_requests(fake: FakeNode) -> None:
    fake.others = False
    notes = begin.begun(fake.node(), SWAP)["notes"]
    # 120 s of hold, less 12.5 s of loading with its margin, less 30 s for the rest of the swap.
    assert (notes["way"], notes["patience"]) == (way.HELD, 76)
    assert fake.said == ["the only server of its set: gateways hold requests; requests in flight get 76 s"]


def test_a_lone_engine_waits_for_a_node_that_swaps_now(fake: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.others, fake.others_status = False, "DRAIN"
    node = fake.node()
    views = [node.ask() for _number in range(3)]
    fake.others_status = "UP"
    views.append(node.ask())
    monkeypatch.setattr(node, "ask_settled", lambda: views.pop(0) if len(views) > 1 else views[0])
    assert begin.begun(node, SWAP)["notes"]["way"] == way.OTHERS
    assert fake.said == ["node2 is drained: this swap waits until that node serves again"]


def test_a_lone_engine_swaps_if_the_other_node_stays_drained(fake: FakeNode) -> None:
    fake.others, fake.others_status = False, "DRAIN"
    notes = begin.begun(fake.node(), SWAP)["notes"]
    assert (notes["way"], notes["patience"]) == (way.HELD, 76)


def test_the_swap_of_a_lone_engine_is_refused_while_the_other_node_swaps(
    fake: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.others, fake.others_status = False, "DRAIN"
    node = fake.node()
    views = [node.ask()]
    fake.others_status = "DOWN"
    views.append(node.ask())
    monkeypatch.setattr(node, "ask_settled", lambda: views.pop(0) if len(views) > 1 else views[0])
    with pytest.raises(StepFailed, match="node2 swaps, too: swap here when that node serves"):
        begin.begun(node, SWAP)


def test_without_any_way_only_allow_downtime_permits_the_swap(fake: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.others = False
    monkeypatch.setattr(load_time, "expected", lambda *_given: None)
    with pytest.raises(StepFailed, match="how long its release loads is unknown"):
        begin.begun(fake.node(), SWAP)
    allowed = replace(SWAP, terms=Terms(allow_downtime=True))
    assert begin.begun(fake.node(), allowed)["notes"]["way"] == way.DOWNTIME
    assert fake.said == ["clients may find no engine meanwhile"]


def test_a_bridge_that_was_left_is_removed_by_this_swap(fake: FakeNode) -> None:
    with fake.resting():
        drains.drain(fake.paths, [BRIDGE], drains.Drain(drains.UPDATE, "left", SINCE))
    found = begin.begun(fake.node(), SWAP)
    assert found["bridged"] is True and found["notes"]["bridge"] is False


def test_a_swap_on_a_node_without_nftables_is_refused(fake: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> set[int]:
        raise gate.GateError("the gate cannot be opened or closed: nft is not installed")

    monkeypatch.setattr(gate, "closed", missing)
    with pytest.raises(gate.GateError, match="nft is not installed"):
        begin.begun(fake.node(), SWAP)


def test_a_release_that_cannot_start_here_is_refused(fake: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "missing", lambda *_given: ["the image is not on this node", "no model"])
    with pytest.raises(StepFailed, match="the image is not on this node; no model"):
        begin.begun(fake.node(), SWAP)
    with fake.resting():
        files.write(fake.paths.release(NAME, 2) / "engine.env", None)
    with pytest.raises(StepFailed, match="cannot be used"):
        begin.begun(fake.node(), SWAP)


def test_a_swap_is_refused_if_a_drain_could_end_during_the_swap(fake: FakeNode) -> None:
    def drained(owner: str, until: str | None) -> None:
        with fake.resting():
            drains.drain(fake.paths, [NAME], drains.Drain(owner, "disk", SINCE, until), force=True)

    drained("mira", "2126-01-01T00:00:00Z")
    with pytest.raises(StepFailed, match="could end during the swap"):
        begin.begun(fake.node(), SWAP)
    # An operator keeps requests away already, so clients lose nothing, not even by the swap of the only engine.
    fake.others = False
    drained("mira", None)
    assert begin.begun(fake.node(), SWAP)["notes"]["way"] == way.UNCHANGED
    # A swap that was cut off has left this drain, which is no drain of an operator.
    drained(drains.UPDATE, None)
    fake.others = True
    assert begin.begun(fake.node(), SWAP)["notes"]["way"] == way.OTHERS


def test_an_engine_that_does_not_serve_is_swapped_at_once(fake: FakeNode) -> None:
    fake.others = False
    fake.engines.clear()
    assert begin.begun(fake.node(), SWAP)["notes"]["way"] == way.UNCHANGED


def test_counters_from_before_the_swap_are_kept(fake: FakeNode) -> None:
    found = begin.begun(fake.node(), replace(SWAP, notes={"counted": [{"at": 1.0}]}))
    assert found["notes"]["counted"] == [{"at": 1.0}, {}]
