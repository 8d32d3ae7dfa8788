# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast an engine answers its clients, by its own counters. Private to the collection.

An engine is slower the more it has to do. So two times are only compared where it has not much more to do in the later
one: it has read and made about as many tokens per second, or fewer.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from ...core.paths import Paths
from ..state import releases
from . import metrics
from .scrape import scrape

MIN_TOKENS = 200
"""In each of the two times. With fewer, one long pause would say how fast the engine is."""

MORE = 1.5
"""So many times the tokens per second, and it has more to do."""

_MADE = "vllm:generation_tokens_total"
_ANSWERS = "vllm:time_to_first_token_seconds_count"
_WAITED = "vllm:inter_token_latency_seconds_sum"
_READ = "vllm:prompt_tokens_total"
_CACHED = "vllm:prompt_tokens_cached_total"
"""Of those that were read, what a cache had: that of an engine which has just started is empty."""

_NEEDED = frozenset({_MADE, _ANSWERS, _WAITED, _READ})


@dataclass(frozen=True)
class Counters:
    """What an engine had counted at a time, in seconds since the node's boot."""

    model: str
    at: float
    started: float | None
    tokens: float
    """That it has made, but for the first of each answer. (Counted so, and not by the pauses between them: with
    speculative decoding, one pause brings several.)"""
    seconds: float
    """For which all its requests together have waited for these."""
    work: float
    """Tokens that it has read or made."""


@dataclass(frozen=True)
class Pace:
    """What an engine did between two looks."""

    model: str
    tokens: int
    speed: float
    """Tokens per second of a request, behind its first."""
    company: float
    """Requests at once that it gave these to, on the average."""
    work: float
    """Tokens per second that it has read or made for all requests."""


def read(paths: Paths, name: str) -> Counters | None:
    """A look at the engine's counters; None where it does not tell."""
    number = releases.active_number(paths, name)
    if number is None:
        return None
    try:
        release = releases.load(paths, name, number)
        text = scrape(paths, name, release)
    except (releases.ReleaseError, OSError):
        return None
    return parse(text, release.model, time.monotonic())


def parse(text: str, model: str, at: float) -> Counters | None:
    """The counters in an engine's /metrics; None where one that is needed is not there."""
    found = metrics.samples(text, {*_NEEDED, _CACHED, metrics.START})
    if not found.keys() >= _NEEDED:
        return None
    return Counters(
        model=model,
        at=at,
        started=found.get(metrics.START),
        tokens=found[_MADE] - found[_ANSWERS],
        seconds=found[_WAITED],
        work=found[_MADE] + found[_READ] - found.get(_CACHED, 0.0),
    )


def between(first: Counters | None, last: Counters | None) -> Pace | None:
    """What came from one look to another; None where they are of two processes, or nothing is known."""
    if first is None or last is None or (first.model, first.started) != (last.model, last.started):
        return None
    tokens, seconds = last.tokens - first.tokens, last.seconds - first.seconds
    if last.at <= first.at or tokens < 0 or seconds < 0:
        return None
    passed = last.at - first.at
    return Pace(
        model=first.model,
        tokens=int(tokens),
        speed=tokens / seconds if seconds else 0.0,
        company=seconds / passed,
        work=(last.work - first.work) / passed,
    )


def judge(before: Pace | None, now: Pace | None, bound: float) -> tuple[bool, str]:
    """Whether an engine is slower than the share `bound` of what it was, and what is known of that, in words."""
    if before is None or now is None:
        why = f"its counters tell nothing of {'the time before' if now else 'this time'}"
    elif before.model != now.model:
        why = f"before, it served {before.model}"
    elif min(before.tokens, now.tokens) < MIN_TOKENS:
        why = f"{now.tokens} tokens were counted, {before.tokens} before, and it takes {MIN_TOKENS}"
    else:
        words = (
            f"under its clients' load, a request gets {now.speed:.1f} tokens/s ({now.tokens} counted, {now.company:.1f}"
            f" requests at once), {before.speed:.1f} before ({before.tokens} counted, {before.company:.1f} at once)"
        )
        if now.speed >= bound * before.speed:
            return False, words
        all_in_all = f"{now.work:.0f} tokens/s read and made for all requests, {before.work:.0f} before"
        if now.work > MORE * before.work:
            return False, f"{words}; it has more to do: {all_in_all}"
        return True, f"{words}, and it has not more to do: {all_in_all}"
    return False, f"its speed under its clients' load is not judged: {why}"
