# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup of engines, and what is made of an adapter's data."""

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
def test_the_metrics_of_the_pace_are_named(name: str) -> None:
    metrics = adapters.get(name).metrics
    assert len(metrics.of_pace) == 4 and "" not in metrics.of_pace
    assert metrics.tokens_cached not in metrics.of_pace, "an engine without a cache has a pace too"
    assert metrics.progress and metrics.in_flight
