# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads values from JSON of any origin. Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.problems import is_integer

LIMIT = 1 << 40
"""Largest plausible size in a configuration. A larger number is damage."""


def as_dict(value: Any) -> dict[str, Any]:
    """The value if it is a dictionary, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text_or_none(value: Any) -> str | None:
    """The value if it is a text, else None."""
    return value if isinstance(value, str) else None


def positive(value: Any, most: int = LIMIT) -> int | None:
    """The value if it is a whole number from 1 to `most`, else None. JSON's true is not a number."""
    return value if is_integer(value) and 0 < value <= most else None


class Reader:
    """Reads sizes under the names of different models, and collects wrong values in `problems`."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data
        self.problems: list[str] = []

    def value(self, key: str) -> Any:
        """The value of a key; None without a value."""
        return self._data.get(key)

    def size(self, *keys: str, most: int = LIMIT) -> int | None:
        """The size of the first of these keys that has one. None, 0, -1 and an empty list mean no size."""
        for key in keys:
            value = self._data.get(key)
            if value is None or value in (0, -1) or value == []:
                continue
            # Some models list a number for each layer, or for each kind of experts. The largest counts.
            if isinstance(value, list) and all(positive(item, most) for item in value):
                value = max(value)
            if (found := positive(value, most)) is not None:
                return found
            problem = f"has {key}: {str(value)[:60]!r}, which is not a size"
            if problem not in self.problems:
                self.problems.append(problem)
        return None
