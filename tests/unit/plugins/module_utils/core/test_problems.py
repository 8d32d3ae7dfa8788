# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes of the input, and hints for names."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import (
    Findings,
    InputError,
    Problem,
    did_you_mean,
    names_secret,
    nearest,
)


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem("models.a", "is empty"), "models.a: is empty"),
        (Problem("models.a", "must be a number", "port"), "models.a: port: must be a number"),
        (Problem("models.a", "must be a number", "port", "x"), "models.a: port: 'x': must be a number"),
        (Problem("models.a", "must be more", "port", 0), "models.a: port: 0: must be more"),
        (Problem("models.a", "no key", value=1), "models.a: no key"),
    ],
)
def test_the_text_of_a_problem_has_its_place_key_and_value(problem: Problem, text: str) -> None:
    assert str(problem) == text


def test_all_problems_are_raised_at_once() -> None:
    found = Findings()
    found.problem("a", "is wrong", "x", 1)
    found.problem("b", "is wrong too")
    found.warning("c", "is odd")
    error = InputError(iter(found.problems))
    assert str(error) == "a: x: 1: is wrong\nb: is wrong too" and error.problems == found.problems
    assert [str(warning) for warning in found.warnings] == ["c: is odd"]


def test_the_most_similar_name_is_suggested() -> None:
    assert did_you_mean("mian", ["other", "main"]) == "did you mean 'main'?"
    assert did_you_mean("xyz", ["other", "main"]) == ""
    # No name is suggested for a number. A name without the same numbers must be more similar than other names.
    assert did_you_mean("fp16", ["fp8", "auto"]) == did_you_mean("20", ["320", "32"]) == ""
    assert did_you_mean("fp16", ["fp8", "float16"]) == "did you mean 'float16'?"
    assert did_you_mean("gpt-oss-20", ["gpt-oss-20b", "gpt-oss-120b"]) == "did you mean 'gpt-oss-20b'?"
    assert did_you_mean("qwen2-8b", ["qwen3-8b", "other"]) == "did you mean 'qwen3-8b'?"
    assert nearest("mian", ["other", "main"]) == "did you mean 'main'? known: main, other"
    assert nearest("xyz", ["b", "a"]) == "known: a, b"
    assert nearest("xyz", []) == "none is defined"


@pytest.mark.parametrize(
    "key", ["hub-token", "SORT_KEY", "passphrase", "db_passwd", "apikey", "x-accesskey", "credential"]
)
def test_a_key_that_may_have_a_secret_is_recognized(key: str) -> None:
    assert names_secret(key)


@pytest.mark.parametrize("key", ["max-tokens", "tokenizer", "keys", "monkey", "key-file"])
def test_a_key_without_a_secret_is_not_taken_for_one(key: str) -> None:
    assert not names_secret(key)
