# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The longest request of a configuration, with its rope."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.config import positions
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.config import Config, parse
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.values import Reader

BASE = {"model_type": "llama", "num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12, "vocab_size": 99}


def read(raw: dict[str, Any], **more: Any) -> Config:
    """A configuration without problems."""
    found, problems = parse(raw, **more)
    assert problems == []
    return found


@pytest.mark.parametrize(
    ("rope", "length"),
    [
        ({"rope_scaling": {"type": "linear", "factor": 4.0}}, 8192),
        ({"rope_scaling": {"rope_type": "dynamic", "factor": 2}}, 4096),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, 2048),
        ({"rope_scaling": {"type": "yarn", "factor": 32.0}}, 2048),
        ({"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}, 2048),
        (
            {
                "rope_parameters": {
                    "full_attention": {"rope_type": "linear", "factor": 8.0},
                    "x": {"rope_type": "default"},
                }
            },
            16384,
        ),
        ({"rope_scaling": {"type": "linear", "factor": 8.0}, "model_type": "gemma3_text"}, 2048),
        ({"rope_scaling": {"type": "linear", "factor": None}}, 2048),
        ({"rope_scaling": "linear"}, 2048),
        ({}, 2048),
    ],
)
def test_the_length_includes_the_rope_scaling_that_the_engine_applies(rope: dict[str, Any], length: int) -> None:
    assert read({**BASE, "max_position_embeddings": 2048, **rope}).max_length == length


def test_longrope_has_its_short_length_by_default() -> None:
    found = read(
        {
            **BASE,
            "max_position_embeddings": 131072,
            "original_max_position_embeddings": 4096,
            "rope_scaling": {"type": "longrope", "short_factor": [1.0], "long_factor": [2.0]},
        }
    )
    assert (found.max_length, found.default_length) == (131072, 4096)


def test_the_tokenizer_limits_only_the_length_of_absolute_positions() -> None:
    # The tokenizer of DeepSeek R1 has the length 16384, but the engine serves 163840 tokens.
    assert read({**BASE, "max_position_embeddings": 8192}, tokenizer_max_length=2048).max_length == 8192
    raw = {**BASE, "max_position_embeddings": 8192, "position_embedding_type": "absolute"}
    assert read(raw, tokenizer_max_length=2048).max_length == 2048
    assert read(raw, tokenizer_max_length=10**9).max_length == 8192


def test_the_length_of_sentence_transformers_replaces_all_other_lengths() -> None:
    raw = {**BASE, "max_position_embeddings": 512, "position_embedding_type": "absolute"}
    for length in (256, 1024):
        found = read(raw, tokenizer_max_length=128, encoder_max_length=length)
        assert (found.max_length, found.default_length) == (length, length)


def test_the_smallest_number_of_positions_counts_unless_the_model_names_its_length() -> None:
    lengths = {"max_position_embeddings": 8192, "max_seq_len": 4096, "max_target_positions": -1}
    assert positions.max_positions(Reader(lengths)) == 4096
    assert positions.max_positions(Reader({**lengths, "model_max_length": 16384})) == 16384
    assert positions.max_positions(Reader({})) is None


def test_of_several_ropes_the_rope_with_a_scaling_counts() -> None:
    ropes = {"full_attention": {"rope_type": "yarn", "factor": 8.0}, "sliding_attention": {"rope_type": "default"}}
    assert positions.read_rope({"rope_parameters": ropes}) == positions.Rope("yarn", 8.0)
    assert positions.read_rope({"rope_scaling": "yarn"}) is None
