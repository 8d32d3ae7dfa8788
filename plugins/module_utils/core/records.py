# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Converts dataclasses to plain values for modules and filters, and checks the types of records from files. Private to
the collection. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import NoneType
from typing import Any

TEXTS = "tuple[str, ...]"

TYPES: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (float, int),
    "bool": (bool,),
    "None": (NoneType,),
}
"""The types of a value, by the name in the field's annotation. For JSON, 2.0 may be 2."""


def plain(value: Any) -> Any:
    """Convert dataclasses to dictionaries and tuples to lists, at all levels."""
    if is_dataclass(value):
        return {item.name: plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def known(cls: Any, value: Mapping[str, Any]) -> dict[str, Any]:
    """The items of a dictionary that are fields of a dataclass. Other keys of a module's result are left out."""
    return {item.name: value[item.name] for item in fields(cls) if item.name in value}


def ill_typed(record: Any) -> list[str]:
    """The names of a dataclass's fields whose value has another type than the field declares.

    Judges texts, numbers, truth values, None, and tuples of texts. Other fields need a check of their own.
    """
    return [item.name for item in fields(record) if not _fits(str(item.type), getattr(record, item.name))]


def _fits(declared: str, value: Any) -> bool:
    if declared == TEXTS:
        return isinstance(value, tuple) and all(isinstance(each, str) for each in value)
    names = declared.split(" | ")
    # Not isinstance(): True and False are no numbers here.
    return any(type(value) in TYPES.get(name, (type(value),)) for name in names)
