# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of fit/cache.py: how the engine divides its KV cache, and how much of it a request takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import ModelFacts, from_config
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit import cache
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.flags import Flags

GIB = 1 << 30
Model = Callable[..., ModelFacts]


def layout(
    facts: ModelFacts, batch: int = 8192, dtype: str = "bfloat16", on_cpu: bool = False, **flags: Any
) -> cache.Cache:
    found = cache.layout(facts.config, Flags(**flags), dtype, batch, on_cpu)
    assert found
    return found


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
def test_the_kv_cache_of_a_token_depends_on_model_and_flags(
    name: str, flags: dict[str, Any], expected: int, model: Model
) -> None:
    found = layout(model(name), **flags)
    assert found.block_bytes == expected * found.block_tokens


def test_one_request_takes_the_bytes_that_the_engine_printed(model: Model) -> None:
    """Engines with Qwen3 8B printed: "To serve at least one request with the models's max seq len (32768), (4.50 GiB KV
    cache is needed"."""
    found = layout(model("qwen3-8b"))
    assert found.needed(32768) - found.block_bytes == 4.5 * GIB


def test_a_sliding_window_gives_the_concurrency_that_the_engine_printed(model: Model) -> None:
    """Lines of a published log: "Available KV cache memory: 63.43 GiB", "Maximum concurrency for 131,072 tokens per
    request: 12.52x". It does not name the model, but gpt-oss-120b with batches of 8192 tokens gives these values."""
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
    # If one kind has nearly as many layers as the other, each kind is one group.
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


def test_the_cpu_engine_has_larger_blocks_except_for_latent_attention(model: Model) -> None:
    assert layout(model("llama-3-8b"), on_cpu=True).block_tokens == 128
    assert layout(model("deepseek-v3"), on_cpu=True).block_tokens == 16
    assert layout(model("llama-3-8b"), on_cpu=True, block_size=32).block_tokens == 32


def test_without_sizes_of_state_or_values_the_layout_is_unknown(model: Model) -> None:
    hybrid = model("llama-3-8b", full_attention_interval=4)
    assert cache.layout(hybrid.config, Flags(), "bfloat16", 2048, False) is None
    packed = Flags(kv_cache_dtype="turboquant_4bit_nc")
    assert cache.layout(model("llama-3-8b").config, packed, "bfloat16", 2048, False) is None


@given(limit=st.integers(0, 10**6), threshold=st.integers(-5, 10**6))
def test_largest_finds_the_largest_number_that_passes(limit: int, threshold: int) -> None:
    assert cache.largest(lambda number: number <= threshold, limit) == max(0, min(limit, threshold))


def test_the_longest_request_fits_and_a_longer_request_does_not(model: Model) -> None:
    found = layout(model("llama-3-8b"))
    available = 4 * GIB
    longest = found.longest(available, 1 << 20)
    assert found.needed(longest) <= available < found.needed(longest + 1)
    assert found.longest(available, 1000) == 1000
    assert (found.longest(0, 1000), found.concurrency(-1, 1000)) == (0, 0)


def described(**raw: Any) -> ModelFacts:
    """A model of 12 layers, by its configuration alone."""
    usual = {"num_hidden_layers": 12, "hidden_size": 1024, "num_attention_heads": 8, "num_key_value_heads": 4}
    return from_config({**usual, "head_dim": 128, "vocab_size": 1000, "max_position_embeddings": 65536, **raw})


def test_layers_that_work_by_chunks_keep_one_chunk() -> None:
    facts = described(model_type="llama4_text", attention_chunk_size=8192, no_rope_layer_interval=4)
    found = layout(facts)
    assert (found.full_groups, found.sliding_groups, found.window_tokens) == (1, 3, 8191 + 2 * 8192)
    # A chunk is kept, however long the request is: with full attention it would be four times as much.
    assert found.needed(1 << 20) < 0.3 * layout(described(model_type="llama")).needed(1 << 20)


DELTA_NET = {
    "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 3,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
}


def test_each_group_of_layers_with_a_state_takes_one_block_of_a_request() -> None:
    found = layout(described(model_type="unheard_of", **DELTA_NET))
    state = (8192 * 3 + 32 * 128 * 128) * 2
    assert (found.full_groups, found.sliding_groups, found.state_groups) == (1, 0, 3)
    # A block of tokens is as large as a state, in whole blocks of 16 tokens.
    per_token = 2 * 4 * 128 * 2
    assert found.block_bytes == 3 * found.block_tokens * per_token
    assert state <= found.block_tokens * per_token < state + 16 * per_token
    assert found.blocks(found.block_tokens * 5) == 5 + 3
    # Ranks share the state, and a recurrence of 32 bits has twice the bytes.
    shared = layout(described(model_type="unheard_of", **DELTA_NET), tensor_parallel_size=4)
    assert shared.block_bytes < found.block_bytes / 3
    assert (
        layout(described(model_type="unheard_of", **DELTA_NET), mamba_ssm_cache_dtype="float32").block_bytes
        > 1.9 * found.block_bytes
    )


def test_a_model_of_states_alone_takes_the_same_for_every_length() -> None:
    found = layout(from_config({"model_type": "mamba", "hidden_size": 1024, "num_hidden_layers": 12}))
    assert (found.full_groups, found.state_groups) == (0, 1)
    assert found.needed(10) == found.needed(1 << 20) == 2 * 12 * (2048 * 3 + 2048 * 16) * 2


def test_an_empty_state_leaves_the_blocks_of_the_other_layers() -> None:
    kinds = ["conv", "full_attention"] * 6
    mixed = layout(described(model_type="unheard_of", layer_types=kinds, conv_L_cache=1))
    assert (mixed.block_tokens, mixed.block_bytes) == (16, 6 * 16 * 2 * 4 * 128 * 2)
    alone = described(model_type="unheard_of", layer_types=["conv"] * 12, conv_L_cache=1)
    assert cache.layout(alone.config, Flags(), "bfloat16", 8192, False) is None


def test_with_a_state_of_unknown_form_the_layout_is_unknown() -> None:
    facts = described(model_type="unheard_of", layer_types=["linear_attention", "full_attention"] * 6)
    assert cache.layout(facts.config, Flags(), "bfloat16", 8192, False) is None


def test_layers_with_other_heads_have_blocks_of_other_lengths() -> None:
    raw = {
        "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 2,
        "sliding_window": 1024,
        "num_key_value_heads": 16,
        "num_global_key_value_heads": 4,
        "attention_k_eq_v": True,
        "head_dim": 256,
    }
    found = layout(described(model_type="gemma4_text", **raw))
    # 2 x 16 x 256 of a token in layers with a window, 2 x 4 x 512 in those without.
    assert (found.block_tokens, found.sliding_block_tokens) == (32, 16)
    assert found.block_bytes == 2 * 16 * 2 * 16 * 256 * 2
