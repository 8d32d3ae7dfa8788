# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of recovery. Private to the collection.

Gathered every minute, not with each step: budgets renew with time, instances are removed, and recovery is disarmed
without any step.
"""

from __future__ import annotations

import contextlib
from datetime import datetime

from ...core.exposition import Help, Samples
from ...core.paths import Paths
from ...engine.state import releases
from ...engine.state.drains import parse_time
from ..recovery import deaths, policy, settings, state

HELP: Help = {
    "inference_recovery_armed": "1 if recovery acts by itself.",
    "inference_recovery_breaker_open": "1 if recovery has given up, until an operator resets it.",
    "inference_recovery_budget_left": "Faults within this hour that recovery will still answer.",
    "inference_recovery_deaths": "Deaths of the engine within the last hour.",
    "inference_recovery_deaths_in_flight": "Deaths within the last hour with requests of the key in flight.",
    "inference_recovery_steps_total": "Steps of recovery ever taken.",
    "inference_recovery_last_step_timestamp_seconds": "When recovery took its last step.",
}


def render(paths: Paths, now: datetime, samples: Samples) -> None:
    """Add the state of each instance; nothing if the role recovery has not set up the node.

    Raises OSError, ValueError."""
    found = settings.read(paths)
    if found is None:
        return
    for name in releases.names(paths):
        known, died = state.read(paths, name), deaths.read(paths, name).recent(now)
        left = policy.budget_left(known, died.faults, found, now)
        samples.add("inference_recovery_armed", known.armed and found.armed, name=name)
        samples.add("inference_recovery_breaker_open", known.breaker is not None, name=name)
        samples.add("inference_recovery_budget_left", left, name=name)
        samples.add("inference_recovery_steps_total", known.total, name=name)
        samples.add("inference_recovery_deaths", len(died.own), name=name)
        for key, count in died.by_key.items():
            samples.add("inference_recovery_deaths_in_flight", count, name=name, key=key)
        if known.steps:
            with contextlib.suppress(ValueError):
                last = parse_time(known.steps[-1].time).timestamp()
                samples.add("inference_recovery_last_step_timestamp_seconds", last, name=name)
