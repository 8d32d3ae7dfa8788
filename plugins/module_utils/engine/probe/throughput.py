# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast an engine answers its clients, from the engine's counters. Private to the collection.

An engine with more work is slower. So an engine counts as slower than before only if it does not have much more work
than before. Its work is the number of tokens, read and made, per second.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from ...core.paths import Paths
from ...core.prometheus_text import samples
from ..adapters.contract import Metrics
from ..state import releases
from .scrape import scrape

MIN_TOKENS = 200
"""The least tokens in each of the two periods. With fewer, one long pause would decide the result."""

MORE = 1.5
"""Factor by which the tokens per second may grow. Beyond it, the engine has more work, and is not judged as slower."""


@dataclass(frozen=True)
class Counters:
    """An engine's counters at one moment: `at`, in seconds since the node's boot."""

    model: str
    at: float
    started: float | None
    tokens: float
    """Tokens made, without the first of each answer. The number of pauses is no measure: with speculative decoding,
    several tokens come after one pause."""
    seconds: float
    """Seconds that all requests together have waited for these tokens."""
    work: float
    """Tokens made, and tokens read that did not come from a cache."""


@dataclass(frozen=True)
class Throughput:
    """What an engine did between two samples."""

    model: str
    tokens: int
    speed: float
    """Tokens per second of a request, without its first token."""
    concurrency: float
    """The average number of requests at once."""
    work: float
    """Tokens per second, read and made, for all requests."""


def read(paths: Paths, name: str) -> Counters | None:
    """The engine's counters now; None where the engine does not report them."""
    number = releases.active_number(paths, name)
    if number is None:
        return None
    try:
        release = releases.load(paths, name, number)
        text = scrape(paths, name, release)
    except (releases.ReleaseError, OSError):
        return None
    return parse(text, release.adapter.metrics, release.model, time.monotonic())


def parse(text: str, names: Metrics, model: str, at: float) -> Counters | None:
    """The counters in an engine's metrics; None where one is missing."""
    found = samples(text, {*names.of_throughput, names.tokens_cached, names.started})
    if not found.keys() >= names.of_throughput:
        return None
    return Counters(
        model=model,
        at=at,
        started=found.get(names.started),
        tokens=found[names.tokens_made] - found[names.answers],
        seconds=found[names.seconds_between_tokens],
        work=found[names.tokens_made] + found[names.tokens_read] - found.get(names.tokens_cached, 0.0),
    )


def between(first: Counters | None, last: Counters | None) -> Throughput | None:
    """What an engine did between two samples; None where the samples are of two processes, or one is missing."""
    if first is None or last is None or (first.model, first.started) != (last.model, last.started):
        return None
    tokens, seconds = last.tokens - first.tokens, last.seconds - first.seconds
    if last.at <= first.at or tokens < 0 or seconds < 0:
        return None
    passed = last.at - first.at
    return Throughput(
        model=first.model,
        tokens=int(tokens),
        speed=tokens / seconds if seconds else 0.0,
        concurrency=seconds / passed,
        work=(last.work - first.work) / passed,
    )


def judge(before: Throughput | None, now: Throughput | None, bound: float) -> tuple[bool, str]:
    """Whether an engine is slower than the share `bound` of its earlier speed, and the reason in words."""
    if before is None or now is None:
        why = f"its counters are not known for {'the time before' if now else 'this time'}"
    elif before.model != now.model:
        why = f"before, it served {before.model}"
    elif min(before.tokens, now.tokens) < MIN_TOKENS:
        why = f"{now.tokens} tokens were counted, {before.tokens} before, but {MIN_TOKENS} are needed"
    else:
        words = (
            f"under its clients' load, a request gets {now.speed:.1f} tokens/s ({now.tokens} counted, "
            f"{now.concurrency:.1f} requests at once), {before.speed:.1f} before ({before.tokens} counted, "
            f"{before.concurrency:.1f} at once)"
        )
        if now.speed >= bound * before.speed:
            return False, words
        all_in_all = f"{now.work:.0f} tokens/s read and made for all requests, {before.work:.0f} before"
        if now.work > MORE * before.work:
            return False, f"{words}; the engine has more work: {all_in_all}"
        return True, f"{words}, and the engine has not much more work than before: {all_in_all}"
    return False, f"its speed under its clients' load is not judged: {why}"
