# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Converts dataclasses to plain values for modules and filters. Private to the collection. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any


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
