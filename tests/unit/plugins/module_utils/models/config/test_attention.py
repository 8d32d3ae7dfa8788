# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many layers of a model keep every token of a request, a window, or a state."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.attention import Attention, attention


def read(text: dict[str, Any], layers: int | None = 12) -> tuple[Attention | None, str]:
    return attention(text, layers, text.get("sliding_window"), text.get("model_type"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ({}, Attention(12)),
        ({"sliding_window": None}, Attention(12)),
        (
            {"sliding_window": 4096, "max_window_layers": 9, "model_type": "qwen2"},
            Attention(9, 3),
        ),
        ({"sliding_window": 4096, "model_type": "mistral"}, Attention(0, 12)),
        ({"sliding_window": 4096, "model_type": "gemma2"}, Attention(6, 6)),
        ({"sliding_window": 512, "sliding_window_pattern": 4, "model_type": "cohere2"}, Attention(3, 9)),
        ({"sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"] * 6}, Attention(6, 6)),
        ({"layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 3}, Attention(3, 0, 0, 9)),
        ({"full_attention_interval": 4}, Attention(3, 0, 0, 9)),
        # How an unknown type uses its window is unknown.
        ({"sliding_window": 4096, "model_type": "unheard_of"}, None),
        ({"hybrid_override_pattern": "M*-M*-M*-ME-"}, Attention(3, 0, 0, 4)),
        ({"layer_types": ["hybrid"] * 12}, Attention(12, 0, 0, 12)),
        ({"layer_types": ["of_a_kind_unheard_of"] * 12}, Attention(0, 0, 12)),
        ({"attn_layer_period": 4, "attn_layer_offset": 2}, Attention(3, 0, 0, 9)),
        ({"attn_type_list": [0, 0, 1] * 4}, Attention(4, 0, 0, 8)),
        ({"sliding_window": 8192, "model_type": "llama4_text"}, Attention(3, 9)),
        ({"sliding_window": 8192, "no_rope_layer_interval": 6}, Attention(2, 10)),
        # The last layers use the keys and values of earlier ones.
        (
            {"sliding_window": 512, "layer_types": ["sliding_attention"] * 12, "num_kv_shared_layers": 4},
            Attention(0, 8),
        ),
        ({"sliding_window": 4096, "model_type": "gemma3_text"}, Attention(2, 10)),
        # Without a window, a sliding layer keeps every token.
        ({"layer_types": ["sliding_attention", "full_attention"] * 6}, Attention(12)),
        ({"sliding_window": 4096, "max_window_layers": 99, "model_type": "qwen3"}, Attention(12)),
        ({"sliding_window": 4096, "max_window_layers": None, "model_type": "qwen3"}, None),
        # Nemotron NAS leaves attention out of some blocks, Nemotron Puzzle has blocks of several types.
        (
            {"block_configs": [{"attention": {"no_op": False}}, {"attention": {"no_op": True}}, {"attention": {}}] * 4},
            Attention(8),
        ),
        ({"block_configs": [{"attention": {"replace_with_linear": True}}, {"attention": {}}] * 6}, Attention(6)),
        (
            {"block_configs": [{"block_type": kind} for kind in ("mamba", "moe", "attention")] * 4},
            Attention(4, 0, 0, 4),
        ),
        ({"block_configs": [{"ffn": {}}] * 12}, Attention(0, 0, 12)),
        ({"mamba_d_state": 128}, None),
        ({"compress_ratios": [4]}, None),
    ],
)
def test_layers_are_counted_by_what_they_keep(text: dict[str, Any], expected: Attention | None) -> None:
    assert read(text) == (expected, "")


def test_each_layer_must_have_one_entry_of_layer_types() -> None:
    problem = "names the kinds of 5 layers (layer_types or a key like it), but has 12 layers"
    assert read({"layer_types": ["full_attention"] * 5}) == (None, problem)
    assert read({"layer_types": ["full_attention"] * 5}, layers=None) == (None, "")


def test_a_window_as_long_as_the_longest_request_keeps_every_token() -> None:
    """Phi-4-multimodal as published: its window is twice as long as its longest request."""
    text = {"sliding_window": 262144}
    assert attention(text, 32, 262144, "unheard_of", 131072) == (Attention(32), "")
    assert attention(text, 32, 4096, "unheard_of", 131072) == attention(text, 32, 4096, "unheard_of") == (None, "")
    # For a type whose use of windows is known, the longest request changes nothing.
    assert attention(text, 32, 262144, "phi3", 131072) == (Attention(0, 32), "")
