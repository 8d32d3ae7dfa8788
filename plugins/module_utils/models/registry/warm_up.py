# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The warm-up prompts of an entry: what an engine that has just loaded is asked before it is let in.

Private to the collection. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

KEY = "warm-up-prompts"

KEYS = frozenset({"prompt", "messages", "max-tokens"})


def mistake(value: Any) -> str:
    """The mistake in warm-up prompts; empty without one."""
    form = "must be a list of texts, or of dictionaries with prompt or messages and, if wanted, max-tokens"
    if not isinstance(value, list) or not value:
        return form
    for item in value:
        if isinstance(item, str) and item:
            continue
        if not isinstance(item, Mapping) or not set(item) <= KEYS:
            return form
        prompt, messages, tokens = item.get("prompt"), item.get("messages"), item.get("max-tokens", 1)
        if (prompt is None) == (messages is None) or (prompt is not None and not (isinstance(prompt, str) and prompt)):
            return form
        if messages is not None and not (isinstance(messages, list) and messages and all(map(_is_message, messages))):
            return "has messages that are no list of dictionaries with role and content"
        if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1:
            return "has a max-tokens that is not a whole number from 1"
    return ""


def _is_message(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("role"), str) and "content" in value


def read(value: Any) -> tuple[Mapping[str, Any], ...]:
    """Warm-up prompts, each as a dictionary; none if one has a mistake, which is reported."""
    if mistake(value):
        return ()
    return tuple({"prompt": item} if isinstance(item, str) else dict(item) for item in value)
