# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of text in columns."""

from __future__ import annotations

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import table


def test_every_column_is_as_wide_as_its_longest_cell() -> None:
    rows = [("name", "port"), ("main", "5005"), ("a-longer-name", "6"), ("x", "")]
    assert table.lines(rows) == [
        "name           port",
        "main           5005",
        "a-longer-name  6",
        "x",
    ]


def test_a_table_without_rows_has_no_lines() -> None:
    assert table.lines([]) == []


def test_rows_of_different_lengths_are_an_error() -> None:
    with pytest.raises(ValueError, match="shorter"):
        table.lines([("name", "port"), ("main",)])
