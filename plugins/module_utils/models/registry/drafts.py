# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The draft model of an entry: another entry, named in `speculative-config`. Private to the collection."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ...core.problems import Findings, is_integer, nearest
from .adapters import is_adapter
from .variants import resolve

KEY = "speculative-config"

NO_MODEL = frozenset({"ngram", "ngram_gpu", "suffix", "custom_class", "extract_hidden_states"})
"""Methods that need no draft (SpeculativeConfig in vLLM 0.32.0, vllm/config/speculative.py)."""

TOKENS = "num_speculative_tokens"

COUNTED = frozenset({"ngram", "ngram_gpu", "draft_model", "mtp"})
"""Methods with which the engine does not start if TOKENS is missing, with any draft."""


def asked(flags: Mapping[str, Any]) -> dict[str, Any]:
    """The flag of an entry, from a dictionary or a text with JSON; empty for another value."""
    value = flags.get(KEY)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}


def named(flags: Mapping[str, Any]) -> str | None:
    """The entry's draft model; None if its method needs no model, or the model itself has the layers."""
    config = asked(flags)
    name = config.get("model")
    return name if isinstance(name, str) and name and method(config) not in NO_MODEL else None


def method(config: Mapping[str, Any]) -> str:
    """The method in the flag's value; empty if the value has none, or one that is not a text."""
    value = config.get("method")
    return value if isinstance(value, str) else ""


def with_path(flags: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The flags with the directory of the draft instead of its name, as the engine takes them."""
    return {**flags, KEY: {**asked(flags), "model": path}} if path else dict(flags)


def of(models: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """The draft models of entries of a model registry, also those that their bases name."""
    return [draft for name in names if (draft := named(resolve(models, name) or {}))]


def check(where: str, name: str, flags: Mapping[str, Any], models: Mapping[str, Any], found: Findings) -> None:
    """Add the mistakes in the draft of an entry, which must be in the store because engines are offline."""
    value = asked(flags).get("method")
    if value is not None and not isinstance(value, str):
        found.problem(where, "must be a text, such as ngram or eagle3", f"{KEY}: method", value)
    _check_tokens(where, flags, found)
    draft = named(flags)
    if draft is None:
        return
    others = [other for other in models if isinstance(other, str) and other != name]
    if draft == name:
        found.problem(where, "names the entry itself as its draft: name a smaller model of the same family", KEY, draft)
    elif is_adapter(models.get(draft)):
        found.problem(where, "is an adapter: a draft must be an entry with the key model", f"{KEY}: model", draft)
    elif draft not in others:
        message = "is the draft. A draft must be another entry of the model registry: engines load it from the store. "
        way = nearest(draft, others)
        if "/" in draft:
            way = f"add an entry with model: {draft}, and write the entry's name here"
        found.problem(where, message + way, f"{KEY}: model", draft)


def _check_tokens(where: str, flags: Mapping[str, Any], found: Findings) -> None:
    """Add the mistake of a missing or wrong TOKENS: how many tokens are guessed at a time."""
    config = asked(flags)
    if not config:
        return
    number = config.get(TOKENS)
    if number is not None and (not is_integer(number) or number < 1):
        message = "must be a whole number from 1: how many tokens are guessed at a time, such as 3"
        found.problem(where, message, f"{KEY}: {TOKENS}", number)
    elif number is None and method(config) in COUNTED:
        message = f"has no {TOKENS}, without which the engine does not start: add how many tokens are guessed at a time"
        found.problem(where, f"{message}, such as {TOKENS}: 3", KEY)
    elif number is None and "model" in config and "method" not in config:
        message = f"has no {TOKENS}: the engine starts only if the draft's config.json has n_predict. Add {TOKENS}: 3"
        found.warning(where, message, KEY)
