# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Dataclasses as the plain values that modules and filters exchange. Private to the collection. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any


def plain(value: Any) -> Any:
    """Dictionaries, lists and scalars instead of dataclasses and tuples."""
    if is_dataclass(value):
        return {item.name: plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def known(cls: Any, value: Mapping[str, Any]) -> dict[str, Any]:
    """What a dictionary has of the fields of a dataclass. A module's result has more keys, which are left out."""
    return {item.name: value[item.name] for item in fields(cls) if item.name in value}
