# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A key that config.json leaves out has the value that the model's class declares."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.config import parse
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.declared import (
    completed,
    layer_sizes,
    layer_types,
)


def test_a_missing_key_has_the_value_of_the_class() -> None:
    whole = completed({"model_type": "gemma3_text", "num_hidden_layers": 62})
    assert (whole["vocab_size"], whole["head_dim"], whole["num_hidden_layers"]) == (262208, 256, 62)
    assert whole["tie_word_embeddings"] is True


def test_a_null_value_stays_null() -> None:
    assert completed({"model_type": "gemma3_text", "sliding_window": None})["sliding_window"] is None


def test_a_part_is_completed_by_its_own_class_or_by_the_class_that_the_model_around_it_expects() -> None:
    whole = completed({"model_type": "gemma3", "text_config": {"hidden_size": 5376}})
    assert (whole["text_config"]["hidden_size"], whole["text_config"]["vocab_size"]) == (5376, 262208)
    assert whole["text_config"]["model_type"] == "gemma3_text"
    other = completed({"model_type": "llava", "text_config": {"model_type": "mistral"}})
    assert other["text_config"]["max_position_embeddings"] == 131072
    assert completed({"model_type": "llava"})["text_config"]["model_type"] == "llama"
    unheard = completed({"model_type": "llava", "text_config": {"model_type": "llava_text", "vocab_size": 9}})
    assert (unheard["text_config"]["vocab_size"], unheard["text_config"]["hidden_size"]) == (9, 4096)
    assert completed({"model_type": "llava", "vision_config": None})["vision_config"] is None


def test_a_part_may_have_a_class_that_only_the_model_around_it_uses() -> None:
    """Step 3.7 reads its language part (step3p5) with a class of its own. The engine has another class for step3p5."""
    for given in ({}, {"model_type": "step3p5"}):
        part = completed({"model_type": "step3p7", "text_config": given})["text_config"]
        assert (part["model_type"], part["max_position_embeddings"], "max_seq_len" in part) == (
            "step3p5",
            128000,
            False,
        )
    assert completed({"model_type": "step3p7"})["text_config"]["num_hidden_layers"] == 45
    other = completed({"model_type": "step3p7", "text_config": {"model_type": "llama"}})["text_config"]
    assert other["vocab_size"] == 32000
    assert completed({"model_type": "step3p5"})["max_seq_len"] == 4096


def test_a_missing_part_has_the_values_that_the_model_around_it_gives() -> None:
    """PaliGemma's language part is a Gemma of 2B. Gemma's own class declares the sizes of 7B."""
    missing = completed({"model_type": "paligemma"})["text_config"]
    assert (missing["num_hidden_layers"], missing["hidden_size"], missing["vocab_size"]) == (18, 2048, 257152)
    part = completed({"model_type": "paligemma", "text_config": {"model_type": "gemma"}})["text_config"]
    assert (part["num_hidden_layers"], part["hidden_size"]) == (28, 3072)


def test_a_model_may_also_give_values_to_a_part_that_is_there() -> None:
    """Voxtral gives its language part the sizes that the part leaves out."""
    part = completed({"model_type": "voxtral", "text_config": {"model_type": "llama", "vocab_size": 9}})["text_config"]
    assert (part["num_hidden_layers"], part["head_dim"], part["vocab_size"]) == (30, 128, 9)
    assert completed({"model_type": "llama"})["num_hidden_layers"] == 32


def test_a_type_that_the_engine_runs_with_the_code_of_transformers_declares_values_too() -> None:
    assert completed({"model_type": "bitnet"})["num_key_value_heads"] == 5
    # The keys of bart have other names.
    found = parse({"model_type": "bart", "d_model": 512, "decoder_attention_heads": 4, "encoder_attention_heads": 8})[0]
    assert (found.layers, found.hidden_size, found.attention_heads) == (12, 512, 8)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"n_embd": 64}, {"hidden_size": 64, "n_embd": 64}),
        ({"hidden_size": 64}, {"hidden_size": 64, "n_embd": 64}),
        ({}, {"hidden_size": 768, "n_embd": 768}),
    ],
)
def test_a_key_is_read_by_both_of_its_names(raw: dict[str, Any], expected: dict[str, Any]) -> None:
    assert completed({"model_type": "gpt2", **raw}).items() >= expected.items()


def test_a_type_that_is_not_known_declares_nothing() -> None:
    raw = {"model_type": "unheard_of", "hidden_size": 8, "text_config": {"model_type": "llama"}}
    whole = completed(raw)
    assert set(whole) == set(raw)
    assert whole["text_config"]["vocab_size"] == 32000
    assert completed({"model_type": ["no", "text"]}) == {"model_type": ["no", "text"]}


def test_the_kinds_of_layers_are_those_of_the_class() -> None:
    assert layer_types("gemma2", 3) == ["sliding_attention", "full_attention", "sliding_attention"]
    assert layer_types("llama", 3) == layer_types("unheard_of", 3) == layer_types(None, 3) == []
    assert layer_sizes("gemma4_text") == {"full_attention": {"head_dim": 512}}
    assert layer_sizes("llama") == layer_sizes(None) == {}


def test_head_dim_does_not_set_qk_rope_head_dim_although_it_is_its_second_name() -> None:
    whole = completed({"model_type": "deepseek_v3", "head_dim": 192})
    assert whole["qk_rope_head_dim"] == 64


@pytest.mark.parametrize("model_type", ["qwen2_vl", "qwen2_5_vl"])
def test_the_keys_of_the_language_part_may_be_at_the_top(model_type: str) -> None:
    """The keys are those of Qwen2.5-VL 7B. With the values of its class, the model would have the sizes of 72B."""
    flat = {"model_type": model_type, "num_hidden_layers": 28, "hidden_size": 3584, "num_attention_heads": 28}
    found = parse(
        {**flat, "num_key_value_heads": 4, "vision_config": {"depth": 32}, "max_position_embeddings": 128000}
    )[0]
    assert (found.layers, found.hidden_size, found.kv_heads, found.max_length) == (28, 3584, 4, 128000)
    assert found.model_type == f"{model_type}_text"
    # A configuration without these keys has the values of the class.
    assert parse({"model_type": model_type, "vision_config": {}})[0].layers == 80
