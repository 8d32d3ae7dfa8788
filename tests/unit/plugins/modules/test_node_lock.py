# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module node_lock: only one run at a time has the lock of a node."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.modules import node_lock

Call = Callable[..., dict[str, Any]]

MINE = {
    "run_id": "run1",
    "playbook": "baremetal.inference.update_model",
    "user": "mira",
    "host": "admin1",
    "process": "4711",
}
OTHER = {**MINE, "run_id": "run2", "user": "tom"}


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    paths = Paths(tmp_path)
    monkeypatch.setattr(node_lock, "Paths", lambda: paths)
    return paths


@pytest.fixture
def call(paths: Paths, run_module: Call) -> Call:
    return partial(run_module, node_lock)


def test_a_lock_is_taken_renewed_and_released(call: Call, paths: Paths) -> None:
    assert call(check=True, **MINE)["changed"] is True and not paths.state.exists()
    assert call(**MINE) | {"invocation": 0} == {"changed": True, "adopted": "", "invocation": 0}
    held = files.read_json(paths.lock)
    assert {key: held[key] for key in MINE} == MINE
    assert call(**MINE, seconds=900)["changed"] is False
    renewed = files.read_json(paths.lock)
    assert renewed["until"] > held["until"] and renewed["since"] == held["since"]
    assert call(state="released", run_id="run2")["changed"] is False, "a lock of another run stays"
    assert call(check=True, state="released", run_id="run1")["changed"] is True and paths.lock.exists()
    assert call(state="released", run_id="run1")["changed"] is True and not paths.lock.exists()
    assert call(state="released", run_id="run1")["changed"] is False


def test_another_run_is_refused_with_the_owner_unless_it_takes_the_lock_over(call: Call, paths: Paths) -> None:
    call(**MINE)
    for given in (OTHER, {"state": "free"}):
        refused = call(**given)
        assert refused["failed"] is True and "locked by" in refused["msg"] and "-e take_lock=run1" in refused["msg"]
        assert {key: refused["holder"][key] for key in MINE} == MINE
    assert call(**OTHER, take="run1")["adopted"] == "run1"
    assert files.read_json(paths.lock)["run_id"] == "run2"


def test_without_the_option_take_only_the_same_playbook_adopts_a_stale_lock(call: Call, paths: Paths) -> None:
    call(**MINE, seconds=-1)
    assert call(state="free")["changed"] is False
    assert "no sign of life" in call(**{**OTHER, "playbook": "baremetal.inference.maintenance"})["msg"]
    assert call(**OTHER)["adopted"] == "run1"


def test_a_damaged_lock_is_named(call: Call, paths: Paths) -> None:
    files.write(paths.lock, "{}")
    for given in (MINE, {"state": "free"}, {"state": "released", "run_id": "run1"}):
        assert str(paths.lock) in call(**given)["msg"]


def test_taking_a_lock_needs_a_playbook_and_releasing_a_lock_needs_a_run_id(call: Call) -> None:
    assert "playbook" in call(run_id="run1")["msg"]
    assert "run_id" in call(state="released")["msg"]
