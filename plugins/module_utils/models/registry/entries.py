# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The model registry's entries. Private to the collection.

An entry is flat: a few keys belong to this collection, every other key is an engine flag in kebab-case. Everything here
is pure: it reads dictionaries, and returns values and problems.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ...core.controller import ON_CONTROLLER
from ...core.problems import Findings, Problem
from ..flags.catalogue import Catalogue
from ..flags.check import check as check_flags
from . import adapters, drafts, golden, pooling, ranks, routing, warm_up
from .variants import check_bases, lineage, resolve

POLICIES = ("default", "always")
"""When a system prompt applies. default: to requests without a system prompt of their own; always: to every request."""

_COMMIT = re.compile(r"[0-9a-f]{40}")
_STORE_REVISION = re.compile(r"[0-9a-f]{12}")


def _text(value: Any) -> str:
    if isinstance(value, str):
        return "" if value.strip() else "is empty: give a text, or remove the key"
    if isinstance(value, (list, Mapping)):
        return f"must be one text, found {'a list' if isinstance(value, list) else 'a dictionary'}"
    return "must be a text: put it in quotes if YAML sees another type"


def _policy(value: Any) -> str:
    return "" if value in POLICIES else f"must be one of {', '.join(POLICIES)}"


def _consent(value: Any) -> str:
    return "" if isinstance(value, bool) else "must be true or false"


OWN_KEYS: Mapping[str, Callable[[Any], str]] = {
    "model": _text,
    "revision": _text,
    "checksum": _text,
    "base": _text,
    adapters.KEY: _text,
    "description": _text,
    "system-prompt": _text,
    "system-prompt-policy": _policy,
    "allow-remote-code": _consent,
    golden.KEY: golden.mistake,
    warm_up.KEY: warm_up.mistake,
    **{key: partial(routing.bad, key) for key in routing.CHECKS},
}
"""The collection's own keys of an entry, each with a function that returns the mistake in a value."""


@dataclass(frozen=True)
class Entry:
    """One entry with the keys of its bases."""

    name: str
    store_name: str
    """Name of the entry with the weights: this entry, or its last base, which has the key `model`."""
    model: str
    """Source of the weights: a hub id, a URL, a path on the node, or ``controller:`` with a path there."""
    revision: str | None = None
    checksum: str | None = None
    """Checksum of an archive."""
    description: str = ""
    flags: Mapping[str, Any] = field(default_factory=dict)
    """The engine's flags, by name without leading dashes."""
    system_prompt: str | None = None
    system_prompt_policy: str = POLICIES[0]
    golden_prompts: tuple[Mapping[str, Any], ...] = ()
    warm_up: tuple[Mapping[str, Any], ...] = ()
    """Prompts for an engine that has just loaded, each with prompt or messages."""
    adapter_of: str = ""
    """Of an adapter: the entry whose instances serve the adapter. Empty for every other entry."""

    @property
    def served_as(self) -> str:
        """The name in the store that an engine loads: that of the weights, or its own if it has a system prompt."""
        return self.store_name if self.system_prompt is None else self.name


@dataclass(frozen=True)
class Registry:
    """The result of reading the model registry. `entries` are valid only if there are no problems."""

    names: frozenset[str]
    """All declared names, also of entries with mistakes."""
    entries: Mapping[str, Entry]
    problems: list[Problem]
    warnings: list[Problem]

    def adapters_of(self, name: str) -> tuple[Entry, ...]:
        """The adapters of an entry, sorted by name."""
        return adapters_of(self.entries, name)


def adapters_of(entries: Mapping[str, Entry], name: str) -> tuple[Entry, ...]:
    """The adapters of an entry, sorted by name."""
    return tuple(entry for _name, entry in sorted(entries.items()) if entry.adapter_of == name)


