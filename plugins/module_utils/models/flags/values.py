# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks a flag's value in an entry, and renders it as arguments. Private to the collection.

A message says what is wrong with the value and what is allowed. The caller adds the entry and the key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ...core.problems import did_you_mean
from .catalogue import ANY, INTEGER, JSON, LIST, MAYBE, NUMBER, OBJECT, ONE, SIZE, SWITCH, TEXT_OR_JSON, Flag

_SUFFIXED = re.compile(r"\b(?:\d+[KMGT]|\d+(?:\.\d+)?[kmgt])\b")
"""A number with k, m, g, t for powers of 1000, or an integer with K, M, G, T for powers of 1024
(vllm/utils/argparse_utils.py). The engine also accepts such numbers in objects, although they are not JSON."""

_NEGATIVE = re.compile(r"-\d+")
"""Texts that begin with a dash, but are not flags for the engine's parser. -0.5 would be a flag: vLLM's parser reads a
text that begins with a dash and has a dot as a flag and a key of its JSON (vllm/utils/argparse_utils.py)."""

_FORMS = {
    INTEGER: "a whole number",
    NUMBER: "a number",
    SIZE: "a whole number, or one such as 32k (thousands) or 32K (times 1024)",
    OBJECT: "a dictionary, or a JSON object in quotes",
    JSON: "a dictionary or list, or JSON in quotes",
}

_UNFIT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
"""Control characters except tab and newline, and surrogates, which a unit's command line cannot contain."""


class Unfit(ValueError):
    """A value that cannot become an argument; the message says why."""


def mistake(flag: Flag, value: Any) -> str:
    """The mistake in a value; empty without one."""
    try:
        _check(flag, value)
    except Unfit as error:
        return str(error)
    return ""


def unlisted(flag: Flag, value: Any) -> str:
    """The mistake of a value that has the right form, but is not in the catalogue's list; else empty."""
    for item in _items(flag, value):
        if flag.choices and not _allowed(flag, item):
            known = [str(choice) for choice in flag.choices]
            return f"must be one of {', '.join(known)}{_hint(item, known)}"
    return ""


def unfamiliar(flag: Flag, value: Any) -> str:
    """A warning about a value that only a plugin of the engine may support; else empty."""
    for item in _items(flag, value):
        if flag.suggested and str(item) not in (*flag.suggested, *_nothing(flag)):
            return f"is not one of the engine's own: {', '.join(flag.suggested)}{_hint(item, flag.suggested)}"
    return ""


def arguments(flag: Flag, value: Any) -> list[str]:
    """The engine's arguments for a value without mistakes."""
    if isinstance(value, bool):
        return [f"--{flag.name}" if value else f"--no-{flag.name}"]
    texts = [_text(item) for item in _items(flag, value)]
    if flag.takes == LIST or (flag.type == ANY and isinstance(value, list)):
        return [f"--{flag.name}", *texts]
    # With an equals sign, because the engine would read a separate value that begins with a dash as the next flag.
    return [
        part
        for text in texts
        for part in ([f"--{flag.name}={text}"] if text.startswith("-") else [f"--{flag.name}", text])
    ]


def _items(flag: Flag, value: Any) -> list[Any]:
    """The single values. For a flag with JSON, a list is one value."""
    return value if isinstance(value, list) and flag.type != JSON else [value]


def _nothing(flag: Flag) -> tuple[str, ...]:
    return ("", "None") if flag.optional else ()


def _hint(item: Any, known: Any) -> str:
    hint = did_you_mean(str(item), known)
    return f"; {hint}" if hint else ""


def _allowed(flag: Flag, item: Any) -> bool:
    text = str(item).lower().replace("-", "_") if flag.folded else str(item)
    return text in {str(choice) for choice in flag.choices} or text in _nothing(flag)


def _check(flag: Flag, value: Any) -> None:
    """Raise Unfit for a value of the wrong form."""
    if value is None:
        raise Unfit("has no value: give one, true for a bare flag, or remove the key")
    if flag.type == SWITCH and not isinstance(value, bool):
        raise Unfit("is a switch: must be true or false, without quotes")
    if isinstance(value, bool):
        _check_switch(flag, value)
        return
    items = _items(flag, value)
    if not items:
        raise Unfit("is an empty list: give at least one value, or remove the key")
    if isinstance(value, list) and flag.type not in (JSON, ANY) and flag.takes in (ONE, MAYBE):
        raise Unfit("takes one value, not a list")
    several = flag.takes == LIST or (flag.type == ANY and isinstance(value, list))
    for item in items:
        _check_item(flag, item, several)


def _check_switch(flag: Flag, value: bool) -> None:
    if flag.type == ANY or (flag.takes == MAYBE and value):
        return
    if flag.type != SWITCH:
        form = _FORMS.get(flag.type, "a text; put words such as on, off, yes and no in quotes")
        raise Unfit(f"is not a switch: must be {form}")
    if not value and not flag.negatable:
        raise Unfit(f"cannot be false, because the engine has no --no-{flag.name}: remove the key, off is the default")


def _check_item(flag: Flag, item: Any, several: bool) -> None:
    text = _text(item)
    if _UNFIT.search(text):
        raise Unfit("contains a control character, or half of a character: remove it")
    if several and text.startswith("-") and not _NEGATIVE.fullmatch(text):
        raise Unfit("contains a value that begins with a dash, which the engine would read as a flag: remove it")
    if text in _nothing(flag):
        return
    if isinstance(item, Mapping):
        if flag.type not in (OBJECT, JSON, TEXT_OR_JSON, ANY):
            raise Unfit(f"must be {_FORMS.get(flag.type, 'a text')}, not a dictionary")
    elif isinstance(item, list):
        if flag.type not in (JSON, ANY):
            raise Unfit(f"must be {_FORMS.get(flag.type, 'a text')}, not a list")
    elif flag.type in _FORMS and text not in flag.words and not _parses(flag.type, text):
        words = f", or {' or '.join(flag.words)}" if flag.words else ""
        raise Unfit(f"must be {_FORMS[flag.type]}{words}")


def _parses(form: str, text: str) -> bool:
    """Whether the engine's own converter accepts the text."""
    try:
        if form == OBJECT:
            return isinstance(json.loads(_SUFFIXED.sub("0", text)), dict)
        if form == JSON:
            return isinstance(json.loads(text), (dict, list))
        if form == NUMBER:
            float(text)
        elif form == INTEGER or not _SUFFIXED.fullmatch(text.strip()):
            int(text)
    except (ValueError, RecursionError):
        return False
    return True


def _text(item: Any) -> str:
    """One value as a text for the command line. Raises Unfit if it has no such text."""
    if isinstance(item, (Mapping, list)):
        try:
            return json.dumps(item, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise Unfit(f"cannot be written as JSON ({error}): use texts, numbers, lists and dictionaries") from None
    if isinstance(item, bool) or not isinstance(item, (str, int, float)):
        raise Unfit(f"contains {item!r}: must be a text or a number; put it in quotes")
    return str(item)
