# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The warm-up prompts of an entry. An engine answers them after it has loaded, before requests reach it.

Private to the collection. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...core.problems import is_integer
from ..config.task_names import GENERATE

KEY = "warm-up-prompts"

MESSAGES, PROMPT, TOKENS = "messages", "prompt", "max-tokens"
"""Keys of a prompt: a chat; or a text for the smallest request of the model's task, and how many tokens to make."""

ITEM = "must be a text, or a dictionary with prompt or messages and, if wanted, max-tokens"


def mistake(value: Any) -> str:
    """The first mistake in warm-up prompts, with the number of the prompt; empty without one."""
    if not isinstance(value, list) or not value:
        return f"must be a list, and not empty. Each prompt {ITEM}"
    found = ((number, _item(item)) for number, item in enumerate(value, 1))
    return next((f"prompt {number} {words}" for number, words in found if words), "")


def _item(item: Any) -> str:
    if isinstance(item, str) and item:
        return ""
    if not isinstance(item, Mapping) or not set(item) <= {MESSAGES, PROMPT, TOKENS}:
        return ITEM
    prompt, messages, tokens = item.get(PROMPT), item.get(MESSAGES), item.get(TOKENS, 1)
    if (prompt is None) == (messages is None) or (prompt is not None and not (isinstance(prompt, str) and prompt)):
        return ITEM
    if messages is not None and not (isinstance(messages, list) and messages and all(map(_is_message, messages))):
        return "has messages that are no list of dictionaries with role and content"
    if not is_integer(tokens) or tokens < 1:
        return "has a max-tokens that is not a whole number from 1"
    return ""


def _is_message(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("role"), str) and "content" in value


def read(value: Any) -> tuple[Mapping[str, Any], ...]:
    """Warm-up prompts, each as a dictionary; none if one has a mistake, which is reported."""
    if mistake(value):
        return ()
    return tuple({PROMPT: item} if isinstance(item, str) else dict(item) for item in value)


def without_chats(prompts: Sequence[Mapping[str, Any]], tasks: Sequence[str]) -> Iterator[str]:
    """The mistake of each prompt that is a chat, of a model that answers no chats. `tasks` is empty if unknown."""
    if tasks and GENERATE not in tasks:
        noun = "task is" if len(tasks) == 1 else "tasks are"
        for number, prompt in enumerate(prompts, 1):
            if MESSAGES in prompt:
                yield f"prompt {number} has {MESSAGES}, and the model's {noun} {', '.join(tasks)}: write {PROMPT}"
