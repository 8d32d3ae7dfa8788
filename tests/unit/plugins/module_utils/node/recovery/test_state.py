# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The recorded state of an instance's recovery, also with a full disk."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.drains import format_time
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery import (
    state,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.state import Breaker, State, Step

from .conftest import NOW


def test_a_state_can_be_read_back_and_a_damaged_file_counts_as_empty(paths: Paths) -> None:
    known = State("main", breaker=Breaker("x", "y", {"mail": "sent"}), steps=(Step("t", "restart", "hung", "r", "o"),))
    state.write(paths, known)
    assert state.read(paths, "main") == known
    for text in ("{", "[]", '{"schema": 1, "steps": [{"oops": 1}]}', '{"schema": 1, "breaker": 7}'):
        paths.recovered("main").write_text(text)
        assert state.read(paths, "main") == State("main")


def test_values_of_other_types_in_the_file_do_not_end_recovery(paths: Paths) -> None:
    step = {"time": 7, "act": "restart", "verdict": None, "reason": "r"}
    breaker = {"since": None, "reason": 1, "alerts": {"mail": 2}}
    files.write_json(paths.recovered("main"), {"schema": 1, "steps": [step], "breaker": breaker})
    known = state.read(paths, "main")
    assert known.recent(NOW, "restart") == [] and known.breaker == Breaker("None", "1", {"mail": "2"})
    files.write_json(paths.recovered("main"), {"schema": 1, "breaker": {**breaker, "alerts": [1]}})
    assert state.read(paths, "main") == State("main")


def test_a_full_disk_loses_no_state(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    known = State("main", steps=(Step("t", "restart", "hung", "r", "o"),), total=1)
    real = files.write

    def full(path: Path, *arguments: Any) -> bool:
        if paths.state in path.parents:
            raise OSError(28, "No space left on device")
        return real(path, *arguments)

    monkeypatch.setattr(files, "write", full)
    state.write(paths, known)
    assert state.read(paths, "main") == known
    monkeypatch.setattr(files, "write", real)
    state.write(paths, State("main", total=2))
    assert state.read(paths, "main") == State("main", total=2)


def test_steps_of_the_last_hour_count_by_their_kind() -> None:
    ago = {minutes: format_time(NOW - timedelta(minutes=minutes)) for minutes in (-10, 10, 70)}
    steps = [Step(time, "restart", "hung", "r") for time in ago.values()]
    known = State("main", steps=(*steps, Step(ago[10], "reset-gpu", "hung", "r"), Step("soon", "restart", "hung", "r")))
    # A time of the next hour counts: the clock may have been set back.
    assert [step.time for step in known.recent(NOW, "restart")] == [ago[-10], ago[10]]
    assert len(known.recent(NOW, "restart", "reset-gpu")) == 3


def test_only_the_last_steps_are_kept_and_all_are_counted() -> None:
    known = State("main")
    for number in range(state.KEPT + 1):
        known = known.with_step(Step(str(number), "restart", "hung", "r"))
    assert (len(known.steps), known.steps[0].time, known.total) == (state.KEPT, "1", state.KEPT + 1)
