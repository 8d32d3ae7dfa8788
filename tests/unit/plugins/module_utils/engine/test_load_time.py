# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long an engine loads."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import load_time
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import history

from ..conftest import stage


@pytest.mark.parametrize(
    ("state", "began", "ready", "seconds"),
    [
        ("active", "1000000", "41500000", 40.5),
        ("active", "41500000", "1000000", None),
        ("active", "0", "1000000", None),
        ("active", "", "", None),
        ("activating", "1000000", "41500000", None),
    ],
)
def test_the_load_time_is_that_from_the_start_to_the_first_answer(
    monkeypatch: pytest.MonkeyPatch, state: str, began: str, ready: str, seconds: float | None
) -> None:
    shown = {
        "ActiveState": state,
        "InactiveExitTimestampMonotonic": began,
        "ActiveEnterTimestampMonotonic": ready,
    }
    monkeypatch.setattr(systemd, "show", lambda units, properties: dict.fromkeys(units, shown))
    assert load_time.seconds("main") == seconds


def test_more_bytes_take_longer(tmp_path: Path) -> None:
    for name, size in (("small", 100), ("large", 300), ("empty", 0)):
        (tmp_path / name / "part").mkdir(parents=True)
        (tmp_path / name / "part/weights").write_bytes(b"0" * size)
    small, large = tmp_path / "small", tmp_path / "large"
    assert load_time.of_another(20.0, small, large) == 60.0
    assert load_time.of_another(20.0, large, small) == 20.0
    assert load_time.of_another(20.0, tmp_path / "gone", tmp_path / "gone") == 20.0
    for unknown in (tmp_path / "gone", tmp_path / "empty"):
        assert load_time.of_another(20.0, small, unknown) is None


def test_a_swap_keeps_requests_away_longer_than_the_load_time() -> None:
    assert load_time.swap_seconds(None) is None
    assert load_time.swap_seconds(100.0) == 140


def test_the_recorded_load_time_of_a_release_is_expected_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = Paths(tmp_path)
    for dtype in ("float32", "float16"):
        stage(paths, "main", 5005, dtype)
    taken: float | None = 20.0
    monkeypatch.setattr(load_time, "seconds", lambda _name: taken)
    # For a release that never ran, the load time of the release that serves counts: both load the same model.
    assert load_time.expected(paths, "main", 1, 2) == 20.0
    assert load_time.expected(paths, "main", None, 2) == 20.0, "nothing else is known"
    assert load_time.expected(paths, "main", 1, 3) is None, "a release that is not there"
    history.add(paths, "main", history.Served(2, "2026-11-25T12:00:00Z", 45.5, None))
    assert load_time.expected(paths, "main", 1, 2) == 45.5
    taken = None
    assert load_time.expected(paths, "main", 1, 1) is None and load_time.expected(paths, "main", 1, 2) == 45.5
