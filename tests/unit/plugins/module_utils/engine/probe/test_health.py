# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""From observations to verdicts: which observations condemn an engine, and which do not."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe.health import (
    HANG_SILENCES,
    History,
    of_unit,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe.metrics import Sample
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe.observation import Observation, Seen

TOKEN = Observation(Seen.TOKEN, "answered", latency_ms=12)


def nothing(*values: float, started: float = 1) -> Observation:
    """No token in time. `values`: the counter of tokens at each time that the probe read the metrics."""
    samples = tuple(Sample((("vllm:generation_tokens_total", value),), started) for value in values)
    return Observation(Seen.NOTHING, "no token within 10 s", samples=samples)


SILENT = Observation(Seen.NOTHING, "no token within 10 s", silent=True)
BLIND = Observation(Seen.NOTHING, "no token within 10 s")


def verdicts(*observations: Observation, verdict: str = "unknown") -> list[str]:
    history = History(verdict)
    return [history.judge(observation).verdict for observation in observations]


def test_an_engine_that_makes_a_token_is_healthy() -> None:
    finding = History().judge(TOKEN)
    assert (finding.verdict, finding.latency_ms, finding.pending) == ("healthy", 12, False)


def test_two_time_outs_without_progress_are_a_hang() -> None:
    history = History()
    first = history.judge(nothing(5, 5))
    assert (first.verdict, first.pending) == ("unknown", True)
    assert history.judge(nothing(5, 5)).verdict == "hung"


def test_progress_is_no_hang_however_long_it_takes() -> None:
    assert verdicts(*(nothing(step, step + 1) for step in range(20))) == ["busy"] * 20
    # A step that takes longer than a probe shows progress only from one probe to the next.
    assert verdicts(nothing(1, 1), nothing(2, 2), nothing(3, 3)) == ["unknown", "busy", "busy"]


def test_only_time_outs_in_a_row_are_a_hang() -> None:
    assert verdicts(nothing(5, 5), TOKEN, nothing(5, 5), TOKEN) == ["unknown", "healthy", "unknown", "healthy"]
    assert verdicts(nothing(5, 5), nothing(6, 7), nothing(7, 7)) == ["unknown", "busy", "unknown"]


def test_a_failed_scrape_is_no_hang() -> None:
    assert verdicts(*[BLIND] * 10) == ["unknown"] * 10
    # A probe with a single sample is compared with the sample of the next probe.
    assert verdicts(nothing(5), nothing(5), nothing(5)) == ["unknown", "unknown", "hung"]


def test_counters_of_another_process_are_no_hang() -> None:
    observations = [nothing(5, started=start) for start in range(5)]
    assert verdicts(*observations) == ["unknown"] * 5


def test_silence_is_a_hang_after_a_while() -> None:
    """A paused container has no counters to compare."""
    assert verdicts(*[SILENT] * HANG_SILENCES) == ["unknown"] * (HANG_SILENCES - 1) + ["hung"]
    assert verdicts(SILENT, SILENT, BLIND, SILENT, SILENT) == ["unknown"] * 5


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [(Seen.FULL, "busy"), (Seen.WRONG, "wrong"), (Seen.REFUSED, "dead"), (Seen.UNCLEAR, "unknown")],
)
def test_each_other_observation_has_its_verdict(seen: Seen, verdict: str) -> None:
    assert verdicts(Observation(seen, "")) == [verdict]


ERROR = Observation(Seen.ERROR, "HTTP 500")


def test_a_single_http_error_condemns_no_engine() -> None:
    """An engine under load that failed one request serves hundreds of others."""
    first = History().judge(ERROR)
    assert (first.verdict, first.pending) == ("unknown", True)
    assert verdicts(ERROR, ERROR) == ["unknown", "wrong"]
    for between in (TOKEN, Observation(Seen.FULL, ""), SILENT):
        assert verdicts(ERROR, between, ERROR)[-1] == "unknown"
    assert verdicts(ERROR, verdict="wrong") == ["wrong"]


@pytest.mark.parametrize("condemned", ["hung", "dead", "wrong"])
def test_a_condemned_engine_stays_condemned_until_there_is_evidence(condemned: str) -> None:
    """A scrape that failed must not end the verdict `hung`."""
    assert verdicts(BLIND, SILENT, nothing(1, 1), verdict=condemned) == [condemned] * 3
    assert verdicts(BLIND, nothing(1, 2), BLIND, verdict=condemned) == [condemned, "busy", "unknown"]
    assert verdicts(TOKEN, BLIND, verdict=condemned) == ["healthy", "unknown"]


def unit(active: str, sub: str = "", restarts: int = 0, **more: str) -> dict[str, str]:
    properties = {"LoadState": "loaded", "ActiveState": active, "SubState": sub, "NRestarts": str(restarts), "Job": ""}
    return {**properties, "StatusText": "", "Result": "success", **more}


def test_a_deleted_unit_is_dead_and_not_stopped() -> None:
    gone = unit("inactive", LoadState="not-found")
    finding = of_unit(gone, 0, declared=True)
    assert finding and finding.verdict == "dead"
    for stopped in (unit("inactive"), unit("deactivating", LoadState="not-found")):
        finding = of_unit(stopped, 0, declared=True)
        assert finding and finding.verdict == "stopped"


@pytest.mark.parametrize(
    ("properties", "attempt", "verdict"),
    [
        (unit("active", "running"), 0, None),
        (None, 0, None),
        (unit("activating", "start", StatusText="loading tiny-a"), 1, "starting"),
        # The engine served, died, and loads again.
        (unit("activating", "auto-restart"), 0, "starting"),
        (unit("activating", "start", restarts=1), 1, "starting"),
        # The engine's starts fail, one after the other.
        (unit("activating", "start", restarts=3), 4, "dead"),
        (unit("failed", Result="start-limit-hit"), 5, "dead"),
        # The engine was stopped on purpose.
        (unit("inactive"), 0, "stopped"),
        (unit("deactivating", "stop-sigterm"), 0, "stopped"),
        # The instance is being removed, or was never started.
        (unit("inactive", LoadState="not-found"), 0, "stopped"),
        # A restart on purpose, and a start that waits for Docker.
        (unit("deactivating", "stop-sigterm", Job="7"), 0, "starting"),
        (unit("inactive", Job="7"), 0, "starting"),
    ],
)
def test_the_state_of_a_unit_gives_a_verdict(
    properties: dict[str, str] | None, attempt: int, verdict: str | None
) -> None:
    finding = of_unit(properties, attempt)
    assert (finding.verdict if finding else None) == verdict
