# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entries of LoRA adapters, each mistake with its message."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.catalogue import choose
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry import adapters
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.entries import read
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.variants import lineage, resolve

GOLDEN = [{"prompt": "Who are you?", "expect": "legal"}]

LEGAL = {"base": "large", "adapter": "org/legal", "revision": "0" * 40}

MODELS: dict[str, Any] = {
    "large": {"model": "/srv/large", "dtype": "float32", "golden-prompts": [{"prompt": "a", "expect": "b"}]},
    "short": {"base": "large", "max-model-len": 512},
    "legal": LEGAL,
    "medical": {"base": "large", "adapter": "/srv/medical", "description": "For doctors", "golden-prompts": GOLDEN},
}


def problems(**changes: Any) -> list[str]:
    """The problems of the model registry with these entries changed or added."""
    return [str(one) for one in read({**MODELS, **changes}, choose("0.32.0")).problems]


def test_an_adapter_has_its_own_weights_and_no_key_of_its_base() -> None:
    registry = read(MODELS, choose("0.32.0"))
    assert registry.problems == []
    legal = registry.entries["legal"]
    assert (legal.adapter_of, legal.model, legal.revision) == ("large", "org/legal", "0" * 40)
    assert (legal.store_name, legal.served_as, legal.flags) == ("legal", "legal", {})
    assert [one.name for one in registry.adapters_of("large")] == ["legal", "medical"]
    assert registry.adapters_of("short") == () and registry.entries["short"].adapter_of == ""
    assert lineage(MODELS, "legal") == ["legal"]
    assert (resolve(MODELS, "legal") or {}).get("golden-prompts") is None
    assert (resolve(MODELS, "medical") or {})["golden-prompts"] == GOLDEN


def test_the_adapters_of_entries_are_sorted() -> None:
    assert adapters.of({"b": {**LEGAL}, **MODELS}, ["large"]) == ["b", "legal", "medical"]
    assert adapters.of(MODELS, ["short"]) == []
    assert adapters.of({"a": {"base": ["large"], "adapter": "x"}, "b": "text"}, ["large"]) == []


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"adapter": "/srv/legal"}, "models.legal: base: is required beside adapter"),
        ({**LEGAL, "base": "larg"}, "base: 'larg': must be another entry of the model registry: did you mean 'large'?"),
        (
            {**LEGAL, "base": "legal"},
            "base: 'legal': is an adapter: an adapter's base must be an entry with the key model",
        ),
        ({**LEGAL, "base": "medical"}, "must be an entry with the key model: write base: large"),
        ({**LEGAL, "base": "short"}, "base: 'short': is no entry with a model of its own"),
        ({**LEGAL, "base": 7}, "base: 7: must be another entry"),
        ({**LEGAL, "system-prompt": "Be brief."}, "system-prompt: 'Be brief.': is not possible for an adapter"),
        ({**LEGAL, "max-model-len": 512}, "max-model-len: 512: is no key of an adapter"),
        ({**LEGAL, "hf-token": "s3cret"}, "hf-token: is no key of an adapter"),
        ({**LEGAL, "model": "/srv/x"}, "model: '/srv/x': belongs to the base"),
        ({**LEGAL, "adapter": 7}, "adapter: 7: must be a text"),
        ({**LEGAL, "golden-prompts": "x"}, "golden-prompts: 'x': must be a list"),
        ({True: 1, "base": "large", "adapter": "x"}, "has the key True"),
    ],
)
def test_a_wrong_entry_of_an_adapter_is_a_problem_with_advice(entry: dict[Any, Any], words: str) -> None:
    (problem,) = problems(legal=entry)
    assert words in problem


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"max-loras": 1}, "max-loras: 1: is less than the number of adapters, 2 (legal, medical)"),
        ({"max-cpu-loras": 1}, "max-cpu-loras: 1: must be at least max-loras, which is 2"),
        ({"max-loras": 4, "max-cpu-loras": 3}, "max-cpu-loras: 3: must be at least max-loras, which is 4"),
    ],
)
def test_limits_that_are_too_small_for_the_adapters_are_refused(flags: dict[str, int], words: str) -> None:
    (problem,) = problems(large={**MODELS["large"], **flags})
    assert problem.startswith("models.large: ") and words in problem


def test_limits_at_or_above_the_number_of_adapters_are_accepted() -> None:
    assert problems(large={**MODELS["large"], "max-loras": 2, "max-cpu-loras": 2, "max-lora-rank": 64}) == []
    assert problems(large={**MODELS["large"], "max-cpu-loras": "None"}) == []
    # The limits of a model without adapters limit nothing.
    assert problems(tiny={"model": "/srv/tiny", "max-loras": 4, "max-cpu-loras": 1}) == []


def test_neither_a_variant_nor_a_draft_can_be_an_adapter() -> None:
    (problem,) = problems(brief={"base": "legal", "max-model-len": 64})
    assert "models.brief: base: 'legal': is an adapter, and a variant needs the weights of a model" in problem
    (problem,) = problems(fast={"model": "/srv/fast", "speculative-config": {"model": "legal"}})
    assert "is an adapter: a draft must be an entry with the key model" in problem


def test_problems_of_several_entries_are_reported_at_once() -> None:
    found = problems(legal={**LEGAL, "base": "gone", "dtype": "half"}, medical={"adapter": "/srv/medical"})
    assert len(found) == 3
