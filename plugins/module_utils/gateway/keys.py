# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks the clients' keys that an operator declares, and makes HAProxy's maps of them. Private to the collection."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..core.problems import Problem, is_integer, nearest
from ..core.secrets import ADVICE, is_placeholder
from .backends import Backend, Fleet
from .names import KEYS_MAP

VARIABLE = "gateway_keys"

KEYS = ("name", "key", "sha256", "models", "requests_per_minute", "concurrent_requests")

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Names appear in maps, logs, and a table with 64 characters per name."""

KEY = re.compile(r"[A-Za-z0-9._~+/=-]{16,512}")
"""Characters of a bearer token (RFC 6750, 2.1).
A key must be long, since a plain SHA-256 protects no key that can be guessed."""

DIGEST = re.compile(r"[0-9a-f]{64}")

NO_LIMIT = 2**31 - 1
"""The value for no limit. HAProxy's integers have 64 bits, but only 32 bits in old tables."""

ANONYMOUS = "anonymous"
"""The name of clients without a key, if they are admitted."""


@dataclass(frozen=True)
class Key:
    """A client, as the gateway knows it: without the key itself."""

    name: str
    sha256: str
    """Empty for clients without a key."""
    models: tuple[str, ...] | None
    """The names that the client may request; None for all."""
    requests_per_minute: int
    concurrent_requests: int


def read_keys(
    declared: Iterable[Any], fleet: Fleet, requests_per_minute: int, concurrent_requests: int
) -> tuple[list[Key], list[Problem]]:
    """Returns the keys without a mistake, and every mistake. The two limits apply to keys without their own.
    No message shows a key."""
    keys: list[Key] = []
    problems: list[Problem] = []
    names: list[str] = []
    digests: dict[str, str] = {}
    for position, raw in enumerate(declared):
        where = f"{VARIABLE}[{position}]"
        if not isinstance(raw, Mapping):
            problems.append(Problem(where, f"must be a dictionary with {', '.join(KEYS)}"))
            continue
        name = raw.get("name")
        where = f"{where} ({name if isinstance(name, str) else 'without a name'})"
        found = _check(where, raw, fleet)
        digest = _digest(raw)
        if name in names or name == ANONYMOUS:
            found.append(Problem(where, "is taken: give every key its own name", "name", name))
        if digest and digest in digests:
            found.append(Problem(where, f"has the same key as {digests[digest]}: give every client its own key"))
        names += [name] if isinstance(name, str) else []
        digests.setdefault(digest, where)
        problems += found
        if not found:
            keys.append(
                Key(
                    name=str(name),
                    sha256=digest,
                    models=None if raw.get("models") is None else tuple(raw["models"]),
                    requests_per_minute=raw.get("requests_per_minute", requests_per_minute),
                    concurrent_requests=raw.get("concurrent_requests", concurrent_requests),
                )
            )
    return keys, problems


def _check(where: str, raw: Mapping[str, Any], fleet: Fleet) -> list[Problem]:
    problems = [
        Problem(where, f"is not a key of an entry: {nearest(str(key), KEYS)}", str(key))
        for key in sorted(set(map(str, raw)) - set(KEYS))
    ]
    name, plain, digest, models = (raw.get(key) for key in ("name", "key", "sha256", "models"))
    if not isinstance(name, str) or not NAME.fullmatch(name):
        problems.append(Problem(where, "must be 1 to 64 letters, digits and . _ -", "name", name))
    if (plain is None) == (digest is None):
        problems.append(Problem(where, "must have either `key` or `sha256` (of the key, as sha256sum prints it)"))
    elif plain is not None and not (isinstance(plain, str) and KEY.fullmatch(plain)):
        message = "must be 16 to 512 letters, digits and . _ ~ + / = - (`openssl rand -hex 32` makes one)"
        problems.append(Problem(where, message, "key"))
    elif plain is not None and is_placeholder(plain):
        problems.append(Problem(where, f"is a placeholder: {ADVICE}", "key"))
    elif digest is not None and not DIGEST.fullmatch(str(digest)):
        problems.append(Problem(where, "must be 64 lower-case hexadecimal digits", "sha256"))
    if models is not None and not isinstance(models, (list, tuple)):
        problems.append(Problem(where, "must be a list of names; leave it out for all", "models", models))
    else:
        known = {*fleet.routes, *fleet.declared}
        problems += [
            Problem(where, f"is served by no instance: {nearest(str(model), known)}", "models", model)
            for model in models or []
            if not isinstance(model, str) or model not in known
        ]
    for limit, least in (("requests_per_minute", 0), ("concurrent_requests", 0)):
        value = raw.get(limit, least)
        if not is_integer(value) or value < least:
            problems.append(Problem(where, "must be a whole number, 0 for no limit", limit, value))
    return problems


def _digest(raw: Mapping[str, Any]) -> str:
    if raw.get("sha256") is not None:
        return str(raw["sha256"])
    return hashlib.sha256(str(raw["key"]).encode()).hexdigest() if raw.get("key") is not None else ""


def allowed_backends(key: Key, fleet: Fleet) -> list[Backend]:
    """The backends that a key may use.

    A right applies to engines, not names: an engine answers to all of its names. The model of the inventory counts as
    well as the model that is served. So an update that is half done, or returned, takes no right from a client.
    """
    if key.models is None:
        return list(fleet.backends)
    engines = {
        replica
        for backend in fleet.backends
        for replica in backend.replicas
        if not {
            *(replica.name, replica.model, replica.declared),
            *(*replica.adapters, *replica.declared_adapters),
        }.isdisjoint(key.models)
    }
    return [backend for backend in fleet.backends if engines.issuperset(backend.replicas)]


def key_maps(keys: Iterable[Key], fleet: Fleet) -> dict[str, str]:
    """The maps about keys, by file name. Each line has what HAProxy looks up, and the result."""
    keys = sorted(keys, key=lambda key: key.name)
    return {
        KEYS_MAP: "".join(f"{key.sha256} {key.name}\n" for key in keys if key.sha256),
        "rates.map": "".join(f"{key.name} {key.requests_per_minute or NO_LIMIT}\n" for key in keys),
        "concurrency.map": "".join(f"{key.name} {key.concurrent_requests or NO_LIMIT}\n" for key in keys),
        "rights.map": "".join(
            f"{key.name}|{backend.name} 1\n" for key in keys for backend in allowed_backends(key, fleet)
        ),
    }
