# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads an engine's progress from its metrics. Private to the collection; pure."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.prometheus_text import samples
from ..adapters.contract import Metrics


@dataclass(frozen=True)
class Sample:
    """The engine's counters at one time, summed over the ranks of data parallelism."""

    values: tuple[tuple[str, float], ...]
    started: float | None = None
    """The engine's start, in seconds since 1970."""


def parse(text: str, names: Metrics) -> Sample | None:
    """The counters of progress; None where the text has none: then the engine's state is unknown."""
    values = samples(text, names.progress)
    # Each rank of data parallelism has its own counters, but the API server has started once.
    started = samples(text, {names.started}).get(names.started)
    return Sample(tuple(sorted(values.items())), started) if values else None


def in_flight(text: str, names: Metrics) -> int | None:
    """Requests that an engine computes or keeps waiting; None where the text lacks one of the counters."""
    values = samples(text, names.in_flight)
    return int(sum(values.values())) if len(values) == len(names.in_flight) else None


def progress(earlier: Sample, later: Sample) -> bool | None:
    """Whether the engine has worked between two samples; None where the samples are of two processes."""
    if earlier.started != later.started:
        return None
    return earlier.values != later.values
