# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a swap with a damaged record ends, by the state of the node."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.engine import gate
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import drains, lock, releases, swaps
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.swaps import Swap
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap import damaged

from ..gang.world import gang
from .fake_node import NAME, RUN, SINCE, TARGET, Engine, FakeNode


def rebuilt(fake: FakeNode) -> Swap:
    with fake.resting():
        files.write(fake.paths.swap(NAME), "{")
    found = swaps.read(fake.paths, NAME)
    assert found and found.step == swaps.DAMAGED
    return damaged.rebuilt(fake.paths, NAME, found)


def drain(fake: FakeNode, owner: str = drains.UPDATE, since: str = SINCE) -> None:
    with fake.resting():
        files.write_json(fake.paths.drain(NAME), {"schema": 1, **vars(drains.Drain(owner, "a swap", since))})


def test_an_engine_that_clients_reach_is_left_alone(fake: FakeNode) -> None:
    found = rebuilt(fake)
    assert (found.step, found.touched, found.closed_port, found.origin) == (swaps.RELEASE, False, 5005, 1)
    assert "is damaged" in found.failure and not found.notes


def test_an_engine_that_was_not_stopped_gets_its_requests_back(fake: FakeNode) -> None:
    drain(fake)
    fake.closed.add(5005)
    assert rebuilt(fake).step == swaps.RELEASE


def test_an_engine_that_serves_without_proof_is_reported(fake: FakeNode) -> None:
    with fake.resting():
        releases.activate(fake.paths, NAME, TARGET)
        fake.engines[NAME] = Engine(TARGET, fit=True)
    found = rebuilt(fake)
    assert (found.step, found.origin) == (swaps.RELEASE, TARGET)
    assert found.notes == {"unproven": "the record of its swap was damaged"}


@pytest.mark.parametrize("case", ["started since the drain", "no time", "gate alone", "does not run", "drain's time"])
def test_an_engine_that_may_have_been_stopped_must_prove_itself_behind_its_gate(fake: FakeNode, case: str) -> None:
    drain(fake, since="some day" if case == "drain's time" else SINCE)
    with fake.resting():
        if case == "started since the drain":
            fake.engines[NAME] = Engine(1)
        elif case == "no time":
            fake.engines[NAME].started = "never"  # type: ignore[assignment]
        elif case == "gate alone":
            fake.closed.add(5005)
            drain(fake, owner="mira")
        elif case == "does not run":
            fake.engines.clear()
    found = rebuilt(fake)
    assert (found.step, found.returning, found.touched, found.gated) == (swaps.DRAIN, True, True, True)


def test_without_a_release_to_start_the_swap_is_stuck(fake: FakeNode) -> None:
    with fake.resting():
        fake.engines.clear()
        fake.paths.active(NAME).unlink()
    found = rebuilt(fake)
    assert (found.step, found.origin, found.target) == (swaps.STUCK, None, 0)


def test_a_node_without_nftables_has_no_gate(fake: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> set[int]:
        raise gate.NotInstalled("nft is not installed")

    monkeypatch.setattr(gate, "closed", missing)
    assert rebuilt(fake).step == swaps.RELEASE


def test_an_engine_whose_gate_is_unknown_must_prove_itself(fake: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> set[int]:
        raise gate.GateError("nft gave no answer within 20 s")

    monkeypatch.setattr(gate, "closed", fails)
    drain(fake, owner="mira")
    found = rebuilt(fake)
    assert (found.step, found.returning, found.gated) == (swaps.DRAIN, True, True)


def test_the_run_of_a_swap_by_hand_is_read_from_the_lock(fake: FakeNode) -> None:
    fake.begin()
    assert rebuilt(fake).run_id == RUN
    with fake.resting():
        swaps.begin(fake.paths, "other", Swap(1, 2, RUN, SINCE))
    assert damaged.run_id(fake.paths, NAME) == "", "the run swaps another instance"
    with fake.resting():
        swaps.end(fake.paths, "other")
        held = lock.Lock(RUN, "mira", "adm", "baremetal.inference.maintenance", SINCE, "2126-01-01T00:00:00Z")
        files.write_json(fake.paths.lock, {"schema": lock.SCHEMA, **vars(held)})
    assert damaged.run_id(fake.paths, NAME) == "", "a playbook has the lock"
    with fake.resting():
        files.write(fake.paths.lock, "{")
    assert damaged.run_id(fake.paths, NAME) == ""
    with fake.resting():
        files.write(fake.paths.lock, None)
    assert damaged.run_id(fake.paths, NAME) == ""


def test_the_rebuilt_record_of_a_gangs_swap_is_that_of_a_gang(fake: FakeNode) -> None:
    assert not rebuilt(fake).gang
    release = releases.load(fake.paths, NAME, 1)
    with fake.resting():
        path = fake.paths.release(NAME, 1) / releases.RELEASE_FILE
        files.write(path, replace(release, gang=replace(gang(0), name=NAME)).to_json())
    assert rebuilt(fake).gang
