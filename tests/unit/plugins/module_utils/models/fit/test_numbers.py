# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of fit/weights.py, fit/cache.py and fit/overhead.py: the numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import ModelFacts
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit import cache, overhead, weights
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.devices import (
    Device,
    hypothetical,
    processors,
)
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.flags import Flags

GIB = 1 << 30
Model = Callable[..., ModelFacts]


def of(name: str) -> Device:
    return hypothetical(name)[0]


def per_gpu(facts: ModelFacts, device: str = "H100-80GB", dtype: str = "bfloat16", **flags: Any) -> int:
    assert facts.weights
    return weights.bytes_per_gpu(facts.weights, facts.config, Flags(**flags), of(device), dtype)


def layout(
    facts: ModelFacts, batch: int = 8192, dtype: str = "bfloat16", on_cpu: bool = False, **flags: Any
) -> cache.Cache:
    found = cache.layout(facts.config, Flags(**flags), dtype, batch, on_cpu)
    assert found
    return found


@pytest.mark.parametrize(
    ("layers", "count", "expected"),
    [(80, 1, [80]), (80, 3, [26, 28, 26]), (61, 4, [15, 15, 16, 15]), (10, 4, [2, 3, 3, 2]), (3, 3, [1, 1, 1])],
)
def test_layers_are_dealt_out_as_the_engine_does(layers: int, count: int, expected: list[int]) -> None:
    found = weights.stages(layers, count)
    assert sum(found) == layers
    if layers % count == 0:
        assert found == expected
    # The first and the last stage hold embedding and head, and get no more than others.
    assert max(found) - min(found) <= 1
    assert found[-1] == layers // count


def test_weights_are_divided_over_ranks(model: Model) -> None:
    facts = model("llama-3-70b")
    assert facts.weights
    whole = per_gpu(facts)
    assert whole == facts.weights.bytes
    # Only norms are held by each rank: 160 vectors and one more.
    norms = 161 * 8192 * 2
    assert per_gpu(facts, tensor_parallel_size=4) == pytest.approx((whole - norms) / 4 + norms, rel=1e-9)
    # Beyond as many ranks as KV heads, keys' and values' projections are repeated.
    kv = facts.weights.parts.kv_projections
    assert per_gpu(facts, tensor_parallel_size=16) == pytest.approx(
        (whole - norms - kv) / 16 + kv / 8 + norms, rel=1e-9
    )


def test_layers_are_divided_over_stages(model: Model) -> None:
    facts = model("llama-3-70b")
    assert facts.weights
    layer, table = facts.weights.parts.layers[0], facts.weights.parts.embedding
    # 26, 27 and 27 layers; the first stage has the embedding, the last the head.
    assert per_gpu(facts, pipeline_parallel_size=3) in range(27 * layer, 27 * layer + table + 20000)
    assert per_gpu(facts, pipeline_parallel_size=2) == pytest.approx(40 * layer + table, abs=20000)


def test_experts_are_divided_over_data_parallel_ranks_too(model: Model) -> None:
    facts = model("deepseek-v3")
    assert facts.weights
    parts = facts.weights.parts
    found = per_gpu(facts, data_parallel_size=8, enable_expert_parallel=True)
    assert found == pytest.approx(parts.total - parts.experts * 7 / 8, rel=1e-6)


def test_latent_projections_are_held_whole(model: Model) -> None:
    facts = model("deepseek-v3")
    assert facts.weights
    eighth = facts.weights.bytes / 8
    # 61 layers of (1536 + 576) x 7168 bytes, and routers: 0.96 GiB of which 7/8 are not shared.
    assert per_gpu(facts, tensor_parallel_size=8) - eighth == pytest.approx(0.94 * GIB, rel=0.05)


