# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How gateways choose an engine for the requests of a model: the keys `routing` and `affinity-…` of an entry.

Private to the collection. A filter that Ansible runs in many tasks imports this file, so the file imports
little.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...core.problems import Findings, is_integer
from .adapters import is_adapter
from .variants import resolve

LEAST, AFFINITY = "least-connections", "affinity"
ROUTINGS = (LEAST, AFFINITY)

HEADER, USER, PREFIX = "header", "user", "prefix"
SOURCES = (HEADER, USER, PREFIX)
"""Where a request has its affinity key: a header, the user in the body, the beginning of the prompt."""

KEY, NAME, LENGTH, LOAD = "affinity-key", "affinity-header", "affinity-prefix", "affinity-load"
NEEDS: Mapping[str, str] = {NAME: HEADER, LENGTH: PREFIX}
"""Keys of an entry, each with the source that it belongs to."""

PREFIX_BYTES = 2048
LOAD_PERCENT = 150
LENGTHS, LOADS = (1, 65536), (110, 1000)
"""The least and the greatest value of affinity-prefix and affinity-load."""

NO_KEY: Mapping[str, str] = {
    "authorization": "the gateway removes this header: it has the client's key",
    "x-request-id": "each request has another value",
    "content-length": "the value says nothing about the conversation",
    "content-type": "all requests have the same value",
    "host": "all requests have the same value",
    "connection": "the header belongs to a connection",
    "transfer-encoding": "the header belongs to a connection",
    "expect": "the header belongs to a connection",
}
"""Headers that cannot be an affinity key, each with the reason."""

_TOKEN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")

_CACHE = "enable-prefix-caching"


@dataclass(frozen=True)
class Routing:
    """How a gateway chooses an engine for a request. Without sources: the engine with the least connections."""

    sources: tuple[str, ...] = ()
    """Where the affinity key of a request is. The first source that the request has counts."""
    header: str = ""
    prefix_bytes: int = PREFIX_BYTES
    load_percent: int = LOAD_PERCENT
    """The load of an engine, in percent of the mean, at which another engine gets the request."""

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Routing:
        """The routing from which asdict() has made `value`. Raises TypeError."""
        return cls(**{**value, "sources": tuple(value.get("sources", ()))})


def of(models: Mapping[str, Any], name: str) -> Routing | None:
    """The routing that an entry asks for; None if it has no valid one. An adapter has the routing of its base."""
    entry = models.get(name)
    if isinstance(entry, Mapping) and is_adapter(entry):
        name = str(entry.get("base"))
    resolved = resolve(models, name)
    if not resolved or "routing" not in resolved or any(bad(key, resolved[key]) for key in CHECKS if key in resolved):
        return None
    if resolved["routing"] == LEAST:
        return Routing()
    return Routing(
        sources=_sources(resolved),
        header=resolved.get(NAME, ""),
        prefix_bytes=resolved.get(LENGTH, PREFIX_BYTES),
        load_percent=resolved.get(LOAD, LOAD_PERCENT),
    )


def bad(key: str, value: Any) -> str:
    """The mistake in a value; empty without one."""
    if key == "routing":
        return "" if value in ROUTINGS else f"must be one of {', '.join(ROUTINGS)}"
    if key == KEY:
        return _bad_sources(value)
    if key == NAME:
        return _bad_header(value)
    least, most = LENGTHS if key == LENGTH else LOADS
    if not is_integer(value) or not least <= value <= most:
        unit = "bytes of the prompt" if key == LENGTH else "percent of the mean load"
        return f"must be a whole number from {least} to {most}: {unit}"
    return ""


CHECKS = ("routing", KEY, NAME, LENGTH, LOAD)
"""The keys of this file in an entry."""


def check(where: str, entry: Mapping[Any, Any], resolved: Mapping[str, Any], found: Findings) -> None:
    """Add the mistakes of an entry whose keys of routing do not fit each other. bad() finds a mistake in one value."""
    own = [key for key in CHECKS if key in entry]
    if not own:
        return
    if resolved.get("routing") != AFFINITY:
        for key in own:
            if key != "routing":
                message = f"does nothing without routing: {AFFINITY}. Add routing, or remove {key}"
                found.problem(where, message, key, entry[key])
        return
    sources = _sources(resolved)
    if HEADER in sources and NAME not in resolved:
        message = f"has {HEADER}, but no header is named: set {NAME}, such as {NAME}: X-Session-ID"
        found.problem(where, message, KEY, resolved[KEY])
    for key, source in NEEDS.items():
        if key in entry and source not in sources:
            message = f"does nothing unless {KEY} has {source}: add {source} there, or remove {key}"
            found.problem(where, message, key, entry[key])
    if resolved.get(_CACHE) is False or resolved.get(f"no-{_CACHE}") is True:
        message = f"brings requests to the engine that has their beginning in its cache, but {_CACHE} is off"
        found.warning(where, message, "routing", AFFINITY)


def _sources(resolved: Mapping[str, Any]) -> tuple[str, ...]:
    value = resolved.get(KEY, PREFIX)
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else ()


def _bad_sources(value: Any) -> str:
    wanted = f"must be one of {', '.join(SOURCES)}, or a list of them in the order in which they count"
    sources = [value] if isinstance(value, str) else value
    if not isinstance(sources, list) or not sources or any(source not in SOURCES for source in sources):
        return wanted
    return f"names a source twice: it {wanted}" if len(set(sources)) < len(sources) else ""


def _bad_header(value: Any) -> str:
    if not isinstance(value, str) or not _TOKEN.fullmatch(value):
        return "must be the name of a header: up to 64 letters, digits, - and _"
    if reason := NO_KEY.get(value.lower()):
        return f"cannot decide which engine a request prefers: {reason}. Choose a header that a conversation keeps"
    return ""
