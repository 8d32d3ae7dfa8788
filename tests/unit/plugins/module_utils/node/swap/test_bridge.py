# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A second engine serves while the only engine of its set is swapped, and is removed afterwards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine import bridges
from ansible_collections.baremetal.inference.plugins.module_utils.engine.bridge_place import Place
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import drains, releases
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.swaps import Swap
from ansible_collections.baremetal.inference.plugins.module_utils.engine.swap_settings import UNKNOWN
from ansible_collections.baremetal.inference.plugins.module_utils.engine.swap_terms import Terms
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap import bridge, proof
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.node import StepFailed

from .fake_node import BRIDGE, NAME, PORTS, SINCE, FakeNode

PORT = PORTS[BRIDGE]
SWAP = Swap(1, 2, "run", SINCE, terms=Terms(drain_seconds=70, watch_seconds=5), bridged=True, notes={"bridge": True})

PLACE = bridge.place


@pytest.fixture
def node(fake: FakeNode) -> FakeNode:
    fake.others, fake.bridge_problem = False, ""
    return fake


def bridged(node: FakeNode) -> FakeNode:
    """A node whose bridge serves."""
    bridge.bridge(node.node(), SWAP)
    node.acts.clear()
    node.said.clear()
    return node


def test_a_bridge_proves_itself_while_the_engine_serves(node: FakeNode) -> None:
    assert bridge.bridge(node.node(), SWAP) == {}
    assert node.engines[BRIDGE].fit and node.engines[NAME].release == 1 and not node.closed
    assert node.said == ["main_bridge starts on port 5105", "main_bridge serves, 42.0 tokens/s"]
    release = releases.load(node.paths, BRIDGE, 1)
    assert (release.port, release.instance) == (PORT, BRIDGE)
    # The bridge is undrained only after it has passed its probe.
    order = [act.partition(": ")[2] for act in node.acts]
    drained, probed = order.index("write var/lib/inference/drain/main_bridge"), order.index("probe main_bridge")
    assert (
        drained < order.index("start main_bridge") < probed < order.index("remove var/lib/inference/drain/main_bridge")
    )


def test_without_a_bridge_the_steps_bridge_and_unbridge_change_nothing(node: FakeNode) -> None:
    swap = replace(SWAP, notes={"bridge": False}, bridged=False)
    assert bridge.bridge(node.node(), swap) == bridge.unbridge(node.node(), swap) == {}
    assert node.acts == []


def test_a_bridge_without_free_gpus_is_an_error(node: FakeNode) -> None:
    node.bridge_problem = "no 2 GPUs of this node are free for it"
    with pytest.raises(StepFailed, match="the bridge can no longer run: no 2 GPUs"):
        bridge.bridge(node.node(), SWAP)


def test_a_bridge_to_which_no_gateway_sends_requests_fails_the_step(node: FakeNode) -> None:
    node.silent = True
    with pytest.raises(StepFailed, match="the bridge does not serve yet: gw1 does not answer"):
        bridge.bridge(node.node(), SWAP)


def test_a_gate_left_closed_by_an_earlier_swap_is_opened(node: FakeNode) -> None:
    node.closed.add(PORT)
    bridge.bridge(node.node(), SWAP)
    assert not node.closed