def test_weights_that_are_not_quantized_take_the_dtype_of_the_engine(model: Model) -> None:
    facts = model("llama-3-8b")
    assert per_gpu(facts, dtype="float32") == 2 * per_gpu(facts, dtype="bfloat16")
    assert per_gpu(model("llama-3-8b", torch_dtype="float32")) == per_gpu(facts)
    assert per_gpu(model("qwen3-8b-fp8"), dtype="float32") == per_gpu(model("qwen3-8b-fp8"))
    # Quantized while loaded: 8 of 16 bits in the layers, embedding and head as they are.
    assert facts.weights
    parts = facts.weights.parts
    assert per_gpu(facts, quantization="fp8") == pytest.approx(parts.total - sum(parts.layers) / 2, rel=1e-6)


def test_mxfp4_experts_are_filled_up_but_on_hopper(model: Model) -> None:
    facts = model("gpt-oss-120b")
    assert facts.weights
    assert per_gpu(facts) == facts.weights.bytes
    grown = facts.weights.parts.experts * (3072 / 2880 * 2944 / 2880 - 1)
    for name in ("B200", "A100-80GB", "RTX-4090"):
        assert per_gpu(facts, name) == pytest.approx(facts.weights.bytes + grown, rel=1e-6)


def test_some_weights_may_be_in_the_memory_of_the_host(model: Model) -> None:
    facts = model("llama-3-8b")
    assert per_gpu(facts, cpu_offload_gb=4) == per_gpu(facts) - 4 * GIB
    assert per_gpu(facts, cpu_offload_gb=400) == 0


@pytest.mark.parametrize(
    ("name", "flags", "expected"),
    [
        # 2 x 8 heads x 128 x 2 bytes in each of 80 layers: 320 KiB.
        ("llama-3-70b", {}, 320 * 1024),
        ("llama-3-70b", {"tensor_parallel_size": 8}, 40 * 1024),
        ("llama-3-70b", {"tensor_parallel_size": 16}, 40 * 1024),
        ("llama-3-70b", {"kv_cache_dtype": "fp8"}, 160 * 1024),
        ("llama-3-70b", {"pipeline_parallel_size": 2}, 160 * 1024),
        ("llama-3-8b", {}, 128 * 1024),
        ("mixtral-8x7b", {"tensor_parallel_size": 2}, 64 * 1024),
        ("qwen3-8b", {}, 144 * 1024),
        ("qwen3-30b-a3b", {}, 96 * 1024),
        ("qwen2.5-7b-gptq-int4", {}, 56 * 1024),
        # 61 x (512 + 64) x 2 bytes, on each GPU the same.
        ("deepseek-v3", {}, 70272),
        ("deepseek-v3", {"tensor_parallel_size": 8}, 70272),
        ("deepseek-v3", {"kv_cache_dtype": "fp8"}, 35136),
    ],
)
def test_kv_cache_of_a_token(name: str, flags: dict[str, Any], expected: int, model: Model) -> None:
    found = layout(model(name), **flags)
    assert found.block_bytes == expected * found.block_tokens


def test_the_engine_says_the_same_of_one_request(model: Model) -> None:
    """What engines printed: "To serve at least one request with the models's max seq len (32768), (4.50 GiB KV cache is
    needed", of Qwen3's 8B."""
    found = layout(model("qwen3-8b"))
    assert found.needed(32768) - found.block_bytes == 4.5 * GIB


def test_the_engine_says_the_same_of_a_sliding_window(model: Model) -> None:
    """Lines of a published log: "Available KV cache memory: 63.43 GiB", "Maximum concurrency for 131,072 tokens per
    request: 12.52x". It does not name the model, but gpt-oss-120b with batches of 8192 tokens gives just these."""
    found = layout(model("gpt-oss-120b"))
    assert (found.full_groups, found.sliding_groups, found.window_tokens) == (1, 1, 127 + 2 * 8192)
    assert round(found.concurrency(int(63.43 * GIB), 131072), 2) == 12.52
    # Without groups, the layers with a window keep everything.
    together = layout(model("gpt-oss-120b"), disable_hybrid_kv_cache_manager=True)
    assert round(together.concurrency(int(63.43 * GIB), 131072), 2) == 7.05


