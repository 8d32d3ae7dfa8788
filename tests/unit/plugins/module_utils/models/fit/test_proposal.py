# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The division that is proposed if the flags set no division."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.facts import ModelFacts
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.devices import hypothetical, processors
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.proposal import propose

Model = Callable[..., ModelFacts]


@pytest.mark.parametrize(
    ("name", "gpus", "expected"),
    [
        ("llama-3-8b", "8xH100-80GB", {}),
        ("llama-3-70b", "8xH100-80GB", {"tensor-parallel-size": 2}),
        ("deepseek-v3", "8xH200", {"tensor-parallel-size": 8}),
        # All GPUs are too few: the proposal uses all, so that the plan shows what is lacking.
        ("deepseek-v3", "8xL4", {"tensor-parallel-size": 8}),
    ],
)
def test_the_proposal_uses_as_few_gpus_as_are_enough(
    name: str, gpus: str, expected: dict[str, int], model: Model
) -> None:
    assert propose(model(name), {}, hypothetical(gpus)) == expected


def test_if_the_heads_cannot_be_divided_stages_are_proposed(model: Model) -> None:
    facts = model("llama-3-70b")
    odd = replace(facts, config=replace(facts.config, attention_heads=63, kv_heads=7))
    assert propose(odd, {}, hypothetical("3xH100-80GB")) == {"pipeline-parallel-size": 2}


def test_against_a_misfit_that_is_not_about_memory_no_gpus_are_proposed(model: Model) -> None:
    draft = {"speculative-config": {"model": "small"}}
    assert propose(model("llama-3-8b"), draft, hypothetical("8xH100-80GB"), draft=model("qwen3-8b")) == {}


def test_with_a_division_in_the_flags_on_processors_or_without_gpus_nothing_is_proposed(model: Model) -> None:
    assert propose(model("llama-3-70b"), {"tensor-parallel-size": 1}, hypothetical("8xH100-80GB")) == {}
    assert propose(model("llama-3-70b"), {}, processors(65536)) == {}
    assert propose(model("llama-3-70b"), {}, []) == {}
