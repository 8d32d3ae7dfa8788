# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sizes and dictionaries from JSON of any origin."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.values import (
    LIMIT,
    Reader,
    as_dict,
    positive,
)


@pytest.mark.parametrize("value", [None, [], "text", 7])
def test_a_value_that_is_no_dictionary_becomes_an_empty_dictionary(value: Any) -> None:
    assert as_dict(value) == {}
    assert as_dict({"a": value}) == {"a": value}


@pytest.mark.parametrize("value", [0, -1, True, 1.0, "7", None, [7], LIMIT + 1])
def test_a_value_that_is_no_plausible_size_is_none(value: Any) -> None:
    assert positive(value) is None


def test_a_positive_number_has_a_limit() -> None:
    assert (positive(1), positive(LIMIT), positive(7, most=7), positive(8, most=7)) == (1, LIMIT, 7, None)


def test_a_size_is_read_under_the_first_name_that_has_it() -> None:
    read = Reader({"a": None, "b": 0, "c": [], "d": -1, "e": [4, 4], "f": 5})
    assert (read.size("x", "a", "b", "c", "d", "e", "f"), read.size("f", "e"), read.size("x")) == (4, 5, None)
    assert read.problems == []


def test_of_several_sizes_the_largest_counts() -> None:
    # As in ERNIE 4.5 VL: experts for text, and experts for images.
    read = Reader({"moe_intermediate_size": [1536, 512]})
    assert (read.size("moe_intermediate_size"), read.problems) == (1536, [])


def test_a_value_that_is_no_size_is_one_problem() -> None:
    read = Reader({"a": "eight", "b": [4, "x"], "c": 9, "long": "x" * 99})
    assert (read.size("a"), read.size("a", "b", "c"), read.size("c", most=8)) == (None, 9, None)
    assert read.problems == [
        "has a: 'eight', which is not a size",
        "has b: \"[4, 'x']\", which is not a size",
        "has c: '9', which is not a size",
    ]
    assert read.size("long") is None
    assert len(read.problems[-1]) < 100
