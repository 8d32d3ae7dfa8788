# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which steps `make test` runs beside each other, and what is told of the time that they took."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture(scope="module")
def tool(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("test")


@pytest.mark.parametrize(("full", "scenario"), [(False, None), (True, None), (True, "swap"), (True, "recovery")])
def test_every_step_runs_once(tool: ModuleType, full: bool, scenario: str | None) -> None:
    steps = list(tool.plan(full, scenario))
    lanes = tool.lanes(steps)
    assert sorted(name for lane in lanes for name in lane) == sorted(steps)
    assert all(lanes)


def test_the_budgets_of_ci_fit_25_minutes_on_two_cores(tool: ModuleType) -> None:
    lanes = tool.lanes(list(tool.plan(False, None)))
    assert len(lanes) == 2
    assert all(sum(tool.BUDGETS[name] for name in lane) <= 25 for lane in lanes)
    # With what comes.
    assert sum(tool.BUDGETS.values()) / 2 <= 45


@pytest.fixture
def ran(tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which steps began, in their order; each takes no time."""
    names: list[str] = []

    def run(name: str, _command: list[str], _full: bool, _live: bool) -> Any:
        names.append(name)
        if name == "broken":
            raise OSError(name)
        return tool.Result(name, True, 0.0, [])

    monkeypatch.setattr(tool, "run", run)
    return names


def test_a_scenario_waits_for_what_it_needs_in_either_lane(tool: ModuleType, ran: list[str]) -> None:
    first, second = ["images", "molecule default", "molecule rolling"], ["lint", "snapshots", "molecule vm"]
    steps: dict[str, list[str]] = {name: [""] for name in first + second}
    ended = {name: Event() for name in steps}
    with ThreadPoolExecutor() as pool:
        other = pool.submit(tool.run_lane, second, steps, False, False, ended)
        with pytest.raises(TimeoutError):
            other.result(timeout=0.2)
        assert ran == ["lint"]
        tool.run_lane(first, steps, False, True, ended)
        assert [result.name for result in other.result(timeout=5)] == second
    assert ran.index("images") < ran.index("snapshots") < min(ran.index("molecule vm"), ran.index("molecule rolling"))


def test_a_step_that_is_asked_for_alone_waits_for_nothing(tool: ModuleType, ran: list[str]) -> None:
    tool.run_lane(["molecule swap"], {"molecule swap": [""]}, True, True, {"molecule swap": Event()})
    assert ran == ["molecule swap"]


def test_nobody_waits_for_a_step_that_cannot_even_start(tool: ModuleType, ran: list[str]) -> None:
    ended = {name: Event() for name in ("broken", "images")}
    with pytest.raises(OSError, match="broken"):
        tool.run_lane(list(ended), {name: [""] for name in ended}, False, True, ended)
    assert ended["images"].is_set() and ran == ["broken"]


def test_a_step_over_its_budget_is_told(tool: ModuleType) -> None:
    results = [
        tool.Result("lint", True, tool.BUDGETS["lint"] + 0.2, []),
        tool.Result("sanity", False, 1.0, ["no"]),
        tool.Result("molecule models", True, 50.0, []),
    ]
    lines = tool.table(results, 51.0).splitlines()
    assert [line.endswith("WARNING: over its budget") for line in lines] == [False, True, False, False, False]
    assert "FAILED" in lines[2] and lines[-1].split() == ["in", "all", "51.0"]
