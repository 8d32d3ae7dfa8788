# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an engine's /metrics tells about its progress. Private to the collection."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import dataclass

PATH = "/metrics"

_PROGRESS = frozenset(
    {
        "vllm:generation_tokens_total",
        "vllm:prompt_tokens_total",
        "vllm:iteration_tokens_total_count",
        # A lone long prefill moves no counter before its first token, but fills the cache with every step.
        "vllm:kv_cache_usage_perc",
    }
)
"""Any change of these is work that the engine has done. Source: vllm/v1/metrics/loggers.py of vLLM 0.33, measured."""

_IN_FLIGHT = frozenset({"vllm:num_requests_running", "vllm:num_requests_waiting"})

START = "process_start_time_seconds"
"""The API server's start; with another one, the counters began anew."""

_LINE = re.compile(r"([A-Za-z_:][\w:]*)(?:\{[^\n]*\})?[ \t]+([^\s#]+)(?:[ \t]+-?[0-9]+)?\s*", re.ASCII)
"""A sample in Prometheus' text format: name, labels, value, perhaps a time. The value is the word after the labels."""


@dataclass(frozen=True)
class Sample:
    """One look at the engine's counters, summed over the ranks of data parallelism."""

    values: tuple[tuple[str, float], ...]
    started: float | None = None
    """The engine's start, in seconds since 1970."""


def samples(text: str, wanted: Collection[str]) -> dict[str, float]:
    """The samples of some metrics, each summed over its labels; one that is not there is left out."""
    values: dict[str, float] = {}
    for line in text.splitlines():
        if line.startswith("#") or not (found := _LINE.fullmatch(line)) or found[1] not in wanted:
            continue
        try:
            value = float(found[2])
        except ValueError:
            continue
        if math.isfinite(value):
            values[found[1]] = values.get(found[1], 0.0) + value
    return values


def parse(text: str) -> Sample | None:
    """The counters of progress; None where there is none: then the engine's state is unknown."""
    values = samples(text, _PROGRESS)
    # Each rank of data parallelism has its own counters, but the API server has started once.
    started = samples(text, {START}).get(START)
    return Sample(tuple(sorted(values.items())), started) if values else None


def in_flight(text: str) -> int | None:
    """Requests that an engine works at, or keeps waiting; None where it does not tell."""
    values = samples(text, _IN_FLIGHT)
    return int(sum(values.values())) if len(values) == len(_IN_FLIGHT) else None


def progress(earlier: Sample, later: Sample) -> bool | None:
    """Whether the engine has worked between two looks; None where they are of two processes and tell nothing."""
    if earlier.started != later.started:
        return None
    return earlier.values != later.values
