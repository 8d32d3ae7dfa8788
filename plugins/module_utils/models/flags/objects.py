# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks the keys in flags that take a JSON object. Private to the collection.

The engine itself refuses an unknown key only when it starts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ...core.problems import nearest
from .object_keys import KEYS, VERSION

__all__ = ["VERSION", "unknown"]


def unknown(name: str, value: Any) -> str:
    """The mistake in the keys of an object for the flag `name`; empty without one, and for another value."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return ""
    if name not in KEYS or not isinstance(value, Mapping):
        return ""
    wrong = sorted(str(key) for key in value if str(key) not in KEYS[name])
    hints = [f"{key!r}: {nearest(key, KEYS[name])}" for key in wrong]
    return f"has keys that vLLM {VERSION} does not know: {'; '.join(hints)}" if wrong else ""
