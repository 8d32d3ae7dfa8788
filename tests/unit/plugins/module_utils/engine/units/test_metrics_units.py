# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The units that gather metrics."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import METRICS_TEMPLATE, METRICS_TIMERS
from ansible_collections.baremetal.inference.plugins.module_utils.engine.units import metrics_units


def test_each_timer_has_its_own_interval() -> None:
    units = metrics_units.render()
    assert set(units) == {METRICS_TEMPLATE, *METRICS_TIMERS}
    for name, seconds in metrics_units.INTERVALS.items():
        assert f"OnUnitInactiveSec={seconds}\n" in units[name]
        assert units[name].endswith("WantedBy=timers.target\n")


def test_a_round_has_a_limit_and_does_not_disturb_engines() -> None:
    text = metrics_units.render()[METRICS_TEMPLATE]
    assert "ExecStart=/usr/local/bin/inferctl metrics --publish %i\n" in text
    assert f"TimeoutStartSec={metrics_units.TIMEOUT}\n" in text
    assert "CPUWeight=10\n" in text and "OOMScoreAdjust=500\n" in text
    # Collectors that do not answer end the round with 1, and the rest is published.
    assert "SuccessExitStatus=1\n" in text
