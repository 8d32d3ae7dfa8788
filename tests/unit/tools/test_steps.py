# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which steps `make test` runs at the same time, and what it reports of their times."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture(scope="module")
def tool(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("test")


@pytest.mark.parametrize(("full", "scenario"), [(False, None), (True, None), (True, "swap"), (True, "recovery")])
def test_every_step_runs_once(tool: ModuleType, ran: list[str], full: bool, scenario: str | None) -> None:
    steps = tool.plan(full, scenario)
    results = tool.run_steps(tool.Steps(steps), steps, full, True)
    assert sorted(ran) == sorted(steps) == sorted(result.name for result in results)


def test_the_order_has_exactly_the_steps_of_ci(tool: ModuleType) -> None:
    assert sorted(tool.ORDER) == sorted(tool.plan(False, None))


def test_the_budgets_of_ci_fit_25_minutes_on_two_cores(tool: ModuleType) -> None:
    steps = [name for name in tool.plan(False, None) if name not in tool.LATER]
    assert sum(tool.BUDGETS[name] for name in steps) / tool.RUNNERS <= 25
    # Steps with engines run one after another.
    assert tool.BUDGETS["images"] + sum(tool.BUDGETS[name] for name in steps if tool.with_engines(name)) <= 25
    # With the steps of LATER, CI may take 45 minutes.
    assert sum(tool.BUDGETS.values()) / tool.RUNNERS <= 45


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


def test_a_scenario_waits_for_the_steps_that_it_needs(tool: ModuleType) -> None:
    waiting = tool.Steps(["molecule vm", "snapshots", "molecule default", "images", "lint"])
    assert [waiting.take(), waiting.take()] == ["images", "lint"]
    waiting.ended("lint")
    with ThreadPoolExecutor() as pool:
        other = pool.submit(waiting.take)
        with pytest.raises(TimeoutError):
            other.result(timeout=0.2)
        waiting.ended("images")
        assert other.result(timeout=5) == "molecule default"
    assert waiting.take() == "snapshots"
    waiting.ended("snapshots")
    assert waiting.take() == "molecule vm" and waiting.take() is None


def test_one_scenario_with_engines_runs_at_a_time(tool: ModuleType) -> None:
    waiting = tool.Steps(["molecule swap", "molecule backup", "molecule rolling", "molecule hardware"])
    assert [waiting.take(), waiting.take(), waiting.take()] == [
        *("molecule rolling", "molecule hardware", "molecule backup"),
    ]
    waiting.ended("molecule rolling")
    assert waiting.take() == "molecule swap"


def test_a_single_step_waits_for_no_other_step(tool: ModuleType) -> None:
    assert tool.Steps(["molecule swap"]).take() == "molecule swap"


def test_a_step_that_cannot_start_blocks_no_other_step(tool: ModuleType, ran: list[str]) -> None:
    names = ("broken", "images")
    waiting = tool.Steps(names)
    with pytest.raises(OSError, match="broken"):
        tool.run_steps(waiting, {name: [""] for name in names}, False, True)
    assert waiting.take() is None and ran == ["images", "broken"]


def test_a_step_over_its_budget_is_reported(tool: ModuleType) -> None:
    results = [
        tool.Result("lint", True, tool.BUDGETS["lint"] + 0.2, [], 0.5),
        tool.Result("sanity", False, 1.0, ["no"]),
        tool.Result("molecule models", True, 50.0, []),
    ]
    lines = tool.table(results, 51.0, 0.875, full=False).splitlines()
    assert [line.endswith("WARNING: over its budget") for line in lines] == [False, True, False, False, False]
    assert "FAILED" in lines[2] and lines[-1].split() == ["in", "all", "51.0", "88%"]
    assert "50%" in lines[1].split()
    # A full run has more tests.
    assert "WARNING" not in tool.table(results, 51.0, 0.875, full=True)


def test_the_use_of_the_processors_is_that_between_two_readings(tool: ModuleType) -> None:
    # user, nice, system, idle, iowait, irq, softirq, steal, guest (counted in user already), guest_nice
    before = tool.processor_time("cpu  100 10 50 1000 40 0 5 5 90 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n")
    after = tool.processor_time("cpu  160 10 60 1020 50 0 5 5 150 0\n")
    assert (before.total, before.used) == (1210, 170)
    assert after.busy_since(before) == pytest.approx(70 / 100)
    assert before.busy_since(before) == 0
