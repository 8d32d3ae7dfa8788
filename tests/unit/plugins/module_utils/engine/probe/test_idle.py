# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether an engine is idle, so that its stop may be quick."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import idle
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Release
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import drains, releases, swaps

from ...conftest import stage

NOW = datetime(2026, 12, 24, 18, 0, tzinfo=UTC)
COUNTS = 'vllm:num_requests_running{{model_name="main"}} {}\nvllm:num_requests_waiting{{model_name="main"}} {}\n'


@pytest.fixture
def drained(tmp_path: Path) -> tuple[Paths, Release]:
    paths = Paths(tmp_path)
    stage(paths, "main", 5005)
    drains.drain(paths, ["main"], drains.Drain("update", "a new model", drains.format_time(NOW)))
    return paths, releases.load(paths, "main", 1)


def answers(monkeypatch: pytest.MonkeyPatch, said: str | Exception) -> None:
    def scrape(*_given: object) -> str:
        if isinstance(said, Exception):
            raise said
        return said

    monkeypatch.setattr(idle, "scrape", scrape)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (COUNTS.format("0.0", "0.0"), True),
        (COUNTS.format("1.0", "0.0"), False),
        (COUNTS.format("0.0", "3.0"), False),
        (ConnectionRefusedError(), True),
        # No answer, an answer without one of the counters, or a key that cannot be read.
        ("", False),
        ("vllm:num_requests_running 0.0\n", False),
        (PermissionError("/etc/inference/env/main.env"), False),
    ],
)
def test_a_drained_engine_without_requests_is_idle(
    drained: tuple[Paths, Release], monkeypatch: pytest.MonkeyPatch, said: str | Exception, expected: bool
) -> None:
    answers(monkeypatch, said)
    assert idle.is_idle(*drained, NOW) is expected


def test_an_engine_that_is_not_drained_is_never_idle(
    drained: tuple[Paths, Release], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(monkeypatch, COUNTS.format("0.0", "0.0"))
    drains.undrain(drained[0], "main", "update", NOW)
    assert not idle.is_idle(*drained, NOW)


def test_an_engine_that_a_swap_stops_is_idle(drained: tuple[Paths, Release], monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine hangs, and reports no requests."""
    answers(monkeypatch, TimeoutError())
    for step in (swaps.GATE, swaps.START):
        swaps.write(drained[0], "main", swaps.Swap(1, 2, "a", drains.format_time(NOW), step=step))
        assert not idle.is_idle(*drained, NOW)
    swaps.write(drained[0], "main", swaps.Swap(1, 2, "a", drains.format_time(NOW), step=swaps.STOP))
    assert idle.is_idle(*drained, NOW)


def test_requests_in_flight_are_counted(drained: tuple[Paths, Release], monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, COUNTS.format("2.0", "3.0"))
    assert idle.in_flight(*drained) == 5
    answers(monkeypatch, ConnectionRefusedError())
    assert idle.in_flight(*drained) == 0
    answers(monkeypatch, "")
    assert idle.in_flight(*drained) is None
