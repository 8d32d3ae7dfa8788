# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys in flags that take a JSON object: what the engine would refuse at its start."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import Findings
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.catalogue import choose
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.check import check
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.objects import (
    no_object,
    unknown,
    unlisted,
)

GOOD: dict[str, Any] = {
    "structured-outputs-config": {"backend": "xgrammar", "disable_any_whitespace": True},
    "speculative-config": {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4},
    "compilation-config": '{"cudagraph_capture_sizes": [1, 2]}',
    "hf-overrides": {"anything": 1},
    "dtype": "half",
}


@pytest.mark.parametrize("name", GOOD)
def test_keys_that_the_engine_has_are_accepted(name: str) -> None:
    assert unknown(name, GOOD[name]) == no_object(name, GOOD[name]) == unlisted(name, GOOD[name]) == ""


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("speculative-config", {"num-speculative-tokens": 4}, "did you mean 'num_speculative_tokens'?"),
        ("structured-outputs-config", '{"backnd": "auto"}', "did you mean 'backend'?"),
        ("compilation-config", {"cudagraph_sizes": [1]}, "'cudagraph_sizes'"),
    ],
)
def test_unknown_keys_are_a_problem_or_for_another_version_a_warning(name: str, value: Any, words: str) -> None:
    assert words in unknown(name, value)
    found = Findings()
    check("models.x", {name: value}, choose("0.32.0"), (), found)
    (problem,) = found.problems
    assert words in str(problem) and "vLLM 0.32.0 does not have" in str(problem)
    # Another version may have more keys.
    for version in ("0.33.0", "", "0.99.0"):
        found = Findings()
        check("models.x", {name: value}, choose(version), (), found)
        assert found.problems == [] and words in str(found.warnings)


@pytest.mark.parametrize(
    ("name", "value"),
    [("speculative-config", ["small"]), ("pooler-config", "MEAN"), ("hf-overrides", "max_position_embeddings=1")],
)
def test_a_value_that_is_no_object_is_refused_in_every_version(name: str, value: Any) -> None:
    for version in ("0.32.0", "0.33.0", "0.99.0"):
        found = Findings()
        check("models.x", {name: value}, choose(version), (), found)
        (problem,) = found.problems
        assert "must be a dictionary, or a JSON object in quotes" in str(problem)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("speculative-config", {"method": "ngramm"}, "did you mean 'ngram'?"),
        (
            "pooler-config",
            {"pooling_type": "mean"},
            "vLLM 0.32.0 allows ALL, CLS, LAST, MEAN, STEP; did you mean 'MEAN'?",
        ),
        ("pooler-config", '{"task": "embedding"}', "did you mean 'embed'?"),
    ],
)
def test_a_value_outside_the_choices_of_a_key_is_refused(name: str, value: Any, words: str) -> None:
    assert words in unlisted(name, value)
    found = Findings()
    check("models.x", {name: value}, choose("0.32.0"), (), found)
    assert [words in str(problem) for problem in found.problems] == [True]
    # Another version may have more values.
    found = Findings()
    check("models.x", {name: value}, choose("0.33.0"), (), found)
    assert found.problems == [] and words in str(found.warnings)


def test_all_wrong_values_of_an_object_are_named_at_once() -> None:
    found = unlisted("pooler-config", {"task": "embedding", "pooling_type": "mean", "use_activation": True})
    assert "task: 'embedding'" in found and "pooling_type: 'mean'" in found
