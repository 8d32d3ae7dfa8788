# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict of the agent, as the node keeps it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import probe_state

NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
STATE = probe_state.ProbeState(
    "main", "healthy", "2026-11-21T02:00:00Z", "2026-11-21T03:00:00Z", 40, "answered a completion", "1234"
)


@pytest.mark.parametrize("latency", [40, None])
def test_a_verdict_is_read_as_it_was_written(tmp_path: Path, latency: int | None) -> None:
    paths, state = Paths(tmp_path), replace(STATE, latency_ms=latency)
    assert probe_state.read(paths, "main") is None
    files.write_json(paths.probe("main"), state.to_json())
    assert probe_state.read(paths, "main") == state


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 2},
        {"verdict": "splendid"},
        {"latency_ms": "40"},
        {"detail": None},
        {"checked": "yesterday"},
        {"since": "2026-11-21T02:00:00"},
    ],
)
def test_a_verdict_that_is_damaged_is_none(tmp_path: Path, change: dict[str, Any]) -> None:
    paths = Paths(tmp_path)
    files.write_json(paths.probe("main"), {**STATE.to_json(), **change})
    assert probe_state.read(paths, "main") is None
    files.write(paths.probe("main"), "{")
    assert probe_state.read(paths, "main") is None


@pytest.mark.parametrize(("seconds", "stale"), [(0, False), (60, False), (61, True), (-60, False), (-61, True)])
def test_a_verdict_counts_for_a_minute(seconds: int, stale: bool) -> None:
    assert probe_state.stale(STATE, NOW + timedelta(seconds=seconds)) is stale
