# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Dataclasses as plain values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.records import ill_typed, known, plain


@dataclass(frozen=True)
class Part:
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Whole:
    part: Part
    parts: list[Part]
    by_name: dict[str, Part]
    number: int | None = None


def test_plain_values_are_those_of_json() -> None:
    part = Part(("a", "b"))
    assert plain(Whole(part, [part, Part()], {"x": part})) == {
        "part": {"names": ["a", "b"]},
        "parts": [{"names": ["a", "b"]}, {"names": []}],
        "by_name": {"x": {"names": ["a", "b"]}},
        "number": None,
    }


def test_only_the_fields_of_a_dataclass_are_known() -> None:
    assert known(Whole, {"part": 1, "invocation": {}, "changed": False}) == {"part": 1}


@dataclass(frozen=True)
class Record:
    name: str = ""
    number: int = 0
    share: float | None = None
    planned: bool = False
    words: tuple[str, ...] = ()
    part: Part | None = None


def test_values_of_the_declared_types_are_well_typed() -> None:
    assert ill_typed(Record()) == []
    assert ill_typed(Record("a", 1, 2, True, ("b",), Part())) == [] == ill_typed(Record(share=0.5))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", None),
        ("name", 1),
        ("number", "1"),
        ("number", True),
        ("number", 1.5),
        ("number", None),
        ("share", "1"),
        ("share", False),
        ("planned", 1),
        ("words", ["a"]),
        ("words", (1,)),
        ("words", "a"),
    ],
)
def test_a_value_of_another_type_is_named(field: str, value: Any) -> None:
    assert ill_typed(replace(Record(), **{field: value})) == [field]
