# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts that a gather_subset selects."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.gather_subset import choices, chosen


def test_each_part_can_be_chosen_or_left_out() -> None:
    assert choices(["tool", "log"]) == ["all", "min", "tool", "!tool", "log", "!log"]


@pytest.mark.parametrize(
    ("subset", "parts"),
    [
        (["all"], {"a", "b", "c"}),
        (["min"], set()),
        ([], {"a", "b", "c"}),
        (["a"], {"a"}),
        (["min", "a"], {"a"}),
        (["all", "!a"], {"b", "c"}),
        (["!a", "!b"], {"c"}),
        (["a", "b", "!a"], {"b"}),
    ],
)
def test_a_subset_selects_parts(subset: list[str], parts: set[str]) -> None:
    assert chosen(subset, ("a", "b", "c")) == parts
