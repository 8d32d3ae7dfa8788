# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The flags that decide whether a model fits, and how many GPUs an engine computes on."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.models.fit import flags
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.flags import Flags


def test_flags_are_read_as_by_the_engine() -> None:
    found, misfits = flags.read(
        {
            "model": "/models/x",
            "description": "ours",
            "tensor-parallel-size": "2",
            "max-model-len": "32K",
            "kv-cache-memory-bytes": "1.5g",
            "gpu-memory-utilization": 0.5,
            "dtype": "half",
            "enable-expert-parallel": True,
            "quantization": None,
            "trust-remote-code": False,
        }
    )
    assert misfits == []
    assert found == Flags(
        tensor_parallel_size=2,
        max_model_len=32768,
        kv_cache_memory_bytes=1_500_000_000,
        gpu_memory_utilization=0.5,
        dtype="float16",
        enable_expert_parallel=True,
    )
    assert flags.read({"pipeline-parallel-size": "1T"})[0].pipeline_parallel_size == 1
    assert flags.read({"max-model-len": "auto"})[0].max_model_len == flags.AUTO
    assert flags.read({"max-model-len": -1})[0].max_model_len == flags.AUTO
    assert flags.read({"device-memory-utilization": 0.4})[0].gpu_memory_utilization == 0.4


@pytest.mark.parametrize(
    ("text", "number"),
    [("8192", 8192), ("32k", 32000), ("32K", 32768), ("25.6k", 25600), ("1M", 1 << 20), (7, 7), (" 7 ", 7)],
)
def test_a_count_has_the_units_of_the_engine(text: Any, number: int) -> None:
    assert flags.count(text) == number


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "1.5K", "k", "", True, None, [1], "1e3", "8192x", "9" * 400 + "k"])
def test_a_value_that_is_no_count_is_none(text: Any) -> None:
    assert flags.count(text) is None


def test_every_impossible_value_is_a_misfit() -> None:
    found, misfits = flags.read(
        {
            "tensor-parallel-size": 0,
            "gpu-memory-utilization": 92,
            "max-model-len": "long",
            "enforce-eager": "yes",
            "cpu-offload-gb": "much",
            "kv-offloading-size": 10**400,
        }
    )
    assert found == Flags()
    assert [(one.check, one.key) for one in misfits] == [
        ("value", "tensor-parallel-size"),
        ("value", "gpu-memory-utilization"),
        ("value", "max-model-len"),
        ("value", "enforce-eager"),
        ("value", "cpu-offload-gb"),
        ("value", "kv-offloading-size"),
    ]
    assert str(misfits[1]) == "gpu-memory-utilization: 92: must be more than 0 and at most 1"


@given(
    st.dictionaries(
        st.sampled_from([name.replace("_", "-") for name in Flags.__dataclass_fields__]),
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(max_size=6)
        | st.lists(st.integers(), max_size=2),
    )
)
def test_any_value_is_a_flag_or_a_misfit(entry: dict[str, Any]) -> None:
    found, misfits = flags.read(entry)
    assert found.world_size >= 1
    assert 0 < found.gpu_memory_utilization <= 1
    assert {one.key for one in misfits} <= set(entry)


@pytest.mark.parametrize(
    ("entry", "gpus"),
    [
        ({}, 1),
        ({"tensor-parallel-size": 4, "pipeline-parallel-size": "2"}, 8),
        ({"tensor-parallel-size": 2, "prefill-context-parallel-size": 2, "data-parallel-size": 3}, 12),
        ({"tensor-parallel-size": "two", "data-parallel-size": True, "pipeline-parallel-size": 2}, 2),
    ],
)
def test_world_size_is_the_product_of_all_parallel_sizes(entry: dict[str, Any], gpus: int) -> None:
    assert flags.world_size(entry) == gpus
    assert flags.read(entry)[0].world_size == gpus


def test_a_parallel_size_above_any_machine_counts_in_world_size() -> None:
    assert flags.world_size({"tensor-parallel-size": 10**9}) == 10**9


def test_the_default_of_gpu_memory_utilization_is_that_of_the_engine() -> None:
    assert Flags().gpu_memory_utilization == 0.92
