# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Golden prompts of the model registry: their forms, and the tasks that each form is for. Private to the collection.
Pure."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ...core.problems import is_integer
from ..config.task_names import CLASSIFY, EMBED, GENERATE, REWARD, SCORE, TRANSCRIBE

KEY = "golden-prompts"

ITEM = (
    "must be a dictionary with prompt, expect (a regular expression) and, if wanted, max-tokens; for speech with audio"
    " (a file of the node), expect and, if wanted, language; for scores and rewards with prompt and order (texts, the"
    " best one first); for vectors with prompt and at least one of order, dimension and norm; for classes with prompt"
    " and label"
)
FORM = f"must be a list, and not empty. Each prompt {ITEM}"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _expression(value: Any) -> str:
    if not _is_text(value):
        return ITEM
    try:
        re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        return f"expects {value!r}, which is not a regular expression: {error}"
    return ""


def _whole(key: str) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        wrong = not is_integer(value) or value < 1
        return f"has a {key} that is not a whole number from 1" if wrong else ""

    return check


def _norm(value: Any) -> str:
    # NaN and infinity are refused: no comparison with them can hold.
    wrong = isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= sys.float_info.max
    return "has a norm that is not a number above 0" if wrong else ""


def _order(value: Any) -> str:
    right = isinstance(value, list) and len(value) > 1 and all(map(_is_text, value)) and len(set(value)) == len(value)
    return "" if right else "has an order that is not a list of at least two different texts"


def _text(key: str) -> Callable[[Any], str]:
    return lambda value: "" if _is_text(value) else f"has a {key} that is not a text, or is empty"


def _audio(value: Any) -> str:
    right = _is_text(value) and value.startswith("/")
    return "" if right else "has an audio that is not the absolute path of a file on the node"


CHECKS: Mapping[str, Callable[[Any], str]] = {
    "prompt": lambda value: "" if _is_text(value) else ITEM,
    "audio": _audio,
    "expect": _expression,
    "max-tokens": _whole("max-tokens"),
    "order": _order,
    "dimension": _whole("dimension"),
    "norm": _norm,
    "label": _text("label"),
    "language": _text("language"),
}
"""The mistake in the value of each key; empty without one."""

_VECTORS = frozenset({"order", "dimension", "norm"})
_FORMS: tuple[tuple[frozenset[str], frozenset[str]], ...] = (
    (frozenset({"prompt", "expect"}), frozenset({"max-tokens"})),
    (frozenset({"audio", "expect"}), frozenset({"language"})),
    (frozenset({"prompt", "label"}), frozenset()),
    *((frozenset({"prompt", key}), _VECTORS) for key in sorted(_VECTORS)),
)
"""The forms of a golden prompt: the keys that it must have, and those that it may have as well."""


def mistake(value: Any) -> str:
    """The first mistake in the golden prompts of an entry, with the number of the prompt; empty without one."""
    if not isinstance(value, list) or not value:
        return FORM
    found = ((number, _item(item)) for number, item in enumerate(value, 1))
    return next((f"prompt {number} {words}" for number, words in found if words), "")


def sound(value: Any) -> tuple[Mapping[str, Any], ...]:
    """The golden prompts of an entry; empty if they have a mistake."""
    return () if mistake(value) else tuple(value)


def _item(item: Any) -> str:
    keys = set(item) if isinstance(item, Mapping) else set()
    if not any(needed <= keys <= needed | more for needed, more in _FORMS):
        return ITEM
    return next(filter(None, (CHECKS[key](item[key]) for key in CHECKS if key in keys)), "")


def name(item: Mapping[str, Any]) -> str:
    """What a golden prompt is called in messages: its text or its file."""
    return str(item.get("prompt") or item["audio"])


def tasks_of(item: Mapping[str, Any]) -> tuple[str, ...]:
    """The tasks that a golden prompt is for. A model must have one of them."""
    if "audio" in item:
        return (TRANSCRIBE,)
    if "expect" in item:
        return (GENERATE,)
    if "label" in item:
        return (CLASSIFY,)
    return (EMBED,) if {"dimension", "norm"} & set(item) else (EMBED, SCORE, REWARD)


def wrong_tasks(prompts: Sequence[Mapping[str, Any]], tasks: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each golden prompt that is for none of a model's tasks, with the mistake. `tasks` is empty if unknown."""
    for item in prompts:
        wanted = tasks_of(item)
        if tasks and not set(wanted) & set(tasks):
            noun = "task is" if len(tasks) == 1 else "tasks are"
            message = (
                f"is a golden prompt for the task {' or '.join(wanted)}, and the model's {noun} {', '.join(tasks)}"
            )
            yield name(item), f"{message}: {_advice(tasks)}"


def _advice(tasks: Sequence[str]) -> str:
    ways = {
        GENERATE: "use prompt and expect",
        TRANSCRIBE: "use audio and expect",
        EMBED: "use order, dimension or norm",
        **dict.fromkeys((SCORE, REWARD), "use order"),
        CLASSIFY: "use label",
    }
    found = [ways[task] for task in tasks if task in ways]
    return found[0] if found else "remove it, because this task has no golden prompts"
