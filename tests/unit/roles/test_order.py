# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists keep their order: files, messages and loops are the same in each run.

Ansible's filters difference, intersect, symmetric_difference and union make sets of their lists. The order of a set
differs from run to run. `select('in', …)`, `reject('in', …)` and `unique` keep the order.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

RANDOM = re.compile(r"\| *(?:difference|intersect|symmetric_difference|union)\(")

ORDERLESS = re.compile(r"\| *(?:sort|length)\b")
"""What makes the order irrelevant, later in the same expression."""


def unordered(text: str) -> list[str]:
    """The lines whose lists come in a random order."""
    found = []
    for match in RANDOM.finditer(text):
        rest = re.split(r"}}|\n *- |\n\n", text[match.end() :], maxsplit=1)[0]
        if not ORDERLESS.search(rest):
            found.append(text[: match.end()].splitlines()[-1].strip())
    return found


@pytest.mark.once
@pytest.mark.parametrize("directory", ["playbooks", "roles"])
def test_no_list_of_a_playbook_comes_in_a_random_order(directory: str) -> None:
    files = [path for path in sorted((ROOT / directory).rglob("*")) if path.suffix in (".yml", ".j2")]
    assert len(files) > 20
    assert [f"{path.relative_to(ROOT)}: {line}" for path in files for line in unordered(path.read_text())] == []


@pytest.mark.once
@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("a: \"{{ x | difference(y) | join(', ') }}\"", 1),
        ('a: "{{ x | union([y]) }}"\nb: "{{ z | sort }}"', 1),
        ("- x | intersect(y) | list\n- z | length > 0", 1),
        ("a: \"{{ x | difference(y) | map(attribute='key') | difference([z]) | sort }}\"", 0),
        ("- x | intersect(y) | length > 0", 0),
        ("a: \"{{ x | reject('in', y) }}\"", 0),
    ],
)
def test_a_random_order_is_found(text: str, count: int) -> None:
    assert len(unordered(text)) == count
