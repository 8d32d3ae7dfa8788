# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The counters of progress in /metrics."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.engine.adapters.vllm import ADAPTER
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import metrics
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe.metrics import Sample

from ...http_engine import METRICS


def sample(generation: float = 12, cache: float = 0.25, start: str = "1.7e+09") -> Sample:
    found = metrics.parse(METRICS.replace("1.7e+09", start).format(generation=generation, cache=cache), ADAPTER.metrics)
    assert found is not None
    return found


def test_a_sample_has_the_counters_and_the_start_of_the_process() -> None:
    found = sample()
    assert dict(found.values) == {
        "vllm:generation_tokens_total": 12,
        "vllm:prompt_tokens_total": 300,
        "vllm:kv_cache_usage_perc": 0.25,
    }
    assert found.started == 1.7e9


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("vllm:prompt_tokens_total 5", 5),
        ('vllm:prompt_tokens_total{model_name="a b} c",engine="0"} 5.0', 5),
        ('vllm:prompt_tokens_total{model_name="a\\"} 9"}\t5e0', 5),
        ("vllm:prompt_tokens_total 5 1767225600000", 5),
        # Two ranks of data parallelism.
        ('vllm:prompt_tokens_total{engine="0"} 2\nvllm:prompt_tokens_total{engine="1"} 3', 5),
        # The name of another metric begins with the name of the counter.
        ("vllm:prompt_tokens_total 5\nvllm:prompt_tokens_total_created 1.7e9", 5),
        ("vllm:prompt_tokens_total 5\nvllm:prompt_tokens_total NaN\nvllm:prompt_tokens_total five", 5),
    ],
)
def test_the_values_of_a_counter_are_summed_over_its_labels(line: str, value: float) -> None:
    assert metrics.parse(line, ADAPTER.metrics) == Sample((("vllm:prompt_tokens_total", value),))


@pytest.mark.parametrize(
    "text", ["", "<html>", "process_start_time_seconds 5", "sglang:gen_throughput 3", "\0", "{} 1"]
)
def test_a_text_without_counters_of_progress_gives_no_sample(text: str) -> None:
    assert metrics.parse(text, ADAPTER.metrics) is None


def test_requests_in_flight_are_those_that_run_or_wait() -> None:
    text = 'vllm:num_requests_running{engine="0"} 2.0\nvllm:num_requests_running{engine="1"} 1.0\n'
    assert metrics.in_flight(text, ADAPTER.metrics) is None
    assert metrics.in_flight(text + 'vllm:num_requests_waiting{engine="0"} 4.0\n', ADAPTER.metrics) == 7


def test_a_counter_that_changes_is_progress() -> None:
    assert metrics.progress(sample(), sample()) is False
    assert metrics.progress(sample(), sample(generation=13)) is True
    # A lone long prefill changes only the usage of the cache.
    assert metrics.progress(sample(), sample(cache=0.3)) is True
    # Another process counts anew.
    assert metrics.progress(sample(), sample(generation=0, start="1.8e9")) is None


@given(st.text(), st.integers(0, 400), st.integers(0, 400))
def test_mangled_metrics_are_no_error(noise: str, start: int, end: int) -> None:
    """Metrics that are cut, or have other text in the middle, give a sample or None, and never an error."""
    text = METRICS.format(generation=1, cache=0)
    for mangled in (noise, text[:start] + noise + text[end:]):
        found = metrics.parse(mangled, ADAPTER.metrics)
        assert found is None or metrics.progress(found, found) is False
