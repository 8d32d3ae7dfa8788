# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An engine is drained, its gate closes, and the engine is stopped after its last client."""

from __future__ import annotations

import contextlib
from dataclasses import asdict, replace

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance_facts import Endpoint
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import health
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import drains, swaps
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.probe_state import ProbeState
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.swaps import Swap
from ansible_collections.baremetal.inference.plugins.module_utils.engine.swap_terms import Terms
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap import leave, traffic, way
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.gateways import Server, SetView
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.node import Node, StepFailed

from .fake_node import NAME, NODE, PORTS, SINCE, FakeNode

PORT = PORTS[NAME]
SWAP = Swap(1, 2, "run", SINCE, terms=Terms(drain_seconds=100), notes={"way": way.OTHERS}, step=swaps.DRAIN)


def at(fake: FakeNode, step: str, swap: Swap = SWAP) -> Swap:
    """The recorded swap at a step."""
    with fake.resting():
        closed = PORT if step in swaps.CLOSED else None
        swap = replace(swap, step=step, closed_port=closed, touched=step == swaps.STOP)
        swaps.write(fake.paths, NAME, swap)
        if closed:
            leave.keep_away(fake.node(), drains.UPDATE, "why")
    return swap


def test_an_instance_is_drained_before_its_gate_closes(fake: FakeNode) -> None:
    found = leave.drain(fake.node(), at(fake, swaps.DRAIN))
    assert found["closed_port"] == PORT and found["notes"]["served"] is True and found["notes"]["drained"]
    recorded = fake.drain(NAME)
    assert recorded and (recorded.owner, recorded.reason) == (drains.UPDATE, leave.REASON)
    assert not fake.closed