def test_layers_of_two_kinds_form_groups(model: Model) -> None:
    pattern = ["sliding_attention"] * 5 + ["full_attention"]
    facts = model("llama-3-8b", num_hidden_layers=36, layer_types=pattern * 6, sliding_window=1024)
    found = layout(facts, batch=2048)
    assert (found.full_groups, found.sliding_groups) == (1, 5)
    assert found.block_bytes == 6 * 16 * 4096
    assert found.blocks(8192) == 512 + 5 * ((1023 + 2 * 2048 + 15) // 16 + 1)
    # With nearly as many of one kind as of the other, there is one group of each.
    facts = model(
        "llama-3-8b",
        num_hidden_layers=25,
        layer_types=["full_attention"] * 13 + ["sliding_attention"] * 12,
        sliding_window=128,
    )
    assert (layout(facts).full_groups, layout(facts).sliding_groups) == (1, 1)
    assert layout(facts).block_bytes == 13 * 16 * 4096


def test_a_short_request_fills_no_window(model: Model) -> None:
    found = layout(model("llama-3-8b", model_type="mistral", sliding_window=4096), batch=2048)
    assert (found.full_groups, found.sliding_groups) == (0, 1)
    assert found.blocks(100) == 7 + 1
    assert found.blocks(100_000) == (4095 + 2 * 2048 + 15) // 16 + 1


def test_the_cpu_engine_has_larger_blocks(model: Model) -> None:
    assert layout(model("llama-3-8b"), on_cpu=True).block_tokens == 128
    assert layout(model("deepseek-v3"), on_cpu=True).block_tokens == 16
    assert layout(model("llama-3-8b"), on_cpu=True, block_size=32).block_tokens == 32


def test_what_is_kept_may_not_be_known(model: Model) -> None:
    hybrid = model("llama-3-8b", full_attention_interval=4)
    assert cache.layout(hybrid.config, Flags(), "bfloat16", 2048, False) is None
    packed = Flags(kv_cache_dtype="turboquant_4bit_nc")
    assert cache.layout(model("llama-3-8b").config, packed, "bfloat16", 2048, False) is None


@given(limit=st.integers(0, 10**6), threshold=st.integers(-5, 10**6))
def test_finds_the_largest_that_fits(limit: int, threshold: int) -> None:
    assert cache.largest(lambda number: number <= threshold, limit) == max(0, min(limit, threshold))


@pytest.mark.parametrize(
    ("device", "flags", "length", "expected"),
    [
        ("H100-80GB", {}, 8192, overhead.Batch(8192, 1024)),
        ("A100-80GB", {}, 8192, overhead.Batch(2048, 256)),
        ("B200", {}, 8192, overhead.Batch(16384, 1024)),
        ("L4", {}, 8192, overhead.Batch(2048, 256)),
        ("L4", {"enable_chunked_prefill": False}, 8192, overhead.Batch(8192, 256)),
        ("L4", {"max_num_seqs": 4}, 128, overhead.Batch(512, 4)),
        ("L4", {"max_num_batched_tokens": 100}, 8192, overhead.Batch(100, 100)),
    ],
)
def test_batches_are_those_of_the_engine(
    device: str, flags: dict[str, Any], length: int, expected: overhead.Batch
) -> None:
    assert overhead.batch(Flags(**flags), of(device), length) == expected


def test_batches_of_the_cpu_engine() -> None:
    assert overhead.batch(Flags(tensor_parallel_size=2), processors(None)[0], 8192) == overhead.Batch(4096, 256)


def test_the_rest_is_of_a_likely_size(model: Model) -> None:
    """Operators report 2 to 6 GiB for all but weights and cache."""
    for name in ("llama-3-8b", "llama-3.1-70b", "gpt-oss-120b", "deepseek-v3"):
        for device in ("L4", "A100-80GB", "H200", "B200"):
            config, flags = model(name).config, Flags(tensor_parallel_size=8)
            batch = overhead.batch(flags, of(device), config.max_length or 1)
            found = overhead.overhead(config, flags, of(device), "bfloat16", batch) / GIB
            assert 2 <= found <= 6.5, (name, device)
            eager = overhead.overhead(
                config, Flags(tensor_parallel_size=8, enforce_eager=True), of(device), "bfloat16", batch
            )
            assert eager / GIB == pytest.approx(found - 1)
