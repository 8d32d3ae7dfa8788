# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host's memory that an engine takes, from weights, flags and variables."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.config import Config
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import ModelFacts
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.weights import Weights
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.devices import Device
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.host import (
    CPU_PROCESS,
    GPU_PROCESS,
    HostMemory,
    estimate,
)

GIB = 1 << 30
GPU = Device("H100", 81559, (9, 0))
CPU = Device("CPU", 64 * 1024, accelerator="cpu")


def facts(gib: float = 16, **config: Any) -> ModelFacts:
    size = round(gib * GIB)
    return ModelFacts(config=Config(**{"dtype": "bfloat16", **config}), weights=Weights(size, size // 2))


def of(
    entry: dict[str, Any], device: Device = GPU, environment: dict[str, str] | None = None, **more: Any
) -> HostMemory:
    return estimate(more.get("facts", facts()), more.get("draft"), entry, device, environment or {}, 16 * GIB)


def test_a_gpu_engine_takes_its_weights_and_a_margin() -> None:
    found = of({})
    assert (found.weights, found.offloaded, found.cache, found.shared) == (16 * GIB, 0, 0, 16 * GIB)
    assert found.least == 16 * GIB
    assert found.needed == pytest.approx(17.6 * GIB + 16 * GIB + 2 * GPU_PROCESS)


def test_each_rank_and_each_api_server_is_a_process() -> None:
    assert of({"tensor-parallel-size": 4}).processes == 5 * GPU_PROCESS
    assert of({"tensor-parallel-size": 2, "data-parallel-size": 2}).processes == 6 * GPU_PROCESS
    assert of({"api-server-count": 3}).processes == 4 * GPU_PROCESS


def test_memory_that_flags_offload_to_the_host_counts() -> None:
    found = of({"kv-offloading-size": 100, "cpu-offload-gb": "10", "tensor-parallel-size": 2})
    assert found.offloaded == 120 * GIB
    assert found.least == 136 * GIB and (found.needed or 0) > 136 * GIB * 1.1


def test_a_model_for_images_has_a_cache_unless_its_size_is_0() -> None:
    seeing = facts(modalities=("vision",))
    assert of({}, facts=seeing).processes - of({}).processes == 8 * GIB
    assert of({"mm-processor-cache-gb": 0}, facts=seeing).processes == of({}).processes


def test_a_draft_counts_and_without_weights_the_need_is_unknown() -> None:
    assert of({}, draft=facts(2)).weights == 18 * GIB
    assert of({}, facts=ModelFacts()).needed is None
    assert of({"kv-offloading-size": 5}, facts=ModelFacts()).least == 5 * GIB
    assert of({}, draft=ModelFacts()).weights is None


def test_on_processors_weights_in_the_wanted_dtype_and_the_cache_count() -> None:
    found = of({"dtype": "float32", "cpu-offload-gb": 5}, CPU, {"VLLM_CPU_KVCACHE_SPACE": "8"})
    assert (found.weights, found.cache, found.offloaded) == (32 * GIB, 8 * GIB, 0)
    assert found.least == 40 * GIB and found.processes == 2 * CPU_PROCESS


def test_without_a_given_size_the_cache_is_the_most_that_the_cpu_engine_takes() -> None:
    found = of({"gpu-memory-utilization": 0.5}, CPU)
    assert found.cache == 16 * GIB and not found.certain
    assert found.least == 16 * GIB
    assert of({"kv-cache-memory-bytes": "2G"}, CPU).cache == 2 * GIB