def test_the_gate_of_the_next_port_is_closed_as_well(fake: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node = fake.node()
    monkeypatch.setattr(Node, "endpoints", lambda *_asked: (Endpoint("0.0.0.0", PORT), Endpoint("0.0.0.0", 5055)))
    swap = at(fake, swaps.DRAIN)
    swap = replace(swap, **leave.drain(node, swap))
    assert swap.closed_ports == (PORT, 5055)
    with fake.resting():
        leave.gate(node, swap)
        assert fake.closed == {PORT, 5055}
        leave.release(node, swap)
        assert not fake.closed


def test_a_damaged_release_leaves_no_gate_closed_on_the_way_back(
    fake: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The port of the running release is unknown then, but the closed ports are recorded."""
    monkeypatch.setattr(Node, "port", lambda *_asked: None)
    swap = replace(at(fake, swaps.DRAIN), returning=True, closed_port=PORT, other_port=5055)
    found = leave.drain(fake.node(), swap)
    assert replace(swap, **found).closed_ports == (PORT, 5055)


@pytest.mark.parametrize("flushed", [PORT, 5055])
def test_both_gates_are_closed_when_the_engine_is_stopped(fake: FakeNode, flushed: int) -> None:
    swap = replace(at(fake, swaps.STOP), other_port=5055)
    fake.engines[NAME].connections = []
    with fake.resting():
        fake.closed |= {PORT, 5055} - {flushed}
        leave.stop(fake.node(), swap)
    assert fake.closed == {PORT, 5055} and NAME not in fake.engines


def test_the_drain_of_another_owner_stays(fake: FakeNode) -> None:
    drains.drain(fake.paths, [NAME], drains.Drain("mira", "disk", SINCE))
    leave.drain(fake.node(), at(fake, swaps.DRAIN))
    recorded = fake.drain(NAME)
    assert recorded and recorded.owner == "mira"
    leave.release(fake.node(), at(fake, swaps.RELEASE))
    assert fake.drain(NAME) == recorded


def test_a_lone_engine_stays_if_a_gateway_does_not_know_of_the_drain(fake: FakeNode) -> None:
    fake.deaf = True
    held = replace(SWAP, notes={"way": way.HELD})
    with pytest.raises(StepFailed, match="gw1 does not know of the drain, and main is the only server of its set"):
        leave.drain(fake.node(), at(fake, swaps.DRAIN, held))
    # With another server, the gate refuses the requests of that gateway.
    leave.drain(fake.node(), at(fake, swaps.DRAIN))
    assert "gw1 does not know of the drain: the gate refuses its requests" in fake.said


def test_the_last_engine_of_a_set_stays(fake: FakeNode) -> None:
    fake.others = False
    began = fake.clock
    with pytest.raises(StepFailed, match=r"^gw1 would have no server left for main without this node$"):
        leave.drain(fake.node(), at(fake, swaps.DRAIN))
    assert fake.clock - began >= way.FIRST_SECONDS, "another drained server may come back"


@pytest.mark.parametrize(("status", "loses"), [("UP", True), ("DOWN", False), ("DRAIN (agent)", False)])
def test_a_gateway_that_sent_no_requests_here_loses_no_server(fake: FakeNode, status: str, loses: bool) -> None:
    fake.others = False
    server = Server(status.startswith("UP"), status, 100, 0, 0)
    began = asdict(SetView("gw1", True, servers={NODE: server}))
    swap = at(fake, swaps.DRAIN, replace(SWAP, notes={"way": way.OTHERS, "requests": [began]}))
    if loses:
        with pytest.raises(StepFailed, match="gw1 would have no server left"):
            leave.drain(fake.node(), swap)
    else:
        leave.drain(fake.node(), swap)


def test_of_nodes_that_drain_at_once_the_first_by_name_goes_first(fake: FakeNode) -> None:
    fake.others_status = "DRAIN (agent)"
    fake.settings = replace(fake.settings, node="node3")
    with pytest.raises(StepFailed, match=r"node1, node2 drains the same set, and goes first\. Swap again when"):
        leave.drain(fake.node(), at(fake, swaps.DRAIN))


def test_no_other_server_is_required_for_the_ways_downtime_unchanged_and_held_and_on_the_way_back(
    fake: FakeNode,
) -> None:
    fake.others = False
    for kind in (way.DOWNTIME, way.UNCHANGED, way.HELD):
        leave.drain(fake.node(), at(fake, swaps.DRAIN, replace(SWAP, notes={"way": kind})))
    leave.drain(fake.node(), at(fake, swaps.DRAIN, replace(SWAP, returning=True)))


def test_the_gate_closes_and_the_step_waits_for_the_last_client(fake: FakeNode) -> None:
    fake.engines[NAME].connections = [fake.clock + 30]
    began = fake.clock
    assert leave.gate(fake.node(), at(fake, swaps.GATE)) == {}
    assert fake.closed == {PORT} and not fake.engines[NAME].connections and fake.clock - began >= 30


def test_an_engine_whose_requests_do_not_end_stays(fake: FakeNode) -> None:
    fake.engines[NAME].connections = [fake.clock + 9999]
    swap, began = at(fake, swaps.GATE), fake.clock
    with pytest.raises(StepFailed, match=r"^1 request is still in flight after 100 s, of 10\.0\.0\.9$") as caught:
        leave.gate(fake.node(), swap)
    assert fake.clock - began >= 100 and caught.value.permission == "force"
    short = replace(swap, terms=Terms(drain_seconds=5))
    with pytest.raises(StepFailed, match=r"still in flight after 60 s"):
        leave.gate(fake.node(), short)
    leave.gate(fake.node(), replace(swap, terms=Terms(drain_seconds=100, force=True)))


@pytest.mark.parametrize(("patience", "seconds"), [(0, 5), (20, 20), (76, 76)])
def test_requests_in_flight_get_the_recorded_patience_of_the_swap_but_at_least_5_seconds(
    fake: FakeNode, patience: int, seconds: float
) -> None:
    """The hold begins with the drain. If requests in flight took longer, gateways would refuse the requests on hold."""
    fake.engines[NAME].connections = [fake.clock + 9999]
    swap = replace(at(fake, swaps.GATE), notes={"way": way.HELD, "patience": patience})
    began = fake.clock
    with pytest.raises(StepFailed, match=rf"still in flight after {seconds} s"):
        leave.gate(fake.node(), swap)
    assert seconds <= fake.clock - began < seconds + 1
    began = fake.clock
    assert leave.gate(fake.node(), replace(swap, returning=True, notes={**swap.notes, "served": True})) == {}
    assert seconds <= fake.clock - began < seconds + 1, "on the way back, the requests are cut"


def test_clients_that_stay_connected_are_reported_during_the_wait(fake: FakeNode) -> None:
    fake.hostile = False
    fake.engines[NAME].connections = [fake.clock + leave.QUIET_SECONDS + 2]
    leave.drain(fake.node(), at(fake, swaps.DRAIN, replace(SWAP, terms=Terms(drain_seconds=100))))
    assert [line for line in fake.said if "waits" in line] == ["waits up to 40 s for 1 connection of 10.0.0.9"]


def test_the_step_hardly_waits_for_requests_of_an_engine_that_does_not_serve(fake: FakeNode) -> None:
    fake.engines[NAME].connections = [fake.clock + 9999]
    ill = replace(at(fake, swaps.GATE), returning=True, notes={"served": False})
    began = fake.clock
    leave.gate(fake.node(), ill)
    assert fake.clock - began < 10
    served = replace(ill, notes={"served": True})
    began = fake.clock
    leave.gate(fake.node(), served)
    assert fake.clock - began >= leave.GATED_SECONDS


@pytest.mark.parametrize(
    ("force", "verdict", "checked", "waits"),
    [
        (True, health.HUNG, SINCE, traffic.ILL_SECONDS),
        (True, health.BUSY, SINCE, 100),
        (True, health.HUNG, "2026-11-25T11:00:00Z", 100),
        (False, health.HUNG, SINCE, 100),
    ],
    ids=["hangs", "is busy", "hung an hour ago", "without force"],
)
def test_with_force_the_requests_of_an_engine_that_hangs_are_cut_at_once(
    fake: FakeNode, force: bool, verdict: str, checked: str, waits: float
) -> None:
    fake.engines[NAME].connections = [fake.clock + 9999]
    swap = replace(at(fake, swaps.GATE), terms=Terms(drain_seconds=100, force=force))
    state = ProbeState(NAME, verdict, checked, checked, None, "no answer")
    files.write_json(fake.paths.probe(NAME), state.to_json())
    node, began = replace(fake.node(), now=lambda: drains.parse_time(SINCE)), fake.clock
    with contextlib.nullcontext() if force else pytest.raises(StepFailed, match="still in flight"):
        leave.gate(node, swap)
    assert waits <= fake.clock - began < waits + 2
    assert fake.said == (["cuts 1 request of 10.0.0.9"] if force else [])


def test_before_the_gate_the_step_does_not_wait_for_an_engine_that_hangs(fake: FakeNode) -> None:
    fake.hostile = False
    fake.engines[NAME].connections = [fake.clock + 9999]
    state = ProbeState(NAME, health.HUNG, SINCE, SINCE, None, "no answer")
    files.write_json(fake.paths.probe(NAME), state.to_json())
    node, began = replace(fake.node(), now=lambda: drains.parse_time(SINCE)), fake.clock
    leave.drain(node, at(fake, swaps.DRAIN, replace(SWAP, terms=Terms(drain_seconds=1000, force=True))))
    assert fake.clock - began < leave.QUIET_SECONDS + traffic.ILL_SECONDS + 5


def test_without_gateways_the_engines_own_count_of_requests_decides(
    fake: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.settings, fake.hostile = replace(fake.settings, gateways=()), False
    fake._belief.clear()
    fake.engines[NAME].connections = []
    counts = iter([2, 1, 0])
    monkeypatch.setattr(Node, "in_flight", lambda _node: next(counts, 7))
    swap = at(fake, swaps.GATE)
    leave.gate(fake.node(), swap)
    with pytest.raises(StepFailed, match="7 requests are still in flight"):
        leave.gate(fake.node(), swap)


def test_the_engine_is_stopped_behind_the_gate(fake: FakeNode) -> None:
    swap = at(fake, swaps.STOP)
    fake.closed.add(PORT)
    fake.engines[NAME].connections = []
    leave.stop(fake.node(), swap)
    assert NAME not in fake.engines
    leave.stop(fake.node(), swap)


def test_the_step_waits_for_clients_that_came_through_an_opened_gate(
    fake: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`nft flush ruleset` opens every gate. FakeNode checks that no engine with clients is stopped."""
    fake.engines[NAME].connections = [fake.clock + 20]
    swap, began = at(fake, swaps.STOP), fake.clock
    monkeypatch.setattr(fake, "check", lambda: None)
    leave.stop(fake.node(), swap)
    assert NAME not in fake.engines and fake.clock - began >= 20


def test_a_damaged_release_does_not_stop_the_engine_that_serves(fake: FakeNode) -> None:
    swap = at(fake, swaps.STOP)
    fake.closed.add(PORT)
    files.write(fake.paths.release(NAME, 2) / "engine.env", None)
    with pytest.raises(StepFailed, match="cannot be used"):
        leave.stop(fake.node(), swap)
    assert NAME in fake.engines


def test_a_release_that_runs_already_is_stopped_only_on_the_way_back(fake: FakeNode) -> None:
    same = at(fake, swaps.STOP, replace(SWAP, target=1))
    fake.closed.add(PORT)
    fake.engines[NAME].connections = []
    leave.stop(fake.node(), same)
    assert NAME in fake.engines
    leave.stop(fake.node(), replace(same, returning=True))
    assert NAME not in fake.engines


def test_a_gang_is_stopped_also_if_only_followers_change(fake: FakeNode) -> None:
    same = replace(at(fake, swaps.STOP, replace(SWAP, target=1)), gang=True)
    fake.closed.add(PORT)
    fake.engines[NAME].connections = []
    leave.stop(fake.node(), same)
    assert NAME not in fake.engines


def test_an_untouched_engine_gets_its_requests_back(fake: FakeNode) -> None:
    swap = replace(at(fake, swaps.GATE), step=swaps.RELEASE)
    fake.closed.add(PORT)
    with fake.resting():
        swaps.write(fake.paths, NAME, swap)
    leave.release(fake.node(), swap)
    assert not fake.closed and not fake.drain(NAME)


@pytest.mark.parametrize(("patience", "seconds"), [(None, 100), (30, 30), (500, 100)])
def test_the_drain_of_a_lone_engine_is_limited_by_its_patience(patience: int | None, seconds: float) -> None:
    assert leave.drain_limit(replace(SWAP, notes={"patience": patience})) == seconds
