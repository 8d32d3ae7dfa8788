# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sizes and counts as text."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.sizes import counted, human


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 bytes"), (1, "1 byte"), (2048, "2.0 KiB"), (3 << 19, "1.5 MiB"), (140 << 30, "140.0 GiB")]
)
def test_a_size_has_a_fitting_unit(size: int, text: str) -> None:
    assert human(size) == text


@pytest.mark.parametrize(("number", "text"), [(0, "0 nodes"), (1, "1 node"), (8, "8 nodes")])
def test_the_noun_of_a_count_is_singular_only_after_1(number: int, text: str) -> None:
    assert counted(number, "node") == text
