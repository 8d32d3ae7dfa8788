# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""YAML with comments."""

from __future__ import annotations

import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover import text
from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.finding import Variable


def test_a_file_has_its_variables_with_reasons() -> None:
    content = text.file("The title.", text.variables([Variable("a", [1, {"b": "{{ c }}"}], "why so")]))
    assert yaml.safe_load(content) == {"a": [1, {"b": "{{ c }}"}]}
    assert content.startswith("---\n# Written by") and "# Why so.\na:\n  - 1\n" in content


def test_disabled_variables_are_comments_that_a_person_can_enable() -> None:
    content = text.disabled({"common_disks": [{"name": "models"}]}, "Blank disks.")
    assert yaml.safe_load(content) is None
    lines = [line.removeprefix("# ") for line in content.splitlines()[1:]]
    assert yaml.safe_load("\n".join(lines)) == {"common_disks": [{"name": "models"}]}


@pytest.mark.parametrize("given", ["a", "007", "on", "1.5", "2026-11-28", "null", "fd00::", "*x", "a" * 200])
def test_a_scalar_is_read_as_the_same_text(given: str) -> None:
    assert yaml.safe_load(text.scalar(given)) == given


def test_long_comments_are_wrapped() -> None:
    assert all(len(line) <= text.WIDTH for line in text.comment("word " * 100, "    ").splitlines())
