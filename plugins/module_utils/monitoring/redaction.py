# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removes secrets from a configuration's diff and from messages. Private to the collection; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

SECRET = re.compile(
    r"(pass|password|secrets?|credentials?|tokens?|keys?|urls?|dsn|headers|params)$",
    re.IGNORECASE,
)
"""Endings of keys with secret values. Addresses of webhooks are secrets, too.
Headers and parameters of requests may contain secrets."""

LINE = re.compile(r"^(?P<before>[ -]*)(?:(?P<key>[\w.-]+|'[^']*'|\"[^\"]*\"):(?: +|$))?(?P<value>.*)$", re.MULTILINE)
"""A line of YAML in block style."""

SHOWN = "(not shown)"


def redacted(text: str) -> str:
    """A configuration in YAML's block style, without its secrets."""
    return "\n".join(shown + (SHOWN if secret else "") for shown, secret in _lines(text))


def without_secrets(words: str, text: str) -> str:
    """A message about a configuration, without the configuration's secrets."""
    for _shown, secret in _lines(text):
        value = secret.strip("'\"")
        if len(value) > 3:
            words = words.replace(value, SHOWN)
    return words


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Each line in two parts: what may be shown, and what is secret.

    The value of a key that matches SECRET is secret, and so are all lines below that key.
    """
    hidden: int | None = None
    for found in LINE.finditer(text):
        column, key, value = len(found["before"]), found["key"], found["value"]
        if hidden is not None and found[0].strip() and column <= hidden:
            hidden = None
        if hidden is None and key and SECRET.search(key.strip("'\"")):
            hidden = column
        yield (found[0], "") if hidden is None else (found[0].removesuffix(value), value)
