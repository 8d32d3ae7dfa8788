# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup of engines by name, and their metrics of throughput."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine import adapters


@pytest.mark.parametrize("name", sorted(adapters.ENGINES))
def test_every_engine_is_found_by_its_name(name: str) -> None:
    assert adapters.get(name).name == name


def test_a_model_without_an_engine_gets_the_default() -> None:
    assert adapters.get() is adapters.get("vllm")


def test_an_unknown_engine_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'sglung' is no engine: use one of .*vllm"):
        adapters.get("sglung")


@pytest.mark.parametrize("name", sorted(adapters.ENGINES))
def test_every_metric_of_throughput_has_a_name(name: str) -> None:
    metrics = adapters.get(name).metrics
    assert len(metrics.of_throughput) == 4 and "" not in metrics.of_throughput
    assert metrics.tokens_cached not in metrics.of_throughput, "an engine without a cache has a throughput, too"
    assert metrics.progress and metrics.in_flight
