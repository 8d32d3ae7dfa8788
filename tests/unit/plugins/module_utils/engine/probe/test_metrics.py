# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What /metrics tells of progress, and what it does not."""

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


def test_a_sample() -> None:
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
        # Another metric whose name only begins like it.
        ("vllm:prompt_tokens_total 5\nvllm:prompt_tokens_total_created 1.7e9", 5),
        ("vllm:prompt_tokens_total 5\nvllm:prompt_tokens_total NaN\nvllm:prompt_tokens_total five", 5),
    ],
)
def test_lines(line: str, value: float) -> None:
    assert metrics.parse(line, ADAPTER.metrics) == Sample((("vllm:prompt_tokens_total", value),))


@pytest.mark.parametrize(
    "text", ["", "<html>", "process_start_time_seconds 5", "sglang:gen_throughput 3", "\0", "{} 1"]
)
def test_nothing_that_tells_of_progress(text: str) -> None:
    assert metrics.parse(text, ADAPTER.metrics) is None


def test_progress() -> None:
    assert metrics.progress(sample(), sample()) is False
    assert metrics.progress(sample(), sample(generation=13)) is True
    # A lone long prefill moves only this.
    assert metrics.progress(sample(), sample(cache=0.3)) is True
    # Another process counts anew.
    assert metrics.progress(sample(), sample(generation=0, start="1.8e9")) is None


@given(st.text(), st.integers(0, 400), st.integers(0, 400))
def test_mangled_metrics(noise: str, start: int, end: int) -> None:
    """Cut, and with something else in the middle: an answer or none, never an error."""
    text = METRICS.format(generation=1, cache=0)
    for mangled in (noise, text[:start] + noise + text[end:]):
        found = metrics.parse(mangled, ADAPTER.metrics)
        assert found is None or metrics.progress(found, found) is False
