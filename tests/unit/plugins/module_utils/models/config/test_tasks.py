# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tasks of a model: by its architecture, what its directory says, and the flags of its entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.architectures import ARCHITECTURES
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import ModelFacts, from_config
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.tasks import certain, runner, tasks

RERANKER = {
    "architectures": ["Qwen3ForSequenceClassification"],
    "classifier_from_token": ["no", "yes"],
    "is_original_qwen3_reranker": True,
}
"""What the card of Qwen3-Reranker gives as hf-overrides."""


def model(architecture: str, *, pooled: bool = False, **keys: Any) -> ModelFacts:
    """The facts of a model of an architecture."""
    return replace(from_config({"architectures": [architecture], **keys}), pooled=pooled)


@pytest.mark.parametrize(
    ("facts", "flags", "answered"),
    [
        (model("LlamaForCausalLM"), {}, ("generate",)),
        (model("Gemma3ForConditionalGeneration"), {}, ("generate",)),
        (model("SomethingNewForCausalLM"), {}, ("generate",)),
        (model("SomethingNew"), {}, ("generate",)),
        (model("WhisperForConditionalGeneration"), {}, ("transcribe",)),
        (model("VoxtralForConditionalGeneration"), {}, ("generate", "transcribe")),
        (model("BertModel"), {}, ("embed", "score")),
        (model("XLMRobertaModel"), {}, ("embed", "score")),
        # A model that generates by its architecture, and has a file about its pooling.
        (model("Qwen3ForCausalLM", pooled=True), {}, ("embed", "score")),
        (model("Qwen3ForCausalLM"), {"runner": "pooling"}, ("embed", "score")),
        (model("Qwen3ForCausalLM"), {"convert": "embed"}, ("embed", "score")),
        (model("Qwen3ForCausalLM", pooled=True), {"runner": "generate"}, ("generate",)),
        (model("LlamaForCausalLM", num_labels=1), {"convert": "classify"}, ("score", "classify")),
        (model("XLMRobertaForSequenceClassification", id2label={"0": "LABEL_0"}), {}, ("score", "classify")),
        (model("BertForSequenceClassification", id2label={"0": "no", "1": "yes"}), {}, ("classify",)),
        (model("Qwen2ForSequenceClassification", num_labels=3), {}, ("classify",)),
        (model("Qwen3ForCausalLM"), {"hf-overrides": RERANKER}, ("score", "classify")),
        (model("Qwen2ForRewardModel"), {}, ("reward",)),
        (model("BertForTokenClassification"), {}, ("token-classify",)),
        (model("NewForTokenClassification"), {}, ("token-classify",)),
        (model("HF_ColBERT"), {}, ("token-embed", "score")),
        (model("BertModel"), {"pooler-config": {"task": "token_embed"}}, ("token-embed", "score")),
        (ModelFacts(), {}, ()),
    ],
)
def test_the_tasks_come_from_architecture_directory_and_flags(
    facts: ModelFacts, flags: Mapping[str, Any], answered: tuple[str, ...]
) -> None:
    assert tasks(facts, flags) == answered


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        ({}, "generate"),
        ({"runner": "auto", "convert": "none"}, "generate"),
        ({"runner": "pooling"}, "pooling"),
        ({"convert": "classify"}, "pooling"),
        ({"hf-overrides": '{"architectures": ["BertModel"]}'}, "pooling"),
        ({"hf-overrides": {"architectures": 3}}, "generate"),
    ],
)
def test_runner_convert_and_overrides_decide_the_runner(flags: Mapping[str, Any], found: str) -> None:
    assert runner(model("LlamaForCausalLM"), flags) == found


def test_the_table_of_architectures_has_exactly_the_listed_words() -> None:
    assert len(ARCHITECTURES) > 300
    assert {word for words in ARCHITECTURES.values() for word in words} == {
        *("generates", "pools", "transcribes", "only transcribes", "scores pairs", "rewards", "classifies tokens"),
        *("late interaction", "drafts", "stages", "adapters", "adapted embeddings"),
    }
    assert ARCHITECTURES["LlamaForCausalLM"] == ("generates", "stages", "adapters", "adapted embeddings")


@pytest.mark.parametrize(
    "name",
    [
        *("LlamaForCausalLM", "LlamaModel", "LlamaForSequenceClassification", "Qwen3ForSequenceClassification"),
        *("WhisperForConditionalGeneration", "BertModel", "BertForTokenClassification"),
    ],
)
def test_the_tasks_of_a_known_architecture_are_certain(name: str) -> None:
    assert certain(model(name), {}) == tasks(model(name), {}) != ()


@pytest.mark.parametrize("name", ["SomethingNew", "SomethingNewForCausalLM", "SomethingNewModel"])
def test_the_tasks_of_an_unknown_architecture_are_not_certain(name: str) -> None:
    assert tasks(model(name), {}) != () == certain(model(name), {})
    # The tasks are certain if the entry names the architecture to load.
    assert certain(model(name), {"hf-overrides": RERANKER}) == ("score", "classify")


def test_a_draft_has_no_tasks_of_its_own() -> None:
    assert tasks(model("Qwen3ForCausalLM"), {"runner": "draft"}) == ()
