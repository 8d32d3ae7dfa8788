# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of recovery: budget, breaker, deaths and steps."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.drains import format_time
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery import deaths
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery import state as recovery_state
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.deaths import Seen
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.state import Step

from ..conftest import write
from .conftest import collect, declare


def test_a_step_costs_budget_for_an_hour(tmp_path: Path) -> None:
    """Without the role recovery, there are no metrics."""
    paths = Paths(tmp_path)
    declare(paths)
    assert "inference_recovery" not in collect("recovery", paths)
    write(paths.recovery_settings, json.dumps({"schema": 1, "budget": 3}))
    now = datetime.now(UTC)
    for minutes, left in ((5, 2), (90, 3)):
        step = Step(format_time(now - timedelta(minutes=minutes)), "restart", "hung", "no answer")
        recovery_state.write(paths, recovery_state.State("main", steps=(step,), total=1))
        text = collect("recovery", paths)
        assert f'inference_recovery_budget_left{{name="main"}} {left}\n' in text
        assert 'inference_recovery_steps_total{name="main"} 1\n' in text
        assert 'inference_recovery_breaker_open{name="main"} 0\n' in text
    write(paths.recovery_settings, json.dumps({"schema": 1, "armed": False}))
    assert 'inference_recovery_armed{name="main"} 0\n' in collect("recovery", paths)


def test_deaths_have_metrics_with_the_keys_in_flight(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    declare(paths)
    write(paths.recovery_settings, json.dumps({"schema": 1, "budget": 3}))
    now = datetime.now(UTC)
    for minutes in (90, 5, 1):
        seen = [Seen("main", "node1", 1, ("bob",), ()), Seen("main", "node2", 60, ("bob",), ())]
        deaths.record(paths, "main", now - timedelta(minutes=minutes), seen, "node1")
    text = collect("recovery", paths)
    assert 'inference_recovery_deaths{name="main"} 2\n' in text
    assert 'inference_recovery_deaths_in_flight{name="main",key="bob"} 2\n' in text
    # Each death on node2 with the same key in flight excuses one death here: no fault is left.
    assert 'inference_recovery_budget_left{name="main"} 3\n' in text


def test_an_invalid_time_omits_only_its_own_metric(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    declare(paths)
    write(paths.recovery_settings, json.dumps({"schema": 1}))
    for time, valid in (("2026-05-01T12:00:00Z", True), ("soon", False)):
        step = Step(time, "restart", "hung", "no answer")
        breaker = recovery_state.Breaker(time, "why")
        recovery_state.write(paths, recovery_state.State("main", steps=(step,), total=1, breaker=breaker))
        text = collect("recovery", paths)
        line = 'inference_recovery_last_step_timestamp_seconds{name="main"} 1777636800\n'
        assert (line in text) == valid
        assert 'inference_recovery_breaker_open{name="main"} 1\n' in text
