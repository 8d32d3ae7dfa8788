# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The heads of keys and values: by kind of layer, and from `block_configs`."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.heads import (
    Heads,
    heads_by_kind,
    kv_heads,
)
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.values import Reader

WORDS = ["sliding_attention", "sliding_attention", "full_attention"]


@pytest.mark.parametrize(
    ("text", "model_type", "expected"),
    [
        ({}, "llama", (None, None)),
        ({}, "gemma4_text", (Heads(16, 512), Heads(16, 256))),
        ({"global_head_dim": 1024}, "gemma4_text", (Heads(16, 1024), Heads(16, 256))),
        ({"num_global_key_value_heads": 4, "attention_k_eq_v": True}, "gemma4_text", (Heads(4, 512), Heads(16, 256))),
        ({"num_global_key_value_heads": 4, "attention_k_eq_v": False}, "gemma4_text", (Heads(16, 512), Heads(16, 256))),
        (
            {"per_layer_config": {"0": {"head_dim": 128}, "1": {"head_dim": 64}, "2": {"num_key_value_heads": 2}}},
            "unheard_of",
            (Heads(2, 256), Heads(16, 128)),
        ),
        ({"per_layer_config": {"7": {"head_dim": 128}, "x": 3}}, "unheard_of", (None, None)),
        # An empty per_layer_config wins over the class: all layers have the same heads.
        ({"per_layer_config": {}}, "gemma4_text", (None, None)),
    ],
)
def test_heads_are_read_by_kind_of_layer(
    text: dict[str, Any], model_type: str, expected: tuple[Heads | None, Heads | None]
) -> None:
    assert heads_by_kind(text, Heads(16, 256), WORDS, model_type) == expected


@pytest.mark.parametrize(
    ("blocks", "count"),
    [
        ([{"attention": {"no_op": True, "n_heads_in_group": None}}, {"attention": {"n_heads_in_group": 8}}], 8),
        ([{"attention": {"replace_with_linear": True}}, {"attention": {"n_heads_in_group": 8}}], 8),
        ([{"attention": {"no_op": True}}], 64),
        ([{"block_type": "attention"}, "x"], 64),
        ("x", 64),
    ],
)
def test_the_first_block_with_attention_decides_the_number_of_kv_heads(blocks: Any, count: int) -> None:
    text = {"num_attention_heads": 64, "num_key_value_heads": None, "block_configs": blocks}
    assert kv_heads(text, Reader(text), 64) == count
