# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A diff of configuration that leaves secrets out. Private to the collection; pure."""

from __future__ import annotations

import re

SECRET = re.compile(
    r"^(?P<key>[ -]*[A-Za-z_]*(?:pass|password|secret|credentials|token|key|url|dsn)): (?P<value>.+)$",
    re.MULTILINE,
)
"""A line whose value nobody else may read: addresses of webhooks are secrets, too."""

SHOWN = "(not shown)"


def redacted(text: str) -> str:
    """A configuration whose values stand on the lines of their keys, without its secrets."""
    return SECRET.sub(rf"\g<key>: {SHOWN}", text)


def without_secrets(words: str, text: str) -> str:
    """What somebody said about a configuration, without its secrets."""
    for found in SECRET.finditer(text):
        value = found["value"].strip("'\"")
        if len(value) > 3:
            words = words.replace(value, SHOWN)
    return words
