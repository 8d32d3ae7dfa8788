# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""All flags of a version, from the base and the differences of the later versions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.flags import versions

BASE: dict[str, dict[str, Any]] = {
    "gone": {"type": "text"},
    "limited": {"type": "text", "choices": ["a", "c"]},
    "ordered": {"type": "text", "choices": ["z", "a"]},
    "sized": {"type": "integer", "aliases": ["s"]},
}


def delta(version: str = "2.0", **tables: Any) -> SimpleNamespace:
    """A module of differences; a table that is not given is empty."""
    empty: dict[str, Any] = {"ADDED": {}, "REMOVED": (), "CHANGED": {}, "ADDED_VALUES": {}, "REMOVED_VALUES": {}}
    return SimpleNamespace(VERSION=version, **{**empty, **tables})


def test_a_version_can_add_and_remove_flags() -> None:
    found = versions.apply(BASE, delta(ADDED={"fresh": {"type": "json"}}, REMOVED=("gone",)))
    assert list(found) == ["fresh", "limited", "ordered", "sized"]
    assert found["fresh"] == {"type": "json"}


def test_a_version_can_change_add_and_remove_facts_of_a_flag() -> None:
    found = versions.apply(BASE, delta(CHANGED={"sized": {"type": "size", "aliases": None, "optional": True}}))
    assert found["sized"] == {"type": "size", "optional": True}
    assert {name: facts for name, facts in found.items() if name != "sized"} == {
        name: facts for name, facts in BASE.items() if name != "sized"
    }


@pytest.mark.parametrize(
    ("old", "added", "removed", "expected"),
    [
        (["a", "c"], ["b"], [], ["a", "b", "c"]),
        (["a", "c"], ["b"], ["a"], ["b", "c"]),
        # The parser's order stays where it is not the alphabet's.
        (["z", "a"], ["b"], [], ["z", "a", "b"]),
        ([1, 8, 16], [32], [8], [1, 16, 32]),
    ],
)
def test_a_version_can_add_and_remove_values(
    old: list[Any], added: list[Any], removed: list[Any], expected: list[Any]
) -> None:
    assert versions.merge(old, added, removed) == expected


def test_changed_values_of_a_flag_leave_the_base_unchanged() -> None:
    change = delta(
        ADDED_VALUES={"limited": {"choices": ["b"]}, "ordered": {"choices": ["b"]}},
        REMOVED_VALUES={"limited": {"choices": ["c"]}},
    )
    found = versions.apply(BASE, change)
    assert (found["limited"]["choices"], found["ordered"]["choices"]) == (["a", "b"], ["z", "a", "b"])
    assert BASE["limited"]["choices"] == ["a", "c"]


def test_each_version_builds_on_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    second, third = delta("2.0", ADDED={"fresh": {"type": "json"}}), delta("3.0", CHANGED={"fresh": {"type": "text"}})
    monkeypatch.setattr(versions, "BASE", SimpleNamespace(VERSION="1.0", FLAGS=BASE))
    monkeypatch.setattr(versions, "DELTAS", (second, third))
    known = versions.known()
    assert list(known) == ["1.0", "2.0", "3.0"]
    assert known["1.0"] == BASE
    assert (known["2.0"]["fresh"], known["3.0"]["fresh"]) == ({"type": "json"}, {"type": "text"})
    assert "gone" in known["3.0"]
