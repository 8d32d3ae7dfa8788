# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Turns the observations of probes into a verdict. Private to the collection; pure.

A verdict that takes an engine out of service needs evidence. Without evidence, the verdict is `unknown`, and the engine
stays in service.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from . import metrics
from .observation import Observation, Seen
from .wait import judge

HEALTHY = "healthy"
"""The engine has just answered."""

BUSY = "busy"
"""No answer in time, but the engine works on other requests, or its queue is full."""

STARTING = "starting"
"""The engine loads, within its time limit."""

STOPPED = "stopped"
"""The engine was stopped on purpose, or is about to stop. It is not probed."""

HUNG = "hung"
"""The engine takes requests and does nothing."""

DEAD = "dead"
"""The engine does not listen although it should, or its starts fail."""

WRONG = "wrong"
"""The answers are wrong: another model, errors over and over, or another process on the port."""

UNKNOWN = "unknown"
"""No evidence, for example: the key is refused, the counters cannot be read, or too few probes were made yet."""

VERDICTS = (HEALTHY, BUSY, STARTING, STOPPED, HUNG, DEAD, WRONG, UNKNOWN)

SERVING = frozenset({HEALTHY, BUSY})

CONDEMNED = frozenset({HUNG, DEAD, WRONG})
"""Such a verdict ends only by evidence to the contrary, or with a new start. If `unknown` could follow it, gateways
would send requests to an engine that hangs."""

HANG_TIMEOUTS = 2
"""Probes in a row without an answer and without progress. A single prefill step that takes longer than both probes
together looks the same. --long-prefill-token-threshold, or a smaller --max-num-batched-tokens, makes steps short."""

HANG_SILENCES = 3
"""Probes in a row without any answer, not even from /metrics: about 40 s. An API server under load took up to 2.3 s.
A paused process gives no counters, so only its silence shows the hang."""

ERRORS = 2
"""Probes in a row that get an HTTP error. A single error may concern that one request alone, and a restart would cut
off all others."""


@dataclass(frozen=True)
class Finding:
    """A verdict and its reason. `pending`: the next probe may condemn the engine."""

    verdict: str
    detail: str
    latency_ms: int | None = None
    pending: bool = False


class History:
    """The verdict on one engine process, from all its probes so far."""

    def __init__(self, verdict: str = UNKNOWN) -> None:
        self.verdict = verdict
        self._last: metrics.Sample | None = None
        self._timeouts = 0
        self._silences = 0
        self._errors = 0

    def judge(self, observation: Observation) -> Finding:
        """The verdict after one more probe."""
        finding = self._judge(observation)
        if finding.verdict == UNKNOWN and self.verdict in CONDEMNED:
            finding = replace(finding, verdict=self.verdict, detail=f"still: {finding.detail}", pending=False)
        self.verdict = finding.verdict
        return finding

    def _judge(self, observation: Observation) -> Finding:
        if observation.seen is Seen.NOTHING:
            self._errors = 0
            return self._no_answer(observation)
        self._last, self._timeouts, self._silences = None, 0, 0
        if observation.seen is Seen.ERROR:
            return self._error(observation.detail)
        self._errors = 0
        verdict = {Seen.TOKEN: HEALTHY, Seen.FULL: BUSY, Seen.WRONG: WRONG, Seen.REFUSED: DEAD, Seen.UNCLEAR: UNKNOWN}
        return Finding(verdict[observation.seen], observation.detail, observation.latency_ms)

    def _error(self, detail: str) -> Finding:
        self._errors += 1
        if self._errors >= ERRORS:
            return Finding(WRONG, f"{detail}, {self._errors} times in a row")
        return Finding(UNKNOWN, f"{detail}: once more, and it counts as wrong", pending=True)

    def _no_answer(self, observation: Observation) -> Finding:
        moved = self._progress(observation.samples)
        if observation.silent:
            return self._silence(observation.detail)
        self._silences = 0
        if moved:
            self._timeouts = 0
            return Finding(BUSY, f"{observation.detail}, but it works on other requests")
        if moved is None:
            return Finding(UNKNOWN, f"{observation.detail}, and its counters cannot be compared")
        self._timeouts += 1
        if self._timeouts >= HANG_TIMEOUTS:
            return Finding(HUNG, f"{observation.detail}, {self._timeouts} times in a row, and no counter moved")
        return Finding(UNKNOWN, f"{observation.detail}, and no counter moved: once more, and it hangs", pending=True)

    def _silence(self, detail: str) -> Finding:
        self._silences += 1
        if self._silences >= HANG_SILENCES:
            return Finding(HUNG, f"{detail}, {self._silences} times in a row, and /metrics does not answer either")
        return Finding(UNKNOWN, f"{detail}, and /metrics does not answer either", pending=True)

    def _progress(self, samples: tuple[metrics.Sample, ...]) -> bool | None:
        """Whether the engine has worked since the counters were first read; None where counters are missing."""
        seen = [*([self._last] if self._last else []), *samples]
        if samples:
            self._last = samples[-1]
        steps = [metrics.progress(earlier, later) for earlier, later in pairwise(seen)]
        if True in steps:
            return True
        return None if not steps or None in steps else False


def of_unit(properties: dict[str, str] | None, attempt: int, *, declared: bool = False) -> Finding | None:
    """The verdict from systemd alone; None where a probe must decide: the unit runs, or systemd does not answer.

    `properties` are those of systemd.show() (wait.PROPERTIES), `attempt` is the number of starts without success.
    `declared`: the inventory has the instance, and it was started before. If its unit is missing, a person or another
    program has deleted the unit.
    """
    if properties is None or properties["ActiveState"] in ("active", "reloading", "refreshing"):
        return None
    state, text = judge(properties, attempt)
    if declared and (properties["ActiveState"], properties["LoadState"]) == ("inactive", "not-found"):
        return Finding(DEAD, text)
    if properties["ActiveState"] in ("inactive", "deactivating") and properties.get("Job", "0") in ("", "0"):
        return Finding(STOPPED, text)
    return Finding(STARTING if state == "loading" else DEAD, text)
