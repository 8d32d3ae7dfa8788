# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the engine's class for a model supports."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.config import overrides
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import from_config
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit import architecture
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.flags import read
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.misfit import Misfit


def check(name: str, entry: dict[str, Any]) -> list[Misfit]:
    """The misfits of an architecture with the flags of an entry."""
    facts = from_config({"architectures": [name]})
    return [*architecture.check(facts, overrides.of_entry(facts.config, entry), entry, read(entry)[0])]


@pytest.mark.parametrize(
    ("name", "entry", "keys", "words"),
    [
        ("BertModel", {"runner": "generate"}, ["runner"], "BertModel gives vectors or classes"),
        ("ExaoneMoeMTP", {}, ["runner"], "ExaoneMoeMTP is a draft of another model, and cannot generate"),
        ("LlamaForCausalLM", {"runner": "pooling", "convert": "none"}, ["convert"], "embed or classify"),
        ("BertModel", {"tool-call-parser": "hermes"}, ["tool-call-parser"], "for generated text"),
        (
            "Qwen3ForCausalLM",
            {"runner": "pooling", "reasoning-parser": "qwen3", "speculative-config": {"method": "ngram"}},
            ["reasoning-parser", "speculative-config"],
            "for generated text",
        ),
        ("Zamba2ForCausalLM", {"pipeline-parallel-size": 2}, ["pipeline-parallel-size"], "does not divide Zamba2"),
        ("WhisperForConditionalGeneration", {"pipeline-parallel-size": 2}, ["pipeline-parallel-size"], "by layers"),
    ],
)
def test_flags_that_the_class_does_not_support_are_refused(
    name: str, entry: dict[str, Any], keys: list[str], words: str
) -> None:
    found = check(name, entry)
    assert [one.key for one in found] == keys
    assert all(words in one.message for one in found)


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("LlamaForCausalLM", {"pipeline-parallel-size": 2, "tool-call-parser": "llama3_json"}),
        ("LlamaForCausalLM", {"runner": "pooling"}),
        ("LlamaForCausalLM", {"runner": "pooling", "convert": None}),
        ("BertModel", {"runner": "pooling", "convert": "none"}),
        ("SomethingNewForCausalLM", {"pipeline-parallel-size": 2}),
        ("WhisperForConditionalGeneration", {"runner": "generate"}),
    ],
)
def test_flags_that_the_class_supports_are_accepted(name: str, entry: dict[str, Any]) -> None:
    assert check(name, entry) == []
