# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One probe of an engine that should serve: what it answered, and what it did meanwhile. Private to the collection.

An engine's other paths answer 200 while its worker hangs: only a request that makes the engine compute shows that the
engine is alive. Only its counters distinguish an engine that hangs from an engine with too much work.
"""

from __future__ import annotations

import asyncio
import http.client
import time
from dataclasses import dataclass
from enum import Enum

from . import metrics
from .http import ask
from .probe import Target, WrongAnswer, decode, judge, request_body

LIMIT = 10.0
"""Seconds for the request."""

SCRAPE_AFTER = 2.0
"""Seconds without an answer until the counters are read. A fast engine is never asked for its counters."""

SCRAPE_LIMIT = 10.0
"""Seconds for a read of the counters. Under 100 parallel requests, /metrics took up to 2.3 s (vLLM 0.32 on a CPU)."""

_BUSY = frozenset({http.HTTPStatus.TOO_MANY_REQUESTS, http.HTTPStatus.SERVICE_UNAVAILABLE})
"""Refusals of an engine whose queue is full (--max-num-queued-reqs): the engine is alive."""

_KEY_REFUSED = frozenset({http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN})


class Seen(Enum):
    """The result of the request."""

    TOKEN = "token"
    FULL = "full"
    WRONG = "wrong"
    ERROR = "error"
    """An HTTP status that a sound engine does not send."""
    REFUSED = "refused"
    """No process listens on the port."""
    NOTHING = "nothing"
    """No answer within the limit."""
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class Observation:
    """What one probe saw, without a verdict."""

    seen: Seen
    detail: str
    latency_ms: int | None = None
    """Milliseconds until the answer."""
    samples: tuple[metrics.Sample, ...] = ()
    """The counters during the wait, oldest first."""
    silent: bool = False
    """Whether no request was answered, not even for metrics: the API server itself hangs."""


@dataclass(frozen=True)
class _Scrape:
    answered: bool
    sample: metrics.Sample | None = None


async def observe(target: Target, limit: float = LIMIT) -> Observation:
    """Send the smallest request of the engine's task. Where the answer takes long, read the counters at both ends of
    the wait.

    Takes up to `limit` + SCRAPE_LIMIT seconds. Raises nothing, unless the task is cancelled.
    """
    began = time.monotonic()
    waiting = asyncio.create_task(_complete(target, limit))
    first: asyncio.Task[_Scrape] | None = None
    try:
        done, _pending = await asyncio.wait({waiting}, timeout=SCRAPE_AFTER)
        if not done:
            first = asyncio.create_task(_scrape(target))
        observation = await waiting
        if observation.seen is not Seen.NOTHING:
            latency = round((time.monotonic() - began) * 1000)
            return Observation(observation.seen, observation.detail, latency if _is_token(observation) else None)
        return await _with_samples(target, observation, first)
    finally:
        for task in (waiting, first):
            if task is not None:
                task.cancel()


def _is_token(observation: Observation) -> bool:
    return observation.seen is Seen.TOKEN


async def _with_samples(target: Target, observation: Observation, first: asyncio.Task[_Scrape] | None) -> Observation:
    """Add the counters. Where the first scrape outlasts the wait, there is no second scrape."""
    scrapes = []
    waited_for = first is not None and not first.done()
    if first is not None:
        scrapes.append(await first)
    if not waited_for:
        scrapes.append(await _scrape(target))
    return Observation(
        Seen.NOTHING,
        observation.detail,
        samples=tuple(scrape.sample for scrape in scrapes if scrape.sample),
        silent=not any(scrape.answered for scrape in scrapes),
    )


async def _complete(target: Target, limit: float) -> Observation:
    request = target.request
    body = request_body(target, target.served_names[-1])
    try:
        answer = await ask(target, "POST", request.path, body, limit)
        judge(decode(request.path, answer.status, answer.body), target)
    except WrongAnswer as error:
        return Observation(_meaning(error.status), str(error))
    except TimeoutError:
        return Observation(Seen.NOTHING, f"no {request.result} within {limit:g} s")
    except ConnectionRefusedError:
        return Observation(Seen.REFUSED, f"no process listens on {target}")
    except http.client.IncompleteRead:
        return Observation(Seen.UNCLEAR, f"{target} broke off its answer")
    except http.client.HTTPException as error:
        return Observation(Seen.WRONG, f"{target} does not speak HTTP: {str(error)[:100] or type(error).__name__}")
    except OSError as error:
        return Observation(Seen.UNCLEAR, f"no answer on {target}: {str(error) or type(error).__name__}")
    return Observation(Seen.TOKEN, f"answered {request.noun}")


def _meaning(status: int) -> Seen:
    if status in _BUSY:
        return Seen.FULL
    if status in _KEY_REFUSED:
        # The key may be wrong only on this side: the file of the key may be newer than the engine.
        return Seen.UNCLEAR
    return Seen.WRONG if status == http.HTTPStatus.OK else Seen.ERROR


async def _scrape(target: Target) -> _Scrape:
    names = target.adapter.metrics
    try:
        answer = await ask(target, "GET", names.path, None, SCRAPE_LIMIT)
    except http.client.HTTPException:
        return _Scrape(answered=True)
    except OSError:
        return _Scrape(answered=False)
    found = metrics.parse(answer.body.decode(errors="replace"), names) if answer.status == http.HTTPStatus.OK else None
    return _Scrape(answered=True, sample=found)
