# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HAProxy's rules for requests in flight at the death of an engine (deaths.lua). Private to the collection."""

from __future__ import annotations

from .errors import REFUSED
from .settings import Settings

REMEMBERED = (
    "http-request set-var(txn.began) date(0,ms)",
    # Only for answers of an engine.
    "http-response set-var(txn.answered) bool(true)",
    "http-after-response set-var(txn.status) status",
    "http-after-response set-var(txn.stream) bool(true) if { res.hdr(Content-Type) -m beg text/event-stream }",
)
"""Rules that set the variables that lua.remember reads."""

FIELD = '"remembered":"%[lua.remember]"'
"""The field of the log that calls lua.remember at the end of a request. No rule runs when an answer breaks off."""


def refusal(settings: Settings) -> list[str]:
    """The rules that refuse a key that had requests in flight at several deaths; none if the site allows no refusal."""
    if not settings.refuse_deaths:
        return []
    return [
        "http-request lua.refused unless local",
        f"http-request return {REFUSED.directive()} if {{ var(txn.refused_seconds) -m found }}",
    ]


def service(settings: Settings) -> list[str]:
    """The rules that answer nodes. HAProxy 2.6 passes no arguments to a Lua service, so variables do."""
    return [
        "http-request set-var(txn.now) date(0,ms) if deaths",
        f"http-request set-var(txn.refuse_deaths) int({settings.refuse_deaths}) if deaths",
        f"http-request set-var(txn.refuse_seconds) int({settings.refuse_seconds}) if deaths",
        "http-request use-service lua.deaths if deaths",
    ]
