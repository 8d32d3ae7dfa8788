# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entries that share the weights of their base: the keys that they take over, and mistakes in `base:`."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import Findings
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.variants import (
    check_bases,
    lineage,
    resolve,
)

TINY = {"model": "/m", "description": "Tiny", "dtype": "half", "max-model-len": 512}
MODELS: dict[str, Any] = {
    "calm": {"base": "pirate", "system-prompt": "Be calm.", "max-model-len": 64},
    "pirate": {"base": "tiny", "description": "Arr", "system-prompt": "Arr."},
    "tiny": TINY,
}


def mistakes(**models: Any) -> list[str]:
    found = Findings()
    check_bases(models, found)
    return [str(problem) for problem in found.problems]


def test_a_lineage_ends_at_the_model_or_before_a_base_that_is_missing() -> None:
    assert lineage(MODELS, "calm") == ["calm", "pirate", "tiny"]
    assert lineage(MODELS, "tiny") == ["tiny"]
    assert lineage({"a": {"base": "b"}, "b": {"base": "a"}}, "a") == ["a", "b"]
    assert lineage({"a": {"base": "gone"}}, "a") == ["a"]
    assert lineage({"a": {"base": ["b"]}, "b": "text"}, "a") == ["a"]
    assert lineage({"a": {"base": "b"}, "b": "text"}, "a") == ["a", "b"]
    assert lineage({}, "a") == []


def test_an_entry_gets_everything_from_its_bases_but_the_description() -> None:
    assert resolve(MODELS, "tiny") == TINY
    pirate = {"model": "/m", "dtype": "half", "max-model-len": 512, "description": "Arr", "system-prompt": "Arr."}
    assert resolve(MODELS, "pirate") == pirate
    calm = {"model": "/m", "dtype": "half", "max-model-len": 64, "system-prompt": "Be calm."}
    assert resolve(MODELS, "calm") == calm


@pytest.mark.parametrize(
    "models",
    [
        {},
        {"a": "text"},
        {"a": {"base": "gone"}},
        {"a": {"base": "b"}, "b": "text"},
        {"a": {"base": "b"}, "b": {"base": "a"}},
    ],
)
def test_an_entry_whose_bases_lead_to_no_model_resolves_to_none(models: dict[str, Any]) -> None:
    assert resolve(models, "a") is None


def test_a_variant_may_not_have_a_key_of_the_weights() -> None:
    assert [
        line.partition(": belongs")[0] for line in mistakes(x={"base": "y", "model": "m", "checksum": "c"}, y={})
    ] == [
        "models.x: model: 'm'",
        "models.x: checksum: 'c'",
    ]
    assert "models.x: revision: 'r': belongs to the base" in mistakes(x={"base": "y", "revision": "r"}, y={})[0]


def test_a_base_must_be_another_entry() -> None:
    assert mistakes(x={"base": "yy"}, y={"model": "m"}) == [
        "models.x: base: 'yy': must be another entry of the model registry: did you mean 'y'? known: y"
    ]
    assert "models.x: base: ['y']: must be another entry" in mistakes(x={"base": ["y"]}, y={})[0]
    assert mistakes(x="text", y={"model": "m"}, z={"base": "y"}) == []


def test_a_circle_of_bases_is_reported_once() -> None:
    found = mistakes(c={"base": "b"}, a={"base": "c"}, b={"base": "a"}, outside={"base": "c"}, sound={"model": "m"})
    assert found == [
        "models.a: base: 'c': goes in a circle, a → c → b → a: write model instead of base in one of these entries"
    ]
    assert "goes in a circle, x → x" in mistakes(x={"base": "x"})[0]
