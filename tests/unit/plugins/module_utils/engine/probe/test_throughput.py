# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The throughput of an engine between two samples of its counters, and the comparison of two periods."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.adapters.vllm import ADAPTER
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import throughput
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe.throughput import (
    Counters,
    Throughput,
    between,
    judge,
    parse,
)

from ...http_engine import Engine

SAMPLES = Path(__file__).parents[4] / "monitoring/samples"
METRICS = """\
vllm:generation_tokens_total{engine="0",model_name="tiny-a"} 1100.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="tiny-a"} 100.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="tiny-a"} 7.0
vllm:inter_token_latency_seconds_sum{engine="0",model_name="tiny-a"} 50.0
vllm:inter_token_latency_seconds_count{engine="0",model_name="tiny-a"} 500.0
vllm:prompt_tokens_total{engine="0",model_name="tiny-a"} 9000.0
vllm:prompt_tokens_cached_total{engine="0",model_name="tiny-a"} 6000.0
process_start_time_seconds 1.7e+09
"""
COUNTERS = Counters("tiny-a", at=100.0, started=1.7e9, tokens=1000.0, seconds=50.0, work=4100.0)
LATER = Counters("tiny-a", at=110.0, started=1.7e9, tokens=1400.0, seconds=60.0, work=4700.0)
BEFORE = Throughput("tiny-a", tokens=400, speed=40.0, concurrency=1.0, work=60.0)


def test_the_counters_in_the_metrics_are_summed_over_engines() -> None:
    assert parse(METRICS, ADAPTER.metrics, "tiny-a", 100.0) == COUNTERS
    # Two ranks of data parallelism.
    both = METRICS + METRICS.replace('engine="0"', 'engine="1"').replace("process_start", "another")
    assert parse(both, ADAPTER.metrics, "tiny-a", 100.0) == replace(COUNTERS, tokens=2000.0, seconds=100.0, work=8200.0)


@pytest.mark.parametrize("name", ["generation_tokens_total", "first_token_seconds_count", "latency_seconds_sum"])
def test_without_one_of_the_counters_there_is_no_sample(name: str) -> None:
    assert parse(METRICS.replace(name, f"{name}_v2"), ADAPTER.metrics, "tiny-a", 100.0) is None


@pytest.mark.parametrize("scrape", sorted(SAMPLES.glob("vllm-*.txt")), ids=lambda path: path.stem)
def test_recorded_metrics_have_all_counters(scrape: Path) -> None:
    names = {line.partition("{")[0].partition(" ")[0] for line in METRICS.splitlines()}
    assert names <= set(scrape.read_text().split())


def test_without_a_cache_all_prompt_tokens_count_as_work() -> None:
    found = parse(METRICS.replace("prompt_tokens_cached", "x"), ADAPTER.metrics, "tiny-a", 100.0)
    assert found == replace(COUNTERS, work=10100.0)


def test_two_samples_give_a_throughput() -> None:
    assert between(COUNTERS, LATER) == BEFORE
    assert between(COUNTERS, replace(COUNTERS, at=110.0)) == Throughput("tiny-a", 0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("first", "last"),
    [
        (None, LATER),
        (COUNTERS, None),
        (COUNTERS, replace(LATER, started=1.8e9)),
        (COUNTERS, replace(LATER, model="tiny-b")),
        # The clock is behind that of the first sample, as after a boot.
        (COUNTERS, replace(LATER, at=5.0)),
        # Counters that fell are those of another process.
        (COUNTERS, replace(LATER, tokens=10.0)),
    ],
)
def test_samples_that_do_not_belong_together_give_no_throughput(first: Counters | None, last: Counters | None) -> None:
    assert between(first, last) is None


def test_a_speed_at_the_limit_is_not_too_slow() -> None:
    slow, words = judge(BEFORE, Throughput("tiny-a", tokens=900, speed=10.0, concurrency=1.5, work=50.0), 0.25)
    assert not slow
    assert words == (
        "under its clients' load, a request gets 10.0 tokens/s (900 counted, 1.5 requests at once),"
        " 40.0 before (400 counted, 1.0 at once)"
    )


def test_a_speed_below_the_limit_is_too_slow() -> None:
    slow, words = judge(BEFORE, Throughput("tiny-a", tokens=900, speed=9.9, concurrency=1.5, work=90.0), 0.25)
    assert slow
    assert words == (
        "under its clients' load, a request gets 9.9 tokens/s (900 counted, 1.5 requests at once),"
        " 40.0 before (400 counted, 1.0 at once), and the engine has not much more work than before:"
        " 90 tokens/s read and made for all requests, 60 before"
    )


@pytest.mark.parametrize(
    ("before", "now", "why"),
    [
        (
            BEFORE,
            Throughput("tiny-a", 900, 1.0, 1.5, 91.0),
            "the engine has more work: 91 tokens/s read and made for all requests, 60",
        ),
        (BEFORE, Throughput("tiny-b", 900, 1.0, 1.5, 10.0), "before, it served tiny-a"),
        (BEFORE, Throughput("tiny-a", 199, 1.0, 1.5, 10.0), "199 tokens were counted, 400 before, but 200 are needed"),
        (replace(BEFORE, tokens=7), Throughput("tiny-a", 900, 1.0, 1.5, 10.0), "900 tokens were counted, 7 before"),
        (None, Throughput("tiny-a", 900, 1.0, 1.5, 10.0), "its counters are not known for the time before"),
        (BEFORE, None, "its counters are not known for this time"),
    ],
)
def test_periods_that_cannot_be_compared_are_not_judged(
    before: Throughput | None, now: Throughput | None, why: str
) -> None:
    slow, words = judge(before, now, 0.5)
    assert not slow and why in words


@pytest.fixture
def engine() -> Iterator[Engine]:
    found = Engine()
    found.metrics = METRICS.replace("{", "{{").replace("}", "}}")
    yield found
    found.close()


def test_the_counters_of_the_active_release_are_read(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = SimpleNamespace(
        model="tiny-a", address="127.0.0.1", port=engine.port, served_names=["main"], adapter=ADAPTER, lora={}
    )
    monkeypatch.setattr(throughput.releases, "active_number", lambda paths, name: 1)
    monkeypatch.setattr(throughput.releases, "load", lambda paths, name, number: release)
    found = throughput.read(Paths(tmp_path), "main")
    assert found is not None and replace(found, at=100.0) == COUNTERS
    engine.close()
    assert throughput.read(Paths(tmp_path), "main") is None


def test_an_instance_that_has_not_run_yet_has_no_counters(tmp_path: Path) -> None:
    assert throughput.read(Paths(tmp_path), "main") is None
