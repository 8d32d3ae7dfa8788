# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A config.json, read under all names that models have for the same thing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.attention import Attention
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.config import Config, parse
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.quantization import Quantization


def config(raw: dict[str, Any], **more: Any) -> Config:
    """A configuration without problems."""
    found, problems = parse(raw, **more)
    assert problems == []
    return found


BASE = {"model_type": "llama", "num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12, "vocab_size": 99}


def test_a_published_configuration_is_read(published: dict[str, Any]) -> None:
    found = config(published["llama-3.1-70b"]["config"])
    assert found.architectures == ("LlamaForCausalLM",)
    assert (found.layers, found.attention_heads, found.kv_heads, found.head_size) == (80, 64, 8, 128)
    assert (found.hidden_size, found.intermediate_size, found.vocabulary_size) == (8192, 28672, 128256)
    assert (found.max_length, found.default_length) == (131072, 131072)
    assert found.rope and (found.rope.type, found.rope.factor, found.rope.original_max_positions) == ("llama3", 8, 8192)
    assert (found.dtype, found.tied_embeddings, found.quantization, found.mla) == ("bfloat16", False, None, None)


def test_latent_attention_and_experts_are_read(published: dict[str, Any]) -> None:
    found = config(published["deepseek-v3"]["config"])
    assert found.mla and (found.mla.kv_lora_rank, found.mla.qk_rope_head_dim) == (512, 64)
    assert found.experts
    assert (found.experts.count, found.experts.per_token, found.experts.layers) == (256, 8, 58)
    assert (found.experts.intermediate_size, found.experts.shared_intermediate_size) == (2048, 2048)
    assert found.quantization == Quantization("fp8", 8, None, (128, 128))
    # max_position_embeddings already includes the rope's factor of 40.
    assert found.max_length == 163840


def test_experts_that_have_no_size_of_their_own_are_read(published: dict[str, Any]) -> None:
    experts = config(published["mixtral-8x7b"]["config"]).experts
    assert experts and (experts.count, experts.intermediate_size, experts.layers) == (8, 14336, 32)


def test_without_a_dtype_the_dtype_is_unknown(published: dict[str, Any]) -> None:
    assert config(published["gpt-oss-120b"]["config"]).dtype is None


def test_old_names_of_keys_are_read() -> None:
    found = config({"n_layer": 24, "n_head": 16, "n_embd": 1024, "n_positions": 2048, "n_inner": 4096, "n_head_kv": 2})
    assert (found.layers, found.attention_heads, found.hidden_size, found.head_size) == (24, 16, 1024, 64)
    assert (found.max_length, found.intermediate_size, found.kv_heads) == (2048, 4096, 2)


def test_multi_query_models_have_one_kv_head() -> None:
    assert config({**BASE, "multi_query": True}).kv_heads == 1
    assert config({**BASE, "multi_query": True, "new_decoder_architecture": True}).kv_heads == 12


def test_the_language_part_of_a_model_that_also_reads_images_is_read() -> None:
    found = config(
        {
            "architectures": ["ExampleForConditionalGeneration"],
            "dtype": "bfloat16",
            "model_type": "example",
            "text_config": {**BASE, "max_position_embeddings": 4096, "tie_word_embeddings": True},
            "vision_config": {"num_hidden_layers": 40, "hidden_size": 1280, "num_attention_heads": 16},
        }
    )
    assert (found.model_type, found.layers, found.hidden_size, found.modalities) == ("llama", 12, 768, ("vision",))
    assert (found.dtype, found.tied_embeddings) == ("bfloat16", True)


def test_a_window_counts_unless_the_configuration_turns_it_off() -> None:
    window = {**BASE, "sliding_window": 4096, "max_window_layers": 9, "model_type": "qwen2"}
    assert config({**window, "use_sliding_window": True}).attention == Attention(9, 3)
    assert config({**window, "use_sliding_window": False}).attention == Attention(12)
    assert config({**BASE, "sliding_window": None}).attention == Attention(12)


def test_each_layer_must_have_one_entry_of_layer_types() -> None:
    found, problems = parse({**BASE, "layer_types": ["full_attention"] * 5})
    assert found.attention is None
    assert problems == ["names the kinds of 5 layers (layer_types or a key like it), but has 12 layers"]


def test_layers_that_run_in_cycles_count_each_time() -> None:
    """HRM: the engine counts each run of a layer, because each run keeps keys and values of its own."""
    raw = {"model_type": "hrm_text", "num_hidden_layers": 4, "H_cycles": 2, "L_cycles": 3}
    assert parse(raw)[0].layers == 32
    assert parse({**raw, "num_hidden_layers": 32, "num_layers_per_stack": 4})[0].layers == 32


def test_an_absurd_number_of_cycles_leaves_the_layers_unknown() -> None:
    raw = {"model_type": "hrm_text", "num_hidden_layers": 4, "H_cycles": 999, "L_cycles": 3}
    assert parse(raw)[0].layers is None


def test_the_file_of_model_optimizer_is_read() -> None:
    file = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": None}}
    assert config(BASE, quantization_file=file).quantization == Quantization("modelopt", 8)


def test_an_absurd_number_of_layers_is_a_problem() -> None:
    found, problems = parse({**BASE, "num_hidden_layers": 10**11})
    assert found.layers is None
    assert problems == ["has num_hidden_layers: '100000000000', which is not a size"]


def test_each_value_that_is_no_size_is_a_problem() -> None:
    found, problems = parse({**BASE, "num_key_value_heads": "eight", "vocab_size": 1 << 80, "head_dim": True})
    assert (found.vocabulary_size, found.layers) == (None, 12)
    assert [problem.partition(":")[0] for problem in problems] == [
        "has head_dim",
        "has num_key_value_heads",
        "has vocab_size",
    ]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize(
    "raw",
    [
        {"vision_config": {"model_type": ["pixtral"], "hidden_act": {}, "hidden_size": 8, "depth": 2, "mlp_ratio": 4}},
        {"model_type": ["falcon"], "multi_query": True},
        {"model_type": "mamba", "expand": float("inf"), "state_size": 16, "conv_kernel": 4},
        {"block_configs": [{"attention": {"n_heads_in_group": 99}}, 7], "compress_ratios": {}, "is_causal": "no"},
        {"per_layer_config": {"9" * 5000: {"head_dim": 8}}},
    ],
)
def test_values_of_other_types_are_no_exception(raw: dict[str, Any]) -> None:
    found, _problems = parse({**BASE, **raw})
    assert found.hidden_size == 768


@given(data=st.data())
def test_a_mangled_configuration_is_no_exception(data: st.DataObject, published: dict[str, Any]) -> None:
    """Some values of a published configuration are replaced by others of any type."""
    raw = dict(data.draw(st.sampled_from([entry["config"] for entry in published.values()])))
    for key in data.draw(st.lists(st.sampled_from(sorted(raw)), min_size=1, max_size=4)):
        raw[key] = data.draw(values)
    if data.draw(st.booleans()):
        raw["text_config"] = data.draw(values)
    found, problems = parse(raw)
    assert all(isinstance(problem, str) for problem in problems)
    assert found.layers is None or found.layers > 0
