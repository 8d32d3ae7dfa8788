# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The memory that LoRA adapters take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import ModelFacts, from_config
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit import lora
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.flags import read

Model = Callable[..., ModelFacts]

DENSE = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "num_hidden_layers": 2,
    "hidden_size": 8,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 4,
    "intermediate_size": 32,
    "vocab_size": 100,
}
"""Queries are 16 wide, keys and values 8 each."""

EXPERTS = {
    **DENSE,
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "num_experts": 4,
    "moe_intermediate_size": 16,
}

ON = {"enable-lora": True, "max-lora-rank": 8}


def reserved(config: dict[str, Any], entry: dict[str, Any]) -> int | None:
    """The reserved bytes, with 16 bits for each value; None if unknown."""
    return lora.reserved(from_config(config).config, read(entry)[0], "bfloat16")


def test_without_adapters_nothing_is_reserved() -> None:
    assert reserved(DENSE, {"max-lora-rank": 64, "max-loras": 4}) == 0


@pytest.mark.parametrize(
    ("entry", "rows"),
    [
        # Queries, keys, values: 3 x 8 and 16 + 8 + 8. Output: 16 and 8. Gate and up: 2 x 8 and 2 x 32. Down: 32 and 8.
        ({}, 24 + 32 + 24 + 16 + 64 + 40),
        # Divided by two: the second matrices of queries, keys, values, gate and up; the first matrices of the others.
        ({"tensor-parallel-size": 2}, 24 + 16 + 8 + 8 + 16 + 32 + 16 + 8),
        ({"tensor-parallel-size": 2, "fully-sharded-loras": True}, (24 + 32 + 24 + 16 + 64 + 40) // 2),
        ({"max-loras": 3}, 3 * (24 + 32 + 24 + 16 + 64 + 40)),
        # Of two layers, each stage has one.
        ({"pipeline-parallel-size": 2}, (24 + 32 + 24 + 16 + 64 + 40) / 2),
    ],
)
def test_the_matrices_of_each_layer_count(entry: dict[str, Any], rows: float) -> None:
    # Two layers of rank 8 and 2 bytes. Embedding and head are counted if the engine's class names them.
    embedding = 2 * (8 + 100) * 8 * 2 * entry.get("max-loras", 1) if lora.EMBEDDINGS in words() else 0
    assert reserved(DENSE, {**ON, **entry}) == 2 * rows * 8 * 2 + embedding


def words() -> tuple[str, ...]:
    return lora.abilities(from_config(DENSE).config)


def test_the_matrices_of_every_expert_count() -> None:
    attention = 24 + 32 + 24
    # Each expert: 2 x (8 + 16) for gate and up, and 16 + 8 for down. The router: 8 + 4.
    found = reserved(EXPERTS, ON)
    embedding = 2 * 108 * 16 if lora.EMBEDDINGS in lora.abilities(from_config(EXPERTS).config) else 0
    assert found == 2 * (attention + 4 * (48 + 24) + 12) * 16 + embedding
    # With expert parallelism, each GPU has half of the experts.
    parallel = {**ON, "tensor-parallel-size": 2, "enable-expert-parallel": True}
    divided = reserved(EXPERTS, parallel)
    assert divided == 2 * (24 + 16 + 16 + 2 * (48 + 24) + 12) * 16 + embedding


def test_embedding_and_head_are_counted_if_the_engines_class_has_adapters_for_them(model: Model) -> None:
    config = model("llama-3-8b").config
    flags = read(ON)[0]
    with_them = lora.reserved(config, flags, "bfloat16")
    per_layer = 3 * 4096 + 6144 + 2 * 4096 + 2 * 4096 + 2 * 14336 + 14336 + 4096
    assert with_them == (32 * per_layer + 2 * (4096 + 128256)) * 8 * 2


def test_the_experts_of_a_model_with_latent_attention_count(model: Model) -> None:
    found = lora.reserved(model("deepseek-v3").config, read({**ON, "tensor-parallel-size": 8})[0], "bfloat16")
    # 256 experts with 3 x (7168 + 256) rows of rank 8 in 58 layers are nearly all of the memory.
    assert found and found > 58 * 256 * 3 * (7168 + 256) * 8 * 2


def test_the_matrices_of_an_unknown_type_are_unknown(model: Model) -> None:
    assert lora.reserved(model("llama-3-8b", model_type="unheard_of").config, read(ON)[0], "bfloat16") is None


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"architectures": ["AriaForConditionalGeneration"]}, "has no adapters for Aria"),
        ({"architectures": ["LlamaForCausalLM"], "vocab_size": 262144}, "at most 258048 tokens, this one has 262144"),
    ],
)
def test_adapters_that_the_engine_refuses_are_misfits(config: dict[str, Any], words: str) -> None:
    found = from_config(config).config
    misfit = next(lora.check(found, read(ON)[0]))
    assert words in misfit.message and not misfit.fits
    assert "remove the LoRA adapters that have this model as `base`" in misfit.message
    assert list(lora.check(found, read({})[0])) == []


def test_adapters_that_the_engine_accepts_are_no_misfits(model: Model) -> None:
    assert list(lora.check(model("llama-3-8b").config, read(ON)[0])) == []
    assert list(lora.check(from_config({"architectures": ["SomethingNew"]}).config, read(ON)[0])) == []
