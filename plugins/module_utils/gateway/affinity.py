# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HAProxy's rules of a backend that sends related requests to the same engine. Private to the collection; pure.

gateway.lua chooses the engine, and `use-server` applies the choice. If there is no choice, or the chosen server goes
down, HAProxy balances as without affinity. `balance hash` cannot be used: its requests queue at a full engine while
another engine is free.
"""

from __future__ import annotations

from ..models.registry.routing import HEADER, PREFIX, USER, Routing

USERS = ("$.prompt_cache_key", "$.user")
"""Where OpenAI's API has the user: the newer name first."""

CHAT = "path -m end /chat/completions"

FIRST_OF_CHAT = ("$.messages[0].content", "$.messages[0].content[0].text")
SECOND_OF_CHAT = ("$.messages[1].content", "$.messages[1].content[0].text")
FIRST, SECOND = ("$.instructions",), ("$.prompt", "$.input", "$.input[0].content", "$.query")
"""The first two texts of a prompt. A chat has the system prompt and the question; another request has the instructions
and the prompt. HAProxy 2.6 finds no lists, so the first element of a list counts."""

FILL_PERCENT = 90
"""Affinity fills an engine up to this share of its limit. So a request seldom queues at its preferred engine
while another one is free, even if two threads choose the same engine at once."""


def rules(routing: Routing, engine_requests: int) -> list[str]:
    """The rules of a backend; none without affinity. An engine gets at most `engine_requests` at once."""
    if not routing.sources:
        return []
    made = {HEADER: _header, USER: _user, PREFIX: _prefix}
    most = max(1, engine_requests * FILL_PERCENT // 100)
    return [
        *(rule for source in routing.sources for rule in made[source](routing)),
        f"http-request lua.prefer {routing.load_percent} {most}",
        "use-server %[var(txn.engine)] if { var(txn.engine) -m found }",
    ]


def _unless(variable: str) -> str:
    return f"unless {{ var({variable}) -m found }}"


UNKNOWN = _unless("txn.affinity")


def _header(routing: Routing) -> list[str]:
    value = f"req.fhdr({routing.header})"
    wanted = f"if {{ {value} -m len gt 0 }} !{{ var(txn.affinity) -m found }}"
    return [f"http-request set-var(txn.affinity) {value},xxh64 {wanted}"]


def _user(_routing: Routing) -> list[str]:
    return [f"http-request set-var(txn.affinity) req.body,json_query('{query}'),xxh64 {UNKNOWN}" for query in USERS]


def _prefix(routing: Routing) -> list[str]:
    """The first bytes of the first two texts together."""
    cut = f"bytes(0,{routing.prefix_bytes})"

    def texts(variable: str, queries: tuple[str, ...], condition: str) -> list[str]:
        unknown = f"{condition} !{{ var(txn.affinity) -m found }} !{{ var({variable}) -m found }}"
        found = (f"req.body,json_query('{query}'),{cut}" for query in queries)
        return [f"http-request set-var({variable}) {text} if {unknown}" for text in found]

    return [
        *texts("req.first", FIRST_OF_CHAT, f"{{ {CHAT} }}"),
        *texts("req.second", SECOND_OF_CHAT, f"{{ {CHAT} }}"),
        *texts("req.first", FIRST, f"!{{ {CHAT} }}"),
        *texts("req.second", SECOND, f"!{{ {CHAT} }}"),
        f"http-request set-var(txn.affinity) var(req.first),concat(|,req.second),{cut},xxh64 {UNKNOWN}",
        f"http-request set-var(txn.affinity) var(req.second),xxh64 {UNKNOWN}",
    ]