def read(models: Any, catalogue: Catalogue) -> Registry:
    """Read the model registry: entries whose bases exist, mistakes, and warnings, such as about deprecated flags."""
    found = Findings()
    if not isinstance(models, Mapping):
        found.problem("models", f"must be a dictionary of entries by name, found {type(models).__name__}")
        models = {}
    check_bases(models, found)
    entries = {}
    for name, entry in models.items():
        where = f"models.{name}"
        if not isinstance(name, str):
            found.problem(where, "is a name that YAML does not read as a text: put it in quotes")
        elif not isinstance(entry, Mapping):
            found.problem(where, f"must be a dictionary of keys, found {type(entry).__name__}")
        else:
            _check_entry(where, name, entry, models, catalogue, found)
            drafts.check(where, name, entry, models, found)
            resolved = resolve(models, name)
            if resolved is not None:
                _check_remote_code(where, entry, resolved, found)
                _check_prompt(where, entry, resolved, found)
                pooling.check(where, entry, resolved, found)
                ranks.check(where, entry, resolved, found)
                if not adapters.is_adapter(entry):
                    routing.check(where, entry, resolved, found)
                adapters.check_limits(where, name, resolved, models, found)
                base = str(entry.get("base", "")) if adapters.is_adapter(entry) else ""
                entries[name] = _entry(name, lineage(models, name)[-1], resolved, base)
    return Registry(frozenset(map(str, models)), entries, found.problems, found.warnings)


def _entry(name: str, store_name: str, resolved: Mapping[str, Any], adapter_of: str = "") -> Entry:
    prompt = resolved.get("system-prompt")
    return Entry(
        name=name,
        store_name=store_name,
        model=resolved.get("model", ""),
        revision=resolved.get("revision"),
        checksum=resolved.get("checksum"),
        description=resolved.get("description", ""),
        flags={key: value for key, value in resolved.items() if key not in OWN_KEYS},
        # Another value is reported.
        system_prompt=prompt if isinstance(prompt, str) else None,
        system_prompt_policy=resolved.get("system-prompt-policy", POLICIES[0]),
        golden_prompts=golden.sound(resolved.get(golden.KEY)),
        warm_up=warm_up.read(resolved.get(warm_up.KEY)),
        adapter_of=adapter_of,
    )


def _check_entry(
    where: str, name: str, entry: Mapping[Any, Any], models: Mapping[str, Any], catalogue: Catalogue, found: Findings
) -> None:
    """Add the mistakes in the entry's own keys, without those of its bases."""
    if adapters.is_adapter(entry):
        adapters.check(where, name, entry, models, found)
        for key in sorted(adapters.KEYS - {"base"} & set(entry)):
            if mistake := OWN_KEYS[key](entry[key]):
                found.problem(where, mistake, key, entry[key])
        return
    if "model" not in entry and "base" not in entry:
        message = (
            "is required: a hub id, the URL of an archive, a path on the node, or controller:/path; or base, for a "
            "variant or an adapter"
        )
        found.problem(where, message, "model")
    flags = {}
    for key, value in entry.items():
        if not isinstance(key, str):
            found.problem(where, f"has the key {key!r}, which YAML does not read as a text: put it in quotes")
        elif key not in OWN_KEYS:
            flags[key] = value
        elif key != "base" and (mistake := OWN_KEYS[key](value)):
            found.problem(where, mistake, key, value)
    check_flags(where, flags, catalogue, OWN_KEYS, found)


def _check_remote_code(where: str, entry: Mapping[str, Any], resolved: Mapping[str, Any], found: Findings) -> None:
    """Refuse a model's own code unless the operator allows it and pins the revision that was reviewed."""
    keys = {"trust-remote-code", "allow-remote-code", "revision", "checksum"} & set(entry)
    if not keys or resolved.get("trust-remote-code") is not True:
        return
    if resolved.get("allow-remote-code") is not True:
        message = "runs code that comes with the model: read that code, then set allow-remote-code: true beside it"
        found.problem(where, message, "trust-remote-code", True)
    model, revision = str(resolved.get("model", "")), str(resolved.get("revision") or "")
    if model.startswith(("https://", "http://")):
        if not resolved.get("checksum"):
            message = "must pin the code that trust-remote-code runs: write the archive's checksum, sha256:CHECKSUM"
            found.problem(where, message, "checksum", None)
        return
    directory = model.startswith(("/", ON_CONTROLLER))
    if not _COMMIT.fullmatch(revision) and not (directory and _STORE_REVISION.fullmatch(revision)):
        pin = "the store's revision, 12 hexadecimal digits" if directory else "a commit, 40 hexadecimal digits"
        message = f"must pin the code that trust-remote-code runs: write {pin}"
        found.problem(where, message, "revision", resolved.get("revision"))


def _check_prompt(where: str, entry: Mapping[str, Any], resolved: Mapping[str, Any], found: Findings) -> None:
    if "system-prompt-policy" in entry and "system-prompt" not in resolved:
        message = "does nothing without system-prompt: add system-prompt, or remove system-prompt-policy"
        found.problem(where, message, "system-prompt-policy", entry["system-prompt-policy"])
