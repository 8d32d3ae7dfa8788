# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Overrides of a configuration that decide the length of a request."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.config import overrides
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.config import parse

RAW = {"model_type": "llama", "max_position_embeddings": 4096}


@pytest.mark.parametrize(
    ("given", "longest"),
    [
        ({}, 4096),
        ({"max_position_embeddings": 8192}, 8192),
        ({"text_config": {"max_position_embeddings": 8192}}, 8192),
        ({"rope_scaling": {"rope_type": "linear", "factor": 2.0}}, 8192),
        ({"rope_parameters": {"rope_type": "yarn", "factor": 2.0}}, 4096),
        ({"max_position_embeddings": 8192, "rope_parameters": {"rope_type": "yarn", "factor": 2.0}}, 8192),
        ({"max_position_embeddings": "many", "rope_parameters": 3}, 4096),
        ({"num_labels": 2}, 4096),
    ],
)
def test_overrides_replace_length_and_rope(given: dict[str, Any], longest: int) -> None:
    found = overrides.overridden(parse(RAW)[0], given)
    assert (found.max_length, found.default_length) == (longest, longest)


def test_the_tokenizer_also_limits_an_overridden_length() -> None:
    config = parse({**RAW, "position_embedding_type": "absolute"}, tokenizer_max_length=2048)[0]
    assert overrides.overridden(config, {"max_position_embeddings": 8192}).max_length == 2048


def test_overrides_are_a_dictionary_or_its_json() -> None:
    assert overrides.read('{"a": 1}') == overrides.read({"a": 1}) == {"a": 1}
    assert overrides.read("{") == overrides.read("[" * 100_000) == overrides.read(None) == overrides.read(["a"]) == {}
    assert overrides.unknown({"num_labels": 2, "head_dim": 1, "text_config": {}}) == ["head_dim"]


def test_keys_of_the_language_part_that_are_not_read_are_named() -> None:
    part = {"num_hidden_layers": 2, "rope_scaling": {}, "classifier_from_token": ["no"], "num_labels": 2}
    found = overrides.unknown({"text_config": part, "llm_config": "none"})
    assert found == ["text_config.num_hidden_layers", "text_config.num_labels"]