def test_a_bridge_that_dies_while_it_is_watched_fails_the_step(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    def dead(*_given: object, **_more: object) -> str:
        raise proof.Unfit("main_bridge stopped serving")

    monkeypatch.setattr(proof, "watch", dead)
    with pytest.raises(proof.Unfit):
        bridge.bridge(node.node(), SWAP)


def test_a_bridge_is_removed_when_its_last_request_has_ended(node: FakeNode) -> None:
    bridged(node)
    node.engines[BRIDGE].connections = [node.clock + 20]
    began = node.clock
    assert bridge.unbridge(node.node(), SWAP) == {}
    assert node.clock - began >= 20 and BRIDGE not in node.engines
    assert not bridges.left(node.paths, NAME) and not node.closed and not node.paths.unit(BRIDGE).exists()


def test_a_bridge_that_is_the_last_server_stays(node: FakeNode) -> None:
    bridged(node)
    with node.resting():
        drains.drain(node.paths, [NAME], drains.Drain("mira", "disk", SINCE))
    with pytest.raises(StepFailed, match="main_bridge is the last server of main at gw1: it stays"):
        bridge.unbridge(node.node(), SWAP)
    assert BRIDGE in node.engines and not node.closed and not node.drain(BRIDGE)


def test_a_bridge_stays_if_the_swap_settings_are_unknown(node: FakeNode) -> None:
    bridged(node)
    node.settings = UNKNOWN
    with pytest.raises(
        StepFailed,
        match="cannot tell whether gateways have another server than main_bridge: run",
    ):
        bridge.unbridge(node.node(), SWAP)
    assert BRIDGE in node.engines and not node.closed and not node.drain(BRIDGE)


def test_requests_that_do_not_end_keep_a_bridge(node: FakeNode) -> None:
    bridged(node)
    node.engines[BRIDGE].connections = [node.clock + 9999]
    with pytest.raises(StepFailed, match=r"^1 request is still in flight at main_bridge, of 10\.0\.0\.9$"):
        bridge.unbridge(node.node(), SWAP)
    assert BRIDGE in node.engines and not node.closed
    bridge.unbridge(node.node(), replace(SWAP, terms=Terms(drain_seconds=70, force=True)))
    assert BRIDGE not in node.engines


def test_a_swap_does_not_wait_long_for_a_bridge_to_which_no_gateway_sends_requests(node: FakeNode) -> None:
    bridged(node)
    with node.resting():
        drains.drain(node.paths, [BRIDGE], drains.Drain(drains.UPDATE, "old", SINCE), force=True)
    node.engines[BRIDGE].connections = [node.clock + 9999]
    began = node.clock
    bridge.unbridge(node.node(), SWAP)
    assert BRIDGE not in node.engines and node.clock - began < 30


def test_no_gate_stays_closed_if_the_bridge_is_gone_already(node: FakeNode) -> None:
    node.closed.add(PORT)
    bridge.unbridge(node.node(), SWAP)
    assert not node.closed


def test_no_gate_stays_closed_if_the_bridge_cannot_be_removed(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_given: object, **_more: object) -> bool:
        raise OSError("Read-only file system")

    bridged(node)
    monkeypatch.setattr(bridges, "remove", refuse)
    with pytest.raises(OSError, match="Read-only"):
        bridge.unbridge(node.node(), SWAP)
    assert not node.closed and "close 5105" in node.acts[-2]


@pytest.mark.parametrize(
    ("port", "origin", "place", "problem"),
    [
        (None, 1, Place(problem=bridges.NO_PORT), "it has no bridge_port"),
        (PORT, None, Place(), "nothing served before"),
        (PORT, 1, Place(problem="no GPU"), "no GPU"),
        (PORT, 1, releases.ReleaseError(Path("release.json"), "damaged"), "release.json cannot be used (damaged)"),
        (PORT, 1, Place(("2",)), ""),
    ],
)
def test_a_bridge_has_its_gpus_or_a_problem(
    fake: FakeNode,
    monkeypatch: pytest.MonkeyPatch,
    port: int | None,
    origin: int | None,
    place: Place | Exception,
    problem: str,
) -> None:
    def found(*given: object) -> Place:
        assert given[1:] == (NAME, 1, 2, port)
        if isinstance(place, Exception):
            raise place
        return place

    monkeypatch.setattr(bridges, "declared_port", lambda *_given: port)
    monkeypatch.setattr(bridges, "place", found)
    shown = PLACE(fake.node(), replace(SWAP, origin=origin))
    assert shown.problem.startswith(problem) and bool(shown.problem) is bool(problem)
    assert shown.gpus == (("2",) if not problem else ())
