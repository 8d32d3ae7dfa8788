# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The change from the release that runs to the release that must run."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import changes
from ansible_collections.baremetal.inference.plugins.module_utils.engine.changes import (
    NOTHING,
    START,
    UPDATE,
    Change,
    Texts,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import history, pins, releases

from ..conftest import stage

SINCE = "2026-11-21T03:00:00Z"


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    """A node with two releases of `main`, the first of which serves."""
    paths = Paths(tmp_path)
    stage(paths, "main", 5005)
    stage(paths, "main", 5005, dtype="bfloat16")
    releases.activate(paths, "main", 1)
    files.write_json(paths.instance("main"), {"schema": 1, "release": 2})
    state(monkeypatch, "active")
    return paths


def state(monkeypatch: pytest.MonkeyPatch, found: str) -> None:
    monkeypatch.setattr(systemd, "active_state", lambda unit: found)


def compare(paths: Paths, desired: int | None) -> Change:
    return changes.compare(paths, "main", desired, changes.kept(paths, "main", desired) if desired else Texts("unit"))


def test_another_release_is_an_update(paths: Paths) -> None:
    change = compare(paths, 2)
    assert (change.action, change.active, change.desired, change.served) == (UPDATE, 1, 2, False)
    assert change.differences == ("- --dtype float32", "+ --dtype bfloat16")
    assert change.to_dict()["differences"] == ["- --dtype float32", "+ --dtype bfloat16"]
    history.add(paths, "main", history.Served(2, SINCE))
    assert compare(paths, 2).served
    assert compare(paths, None).desired is None


def test_the_release_that_runs_is_no_change(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compare(paths, 1) == Change(NOTHING, 1, 1)
    state(monkeypatch, "failed")
    assert compare(paths, 1) == Change(START, 1, 1)
    assert compare(paths, 2).action == START


def test_an_instance_that_never_ran_is_started(paths: Paths) -> None:
    assert changes.compare(paths, "side", None, Texts()) == Change(START, None, None)


def test_a_pinned_release_takes_the_place_of_the_desired_one(paths: Paths) -> None:
    pins.settle(paths, "main", 1, "rolled back", SINCE)
    assert compare(paths, 2) == Change(NOTHING, 1, 1)


def test_values_of_the_environment_are_not_shown() -> None:
    old = Texts("a\nExecStart=x --release 1 \\", "KEY=one\nSAME=1\nGONE=1\n")
    new = Texts("b\nExecStart=x --release 2 \\", "KEY=two\nSAME=1\n")
    assert changes.differences(old, new) == ["- a", "+ b", "environment: GONE", "environment: KEY"]


def test_a_flag_is_shown_with_its_values() -> None:
    unit = "ExecStartPre=/usr/bin/docker create \\\n    --init \\\n    --entrypoint=vllm \\\n    image@{} \\\n    serve"
    unit += " \\\n    --served-model-name \\\n    main \\\n    {}{} \\\n    --seed=-1\nExecStart=/x\n"
    old = Texts(unit.format("a", "tiny-a", ""))
    assert changes.differences(old, Texts(unit.format("a", "tiny-b", ""))) == [
        "- --served-model-name main tiny-a",
        "+ --served-model-name main tiny-b",
    ]
    assert changes.differences(old, Texts(unit.format("b", "tiny-a", " \\\n    --enforce-eager"))) == [
        "- image@a",
        "+ image@b",
        "+ --enforce-eager",
    ]


def test_a_release_that_cannot_be_read_is_empty(paths: Paths) -> None:
    assert changes.kept(paths, "main", 9) == Texts()


def test_a_release_that_runs_or_has_served_keeps_its_writable_container(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (releases.load(paths, "main", number) for number in (1, 2))
    assert not first.read_only and changes.read_only(paths, None, True) and not changes.read_only(paths, None, False)
    # The first release runs, the second one is only staged.
    assert not changes.read_only(paths, first, True) and changes.read_only(paths, second, True)
    state(monkeypatch, "failed")
    assert changes.read_only(paths, first, True)
    releases.commit(paths, "main", 1)
    history.add(paths, "main", history.Served(2, SINCE))
    assert not changes.read_only(paths, first, True) and not changes.read_only(paths, second, True)
