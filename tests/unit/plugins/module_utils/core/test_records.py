# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Dataclasses as plain values."""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.baremetal.inference.plugins.module_utils.core.records import known, plain


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
