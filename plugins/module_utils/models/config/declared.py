# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Completes a config.json with the values that the model's class declares. Private to the collection.

The engine reads a configuration through this class: a missing key has the class's value, some keys have a second name,
and missing parts exist with default values. `make catalogue` reads the classes (class_defaults.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .class_defaults import TYPES

TEXT_CONFIGS = ("text_config", "llm_config", "language_config", "thinker_config", "vlm_config")
"""Keys for the configuration of the language part, in models that also read images or sound."""

HOLDERS = ("thinker_config", "vlm_config")
"""Keys of TEXT_CONFIGS for a part that contains the language part. Their classes move no keys into it."""

FLAT = ("num_hidden_layers", "hidden_size")
"""Keys at the top of a configuration without a dictionary for its language part, as in the published Qwen2-VL and
Qwen2.5-VL. Their classes move the keys into such a part."""

KEYS = frozenset(
    {
        *("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_attention_heads", "n_head", "n_heads"),
        *("H_cycles", "L_cycles", "num_layers_per_stack"),
        *("hidden_size", "n_embd", "d_model", "intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"),
        *("head_dim", "attention_head_dim", "hidden_size_per_head", "vocab_size", "tie_word_embeddings"),
        *("n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num", "num_attention_groups"),
        *("multi_query", "new_decoder_architecture", "global_head_dim", "num_global_key_value_heads"),
        *("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length"),
        *("max_target_positions", "max_sequence_length", "max_seq_length", "seq_len"),
        *("original_max_position_embeddings", "sliding_window", "use_sliding_window", "max_window_layers"),
        *("attention_chunk_size", "num_kv_shared_layers", "attention_k_eq_v", "layer_types", "layers_block_type"),
        *("num_experts", "moe_num_experts", "n_routed_experts", "num_local_experts", "moe_intermediate_size"),
        *("num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_topk", "moe_top_k", "moe_k"),
        *("shared_expert_intermediate_size", "n_shared_experts", "first_k_dense_replace", "decoder_sparse_step"),
        *("moe_layer_freq", "interleave_moe_layer_step", "expert_layer_period", "intermediate_size_mlp"),
        *("kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim", "q_lora_rank"),
        *("mamba_d_state", "ssm_state_size", "state_size", "mamba_d_conv", "conv_kernel", "mamba_expand", "expand"),
        *("mamba_n_heads", "mamba_num_heads", "n_mamba_heads", "num_heads", "mamba_d_head", "mamba_head_dim"),
        *("mamba_headdim", "mamba_d_ssm", "n_groups", "mamba_n_groups", "mamba_ngroups", "conv_L_cache"),
        *("linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim"),
        *("linear_conv_kernel_dim", "mamba_ssm_cache_dtype", "model_type"),
        *(
            "head_ratio",
            "depth",
            "embed_dim",
            "encoder_layers",
            "encoder_ffn_dim",
            "mlp_ratio",
            "patch_size",
            "out_hidden_size",
        ),
    }
)
"""The only keys for which class_defaults.py has defaults, also under their second names. `make catalogue` reads this
list."""


def completed(raw: Mapping[str, Any], model_type: str = "") -> dict[str, Any]:
    """A configuration with all defaults, second names and parts of its class.

    `model_type` is the type of a part whose own `model_type` is missing or has no class. It is the name OWNER/KEY of a
    part if the owner's class for this part differs from the engine's class for the part's type. A null value stays
    null.
    """
    given = raw.get("model_type")
    # A part may name a type that has no class: its owner then uses its own class for the part.
    known = TYPES.get(given if isinstance(given, str) else "") or TYPES.get(model_type)
    if "/" in model_type and given in (None, TYPES[model_type].values["model_type"]):
        known = TYPES[model_type]
    if known is None:
        return {key: _part(value) for key, value in raw.items()}
    parts = known.parts
    whole = {**known.values, **raw}
    for name, key in known.names.items():
        # A value under one of two names also gets the other name. Not so head_dim: a class may compute head_dim from
        # another key, whose value must not change.
        if key not in raw and name in raw and name != "head_dim":
            whole[key] = raw[name]
        if key in whole:
            whole[name] = whole[key]
    if model_type and "/" not in model_type:
        whole.setdefault("model_type", model_type)
    for key, value in whole.items():
        if key not in parts:
            whole[key] = _part(value)
    for key, kind in parts.items():
        # A part that is null stays null. A missing part consists of defaults.
        if key not in raw or isinstance(raw[key], dict):
            missing = {**known.missing.get(key, {}), **_flat(key, raw, parts)}
            whole[key] = completed(raw.get(key, missing), kind)
    return whole


def _flat(key: str, raw: Mapping[str, Any], parts: Mapping[str, str]) -> Mapping[str, Any]:
    """The keys of a part whose values are at the top of the configuration. Only a language part has such keys."""
    if key not in TEXT_CONFIGS or key in HOLDERS or not any(name in raw for name in FLAT):
        return {}
    return {name: value for name, value in raw.items() if name not in (*parts, "model_type", "architectures")}


def _part(value: Any) -> Any:
    """A part with its own `model_type`, completed; another value unchanged."""
    return completed(value) if isinstance(value, dict) and "model_type" in value else value


def layer_types(model_type: str | None, layers: int) -> list[str]:
    """The kinds of this number of layers by the type's class; empty if the class has none."""
    pattern = TYPES[model_type].layers if model_type and model_type in TYPES else ()
    return [pattern[index % len(pattern)] for index in range(layers)] if pattern else []


def layer_sizes(model_type: str | None) -> Mapping[str, Mapping[str, int]]:
    """Sizes of heads by kind of layer, for types whose kinds of layers differ."""
    return TYPES[model_type].sizes if model_type and model_type in TYPES else {}
