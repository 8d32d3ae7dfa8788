# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The recovery as metrics of Prometheus, for node_exporter. Private to the collection."""

from __future__ import annotations

import contextlib
from datetime import datetime

from ...exposition import Samples
from ...paths import Paths
from .. import files, releases
from ..drains import parse_time
from . import policy, state
from .settings import Settings

_HELP = {
    "inference_recovery_armed": "1 where recovery acts by itself.",
    "inference_recovery_breaker_open": "1 where recovery has given up until somebody resets it.",
    "inference_recovery_budget_left": "Faults within this hour that are still answered.",
    "inference_recovery_steps_total": "Steps ever taken.",
    "inference_recovery_last_step_timestamp_seconds": "When the last step was taken.",
}


def render(paths: Paths, settings: Settings, now: datetime) -> str:
    """The text of the metrics file."""
    samples = Samples(_HELP)
    for name in releases.names(paths):
        known = state.read(paths, name)
        values: dict[str, float] = {
            "inference_recovery_armed": known.armed and settings.armed,
            "inference_recovery_breaker_open": known.breaker is not None,
            "inference_recovery_budget_left": policy.budget_left(known, state.deaths(paths, name, now), settings, now),
            "inference_recovery_steps_total": known.total,
        }
        if known.steps:
            with contextlib.suppress(ValueError):
                last = parse_time(known.steps[-1].time).timestamp()
                values["inference_recovery_last_step_timestamp_seconds"] = last
        for metric, value in values.items():
            samples.add(metric, value, name=name)
    return samples.text()


def publish(paths: Paths, settings: Settings, now: datetime) -> None:
    """Write them where node_exporter reads, if it is there. Raises nothing: an engine is worth more."""
    if paths.textfiles.is_dir():
        with contextlib.suppress(OSError):
            files.write(paths.recovery_metrics, render(paths, settings, now))
