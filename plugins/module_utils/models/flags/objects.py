# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks the keys and fixed values in flags that take a JSON object. Private to the collection.

The engine itself refuses a mistake there only when it starts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ...core.problems import did_you_mean, nearest
from .object_keys import CHOICES, KEYS, VERSION

__all__ = ["VERSION", "no_object", "unknown", "unlisted"]

ANY_KEYS = ("hf-overrides",)
"""Flags that take an object with any keys. The catalogue alone would also allow a value that is no object."""


def _read(value: Any) -> Any:
    """The value, or the JSON in a text; the text itself if it is no JSON."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


def no_object(name: str, value: Any) -> str:
    """The mistake of a value that is no object, for a flag that takes one; empty without a mistake."""
    if name in (*KEYS, *ANY_KEYS) and value and not isinstance(_read(value), Mapping):
        return "must be a dictionary, or a JSON object in quotes"
    return ""


def unknown(name: str, value: Any) -> str:
    """The mistake in the keys of an object for the flag `name`; empty without one, and for another value."""
    value = _read(value)
    if name not in KEYS or not isinstance(value, Mapping):
        return ""
    wrong = sorted(str(key) for key in value if str(key) not in KEYS[name])
    hints = [f"{key!r}: {nearest(key, KEYS[name])}" for key in wrong]
    return f"has keys that vLLM {VERSION} does not have: {'; '.join(hints)}" if wrong else ""


def unlisted(name: str, value: Any) -> str:
    """The mistake of a text in an object that is not one of the fixed values of its key; else empty."""
    value = _read(value)
    found = []
    for key, allowed in CHOICES.get(name, {}).items():
        given = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(given, str) and given not in allowed:
            same = next((one for one in allowed if one.lower() == given.lower()), "")
            hint = f"did you mean {same!r}?" if same else did_you_mean(given, allowed)
            known = f"vLLM {VERSION} allows {', '.join(allowed)}"
            found.append(f"has {key}: {given!r}, {known}{hint and f'; {hint}'}")
    return "; ".join(found)
