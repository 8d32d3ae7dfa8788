# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a LoRA adapter belongs to a model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.adapter_facts import AdapterFacts
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.config import Config
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.experts import Experts
from ansible_collections.baremetal.inference.plugins.module_utils.models.file_names import ADAPTER_CONFIG
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.adapters import mistakes, other_base
from ansible_collections.baremetal.inference.plugins.module_utils.models.shards import FileProblem

BASE = Config(layers=2, attention_heads=2, kv_heads=1, head_size=64, hidden_size=128, intermediate_size=256)

FACTS = AdapterFacts(
    rank=16,
    layers=2,
    shapes=(
        ("model.layers.mlp.down_proj", 256, 128),
        ("model.layers.self_attn.k_proj", 128, 64),
        ("model.layers.self_attn.q_proj", 128, 128),
        ("visual.layers.self_attn.q_proj", 32, 32),
        ("model.layers.mlp.something", 1, 1),
    ),
)


def found(facts: AdapterFacts, base: Config = BASE, model: str = "/srv/base") -> list[str]:
    return list(mistakes(facts, base, model))


def test_an_adapter_of_its_base_is_accepted() -> None:
    assert found(FACTS) == []
    # Nothing is known of the base.
    assert found(FACTS, Config()) == []


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("q_proj", "has q_proj of 96 x 7, and its base has 128 x 128 or 128 x 256"),
        ("k_proj", "has k_proj of 96 x 7, and its base has 128 x 64"),
        ("o_proj", "has o_proj of 96 x 7, and its base has 128 x 128"),
        ("up_proj", "has up_proj of 96 x 7, and its base has 128 x 256"),
        ("gate_up_proj", "has gate_up_proj of 96 x 7, and its base has 128 x 512"),
    ],
)
def test_shapes_that_the_base_does_not_have_are_refused(module: str, words: str) -> None:
    (message,) = found(replace(FACTS, shapes=((f"model.layers.x.{module}", 96, 7),)))
    assert message == f"{words}: it belongs to another model"


def test_the_feed_forwards_of_a_base_with_experts_are_not_compared() -> None:
    shapes = (("model.layers.mlp.up_proj", 96, 7),)
    assert found(replace(FACTS, shapes=shapes), replace(BASE, experts=Experts(count=8))) == []


def test_more_layers_than_the_base_has_are_refused() -> None:
    (message,) = found(replace(FACTS, layers=3))
    assert "has weights for 3 layers, and its base has 2" in message


def test_problems_of_the_files_of_an_adapter_are_reported() -> None:
    assert found(replace(FACTS, problems=(FileProblem(ADAPTER_CONFIG, "has no r"),))) == [f"{ADAPTER_CONFIG} has no r"]


@pytest.mark.parametrize(
    ("trained", "base", "other"),
    [
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B", False),
        ("unsloth/qwen3-8b-bnb-4bit", "Qwen/Qwen3-8B", False),
        ("Qwen/Qwen3-8B", "org/Qwen3_8B-FP8", False),
        ("Qwen/Qwen2.5-7B", "Qwen/Qwen3-8B", True),
        # A path says nothing about the model.
        ("/home/me/llama", "Qwen/Qwen3-8B", False),
        ("Qwen/Qwen2.5-7B", "/srv/qwen", False),
        ("", "Qwen/Qwen3-8B", False),
    ],
)
def test_an_adapter_of_another_base_on_a_hub_is_refused(trained: str, base: str, other: bool) -> None:
    facts = replace(FACTS, base=trained)
    assert other_base(facts, base) == (trained if other else "")
    assert [f"was trained on {trained}, and its base is {base}" in one for one in found(facts, model=base)] == [
        True
    ] * other
