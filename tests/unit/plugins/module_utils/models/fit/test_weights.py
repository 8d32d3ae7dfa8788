# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much of the weights each GPU holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import ModelFacts
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit import weights
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.devices import hypothetical
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.flags import Flags

GIB = 1 << 30
Model = Callable[..., ModelFacts]


def per_gpu(facts: ModelFacts, device: str = "H100-80GB", dtype: str = "bfloat16", **flags: Any) -> int:
    assert facts.weights
    return weights.bytes_per_gpu(facts.weights, facts.config, Flags(**flags), hypothetical(device)[0], dtype)


@pytest.mark.parametrize(
    ("layers", "count", "expected"),
    [(80, 1, [80]), (80, 3, [27, 27, 26]), (61, 4, [15, 15, 16, 15]), (10, 4, [2, 3, 3, 2]), (3, 3, [1, 1, 1])],
)
def test_layers_are_distributed_as_by_the_engine(layers: int, count: int, expected: list[int]) -> None:
    found = weights.stages(layers, count)
    assert sum(found) == layers and found == expected
    # The last stage has the head, and gets no more layers than others.
    assert max(found) - min(found) <= 1
    assert found[-1] == layers // count


def test_weights_are_divided_over_ranks(model: Model) -> None:
    facts = model("llama-3-70b")
    assert facts.weights
    whole = per_gpu(facts)
    assert whole == facts.weights.bytes
    # Each rank has all norms: 160 vectors in the layers, and one after the layers.
    norms = 161 * 8192 * 2
    assert per_gpu(facts, tensor_parallel_size=4) == pytest.approx((whole - norms) / 4 + norms, rel=1e-9)
    # With more ranks than the 8 KV heads, the projections of keys and values are repeated.
    kv = facts.weights.parts.kv_projections
    assert per_gpu(facts, tensor_parallel_size=16) == pytest.approx(
        (whole - norms - kv) / 16 + kv / 8 + norms, rel=1e-9
    )


def test_layers_are_divided_over_stages(model: Model) -> None:
    facts = model("llama-3-70b")
    assert facts.weights
    layer, table = facts.weights.parts.layers[0], facts.weights.parts.embedding
    # 27, 27 and 26 layers. The first stage has the embedding, the last stage has the head.
    assert per_gpu(facts, pipeline_parallel_size=3) in range(27 * layer, 27 * layer + table + 20000)
    assert per_gpu(facts, pipeline_parallel_size=2) == pytest.approx(40 * layer + table, abs=20000)


def test_experts_are_divided_over_data_parallel_ranks_too(model: Model) -> None:
    facts = model("deepseek-v3")
    assert facts.weights
    parts = facts.weights.parts
    found = per_gpu(facts, data_parallel_size=8, enable_expert_parallel=True)
    assert found == pytest.approx(parts.total - parts.experts * 7 / 8, rel=1e-6)


def test_each_gpu_has_all_projections_of_latent_attention(model: Model) -> None:
    facts = model("deepseek-v3")
    assert facts.weights
    eighth = facts.weights.bytes / 8
    # Each GPU has all of these: 61 layers of (1536 + 576) x 7168 bytes, and routers: 1.06 GiB. 1/8 is in `eighth`.
    assert per_gpu(facts, tensor_parallel_size=8) - eighth == pytest.approx(0.94 * GIB, rel=0.05)


def test_weights_that_are_not_quantized_take_the_dtype_of_the_engine(model: Model) -> None:
    facts = model("llama-3-8b")
    assert per_gpu(facts, dtype="float32") == 2 * per_gpu(facts, dtype="bfloat16")
    assert per_gpu(model("llama-3-8b", torch_dtype="float32")) == per_gpu(facts)
    assert per_gpu(model("qwen3-8b-fp8"), dtype="float32") == per_gpu(model("qwen3-8b-fp8"))
    # Quantization while loading halves the layers. The embedding and the head keep their size.
    assert facts.weights
    parts = facts.weights.parts
    assert per_gpu(facts, quantization="fp8") == pytest.approx(parts.total - sum(parts.layers) / 2, rel=1e-6)


def test_mxfp4_experts_are_padded_except_on_hopper(model: Model) -> None:
    facts = model("gpt-oss-120b")
    assert facts.weights
    assert per_gpu(facts) == facts.weights.bytes
    grown = facts.weights.parts.experts * (3072 / 2880 * 2944 / 2880 - 1)
    for name in ("B200", "A100-80GB", "RTX-4090"):
        assert per_gpu(facts, name) == pytest.approx(facts.weights.bytes + grown, rel=1e-6)


def test_cpu_offload_gb_moves_weights_to_the_host(model: Model) -> None:
    facts = model("llama-3-8b")
    assert per_gpu(facts, cpu_offload_gb=4) == per_gpu(facts) - 4 * GIB
    assert per_gpu(facts, cpu_offload_gb=400) == 0
