# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the memory of a device is divided."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import ModelFacts, from_config
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit import memory
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.devices import (
    Device,
    hypothetical,
    processors,
)
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.flags import Flags
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.overhead import GIB, MIB
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.variables import CPU_CACHE

Model = Callable[..., ModelFacts]


def divided(facts: ModelFacts, device: Device | str, space: str = "", **flags: Any) -> memory.Division:
    found = hypothetical(device)[0] if isinstance(device, str) else device
    environment = {CPU_CACHE: space} if space else {}
    return memory.divide(facts, Flags(**flags), found, environment)


def test_the_cache_gets_what_weights_and_overhead_leave_of_the_budget(model: Model) -> None:
    found = divided(model("llama-3-8b"), "L4", gpu_memory_utilization=0.9)
    assert found.budget == int(23034 * MIB * 0.9)
    assert found.weights and found.overhead
    assert found.available == found.budget - found.weights - found.overhead
    estimate = found.estimate(1)
    assert (estimate.weights_gib, estimate.budget_gib) == (14.96, 20.24)
    assert estimate.kv_cache_gib == round(found.available / GIB, 2)
    assert found.needed and estimate.spare_gib == round((found.available - found.needed) / GIB, 2)
    assert set(estimate.to_dict()) == set(memory.Estimate.__dataclass_fields__)


def test_a_negative_remainder_is_a_cache_of_0(model: Model) -> None:
    found = divided(model("llama-3-70b"), "L4")
    assert found.available is not None and found.available < 0
    estimate = found.estimate(1)
    assert (estimate.kv_cache_gib, estimate.kv_cache_tokens) == (0, 0)
    assert estimate.spare_gib and estimate.spare_gib < -100


def test_max_concurrency_counts_all_data_parallel_ranks(model: Model) -> None:
    division = divided(model("llama-3-8b"), "L40S")
    one, four = division.estimate(1), division.estimate(4)
    assert one.max_concurrency and four.max_concurrency and one.kv_cache_tokens
    assert four.max_concurrency == pytest.approx(4 * one.max_concurrency, rel=0.01)
    assert one.kv_cache_tokens == pytest.approx(8192 * one.max_concurrency, rel=0.01)
    assert four.weights_gib == one.weights_gib


def test_max_model_len_minus_1_is_the_longest_length_that_fits(model: Model) -> None:
    found = divided(model("llama-3.1-70b"), "H100-80GB", tensor_parallel_size=2, max_model_len=-1)
    assert found.length and 16_000 < found.length < 25_000
    assert found.available and found.needed and found.needed <= found.available
    estimate = found.estimate(1)
    assert estimate.max_concurrency and estimate.max_concurrency >= 1
    # A given length stays as it is. If the model's own length fits, -1 means that length.
    assert divided(model("llama-3-8b"), "L40S", max_model_len=100).length == 100
    assert divided(model("llama-3-8b"), "L40S", max_model_len=-1).length == 8192


def test_kv_cache_memory_bytes_replaces_gpu_memory_utilization(model: Model) -> None:
    found = divided(model("llama-3-8b"), "L4", kv_cache_memory_bytes=2 * GIB, gpu_memory_utilization=0.1)
    assert (found.available, found.budget, found.explicit) == (2 * GIB, 23034 * MIB, True)
    assert divided(model("llama-3-8b"), "L4").explicit is False


def test_the_cpu_engine_has_the_cache_of_vllm_cpu_kvcache_space(model: Model) -> None:
    estimate = divided(model("llama-3-8b"), processors(64 * 1024)[0], "4").estimate(1)
    assert (estimate.kv_cache_gib, estimate.max_concurrency) == (4.0, 4.0)
    # With a given cache, the memory of the device does not matter.
    assert divided(model("llama-3-8b"), processors(None)[0], "4").available == 4 * GIB
    # A GPU engine does not read the variable.
    assert divided(model("llama-3-8b"), "L4", "4").explicit is False


def test_without_vllm_cpu_kvcache_space_the_cpu_engine_divides_by_utilization(model: Model) -> None:
    found = divided(model("llama-3-8b"), processors(64 * 1024)[0], gpu_memory_utilization=0.5)
    assert (found.budget, found.explicit) == (32 * GIB, False)


def test_unknown_facts_give_unknown_parts_of_memory(model: Model) -> None:
    assert divided(model("llama-3-8b"), "L4", dtype="fp16") == memory.Division(
        None, None, None, None, None, None, None, None, False
    )
    nameless = divided(model("llama-3-8b"), Device("B400", None))
    assert (nameless.budget, nameless.available, nameless.estimate(1).spare_gib) == (None, None, None)
    assert nameless.weights
    strange = divided(model("llama-3-8b", model_type="unheard_of"), "L4")
    assert (strange.weights, strange.available) == (None, None)
    assert strange.estimate(1).weights_gib is None
    bare = divided(from_config({}), "L4")
    assert (bare.overhead, bare.needed, bare.length) == (None, None, None)
