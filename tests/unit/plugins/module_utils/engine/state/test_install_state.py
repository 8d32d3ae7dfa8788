# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The install state of an instance, which a playbook reads before it changes the node."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import load_time, task
from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang.members import Gang, Member
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance_facts import Endpoint, InstanceFacts
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import (
    drains,
    install_state,
    probe_state,
    releases,
    swaps,
)

from ...conftest import stage

NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    """A node whose instance `main` serves its first release."""
    paths = Paths(tmp_path)
    stage(paths, "main", 5005)
    releases.activate(paths, "main", 1)
    monkeypatch.setattr(systemd, "active_state", lambda unit: "active" if unit == "vllm@main.service" else "inactive")
    monkeypatch.setattr(load_time, "seconds", lambda name: 4.5)
    return paths


def probed(paths: Paths, verdict: str, checked: str = "2026-11-21T03:00:00Z") -> bool:
    """Whether an instance counts as serving after a probe with this verdict."""
    state = probe_state.ProbeState("main", verdict, checked, checked, None, "")
    files.write_json(paths.probe("main"), state.to_json())
    return install_state.serving(paths, "main", NOW)


def test_an_instance_that_serves_has_its_facts(paths: Paths) -> None:
    assert install_state.of(paths, "main", NOW) == InstanceFacts(
        name="main",
        model="tiny-a",
        release=1,
        serving=True,
        running=True,
        swapping=False,
        drained_by="",
        drain_reason="",
        load_seconds=4.5,
        endpoints=(Endpoint("127.0.0.1", 5005),),
    )


def test_the_tasks_are_the_certain_ones_of_the_active_release(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task, "certain", lambda release: (release.model, "score"))
    assert install_state.of(paths, "main", NOW).tasks == ("tiny-a", "score")
    assert install_state.of(paths, "gone", NOW).tasks == ()


def test_a_drain_and_a_swap_are_reported(paths: Paths) -> None:
    drains.drain(paths, ["main"], drains.Drain("mira", "new fan", drains.format_time(NOW)))
    swaps.begin(paths, "main", swaps.Swap(1, 2, "run", drains.format_time(NOW)))
    found = install_state.of(paths, "main", NOW)
    assert (found.drained_by, found.drain_reason, found.swapping) == ("mira", "new fan", True)


def test_an_instance_that_never_started_has_the_model_of_the_inventory(paths: Paths) -> None:
    files.write_json(paths.instance("side"), {"schema": 1, "model": "tiny-b", "release": 1})
    found = install_state.of(paths, "side", NOW)
    assert (found.model, found.release, found.serving, found.running) == ("tiny-b", None, False, False)
    # The model of a damaged release cannot be read, so the model of the inventory counts.
    files.write_json(paths.instance("main"), {"schema": 1, "model": "tiny-b", "release": 1})
    (paths.release("main", 1) / releases.RELEASE_FILE).write_text("{")
    assert install_state.of(paths, "main", NOW).model == "tiny-b"
    assert install_state.of(paths, "gone", NOW).model == ""


def test_the_verdict_of_the_agent_decides_whether_an_engine_serves(paths: Paths) -> None:
    assert probed(paths, "healthy") and probed(paths, "busy") and probed(paths, "unknown")
    assert not probed(paths, "hung")
    # An old verdict does not count.
    assert probed(paths, "hung", "2026-11-21T02:00:00Z")
    assert not install_state.serving(paths, "side", NOW)


def test_a_follower_of_a_gang_has_no_endpoint(paths: Paths) -> None:
    members = (Member("n1", 0, "10.0.0.1"), Member("n2", 1, "10.0.0.2"))
    release = releases.load(paths, "main", 1)
    for rank, endpoints in ((0, 1), (1, 0)):
        text = replace(release, gang=Gang("main", rank, members, 5110, 29510)).to_json()
        files.write(paths.release("main", 1) / releases.RELEASE_FILE, text)
        found = install_state.of(paths, "main", NOW)
        assert (found.gang, len(found.endpoints)) == (("n1", "n2"), endpoints)
