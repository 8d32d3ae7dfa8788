# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The draft that an entry names."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.catalogue import choose
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.drafts import named, with_path
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.entries import read

MODELS = {"large": {"model": "/srv/large"}, "small": {"model": "/srv/small"}}


def problems(draft: Any) -> list[str]:
    """The problems of a registry whose large model has this draft."""
    large = {**MODELS["large"], "speculative-config": draft}
    return [str(one) for one in read({**MODELS, "large": large}, choose()).problems]


@pytest.mark.parametrize(
    "draft",
    [
        {"model": "small", "num_speculative_tokens": 3},
        '{"model": "small"}',
        {"method": "ngram", "num_speculative_tokens": 4},
        {"method": "mtp", "num_speculative_tokens": 1},
        {"method": "suffix", "model": "anything"},
    ],
)
def test_a_draft_is_another_entry_unless_the_method_needs_none(draft: Any) -> None:
    assert problems(draft) == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("smal", "did you mean 'small'?"),
        (
            "meta-llama/Llama-3.2-1B",
            "add an entry with model: meta-llama/Llama-3.2-1B, and write the entry's name here",
        ),
        ("/srv/small", "add an entry with model: /srv/small, and write the entry's name here"),
        ("large", "names the entry itself as its draft"),
    ],
)
def test_a_draft_that_is_no_other_entry_is_refused_with_advice(name: str, words: str) -> None:
    (problem,) = problems({"model": name})
    assert problem.startswith("models.large: speculative-config") and words in problem


@pytest.mark.parametrize(
    ("draft", "words"),
    [
        ({"method": "ngram"}, "has no num_speculative_tokens, without which the engine does not start"),
        ({"method": "draft_model", "model": "small"}, "such as num_speculative_tokens: 3"),
        ({"model": "small", "num_speculative_tokens": 0}, "num_speculative_tokens: 0: must be a whole number from 1"),
        ('{"method": "mtp", "num_speculative_tokens": "3"}', "must be a whole number from 1"),
        (["small"], "must be a dictionary, or a JSON object in quotes"),
        pytest.param("[" * 100_000, "must be a dictionary or list, or JSON in quotes", id="100 000 brackets"),
        ({"method": ["ngram"], "model": "small", "num_speculative_tokens": 3}, "method: ['ngram']: must be a text"),
        ({"method": {}, "num_speculative_tokens": 3}, "method: {}: must be a text"),
        ({"method": ["ngram"], "num_speculative_tokens": 3}, "method: ['ngram']: must be a text"),
    ],
)
def test_a_draft_that_the_engine_would_refuse_at_its_start_is_refused(draft: Any, words: str) -> None:
    (problem,) = problems(draft)
    assert problem.startswith("models.large: speculative-config") and words in problem


def test_a_draft_may_have_the_number_of_tokens_in_its_files() -> None:
    models = {**MODELS, "large": {**MODELS["large"], "speculative-config": {"model": "small"}}}
    found = read(models, choose())
    assert found.problems == [] and "only if the draft's config.json has n_predict" in str(found.warnings[0])
    own = {"large": {**MODELS["large"], "speculative-config": {"method": "suffix"}}}
    assert read(own, choose()).warnings == []


def test_a_variant_has_the_draft_of_its_base() -> None:
    base = {**MODELS["large"], "speculative-config": {"model": "gone"}}
    found = read({**MODELS, "large": base, "short": {"base": "large", "max-model-len": 8192}}, choose())
    assert [one.where for one in found.problems] == ["models.large"]
    assert named(found.entries["short"].flags) == "gone"


def test_the_engine_gets_the_directory_of_the_draft() -> None:
    path = "/mnt/models/small/0123456789ab"
    for draft in ({"model": "small", "num_speculative_tokens": 3}, '{"model": "small", "num_speculative_tokens": 3}'):
        flags = {"dtype": "float32", "speculative-config": draft}
        wanted = {"model": path, "num_speculative_tokens": 3}
        assert with_path(flags, path) == {"dtype": "float32", "speculative-config": wanted}
    assert with_path({"dtype": "float32"}, "") == {"dtype": "float32"}
