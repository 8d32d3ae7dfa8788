# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests a token from each replica set through the gateway. Private to the collection."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ..core.local_http import LocalConnection
from ..engine.inventory import bridge_name, next_name
from . import runtime
from .names import CONTROL_SOCKET, LOCAL_PATH, LOCAL_SOCKET, SET

POLL_SECONDS = 1.0

NO_TEXT = "no text"
"""What `ask` returns for an engine whose model makes no text."""

ON_PURPOSE = ("DRAIN", "MAINT")
"""Beginnings of the status of a drained server."""


@dataclass(frozen=True)
class Answers:
    """The names that answered, those of them whose model makes no text, the drained names, and the last error of each
    name that did not answer."""

    answered: list[str]
    textless: list[str]
    drained: list[str]
    unanswered: dict[str, str]


def ask(name: str, seconds: float) -> str:
    """Request one token. Returns why there is none; empty on success, NO_TEXT if the engine makes no text."""
    body = json.dumps({"model": name, "prompt": "ping", "max_tokens": 1})
    connection = LocalConnection(Path(LOCAL_SOCKET), seconds)
    try:
        connection.request("POST", LOCAL_PATH, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode("utf-8", errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return f"{LOCAL_SOCKET}: {error}"
    finally:
        connection.close()
    if _has_no_completions(answer.status, text):
        return NO_TEXT
    return "" if answer.status == 200 else f"{answer.status}: {text[:500]}"


def _has_no_completions(status: int, text: str) -> bool:
    """Whether an engine has answered whose model makes no text. A 404 of the gateway has an `error`, and no `detail`.

    Engines of embeddings and scores do not have the path of completions (vLLM: FastAPI's own 404).
    """
    try:
        return status == 404 and "detail" in json.loads(text)
    except (ValueError, TypeError):
        return False


def is_drained(name: str, states: Mapping[str, str]) -> bool:
    """Whether all engines of a replica set are drained.
    Ignores bridges and next servers, which are down most of the time."""
    others = (f"{bridge_name(name)}.", f"{next_name(name)}.")
    statuses = [status for server, status in states.items() if not server.startswith(others)]
    return bool(statuses) and all(status.startswith(ON_PURPOSE) for status in statuses)


def server_states() -> Mapping[str, Mapping[str, str]]:
    """The status of every server, by backend. Raises OSError."""
    return runtime.server_states(runtime.ask(Path(CONTROL_SOCKET)))


def ask_until(name: str, deadline: float) -> tuple[str, str]:
    """Request a token until one comes, the set is drained or the time is over.
    Returns the name of the field of Answers, and the last error."""
    while True:
        try:
            if is_drained(name, server_states().get(SET + name, {})):
                return "drained", ""
            why = ask(name, max(1.0, deadline - time.monotonic()))
        except OSError as error:
            why = f"{CONTROL_SOCKET}: {error}"
        if why in ("", NO_TEXT):
            return "textless" if why else "answered", ""
        if time.monotonic() >= deadline:
            return "unanswered", why
        time.sleep(POLL_SECONDS)


def ask_all(names: Sequence[str], deadline: float) -> Answers:
    """Request from all names at once, so that a held request delays no other name."""
    with ThreadPoolExecutor(max(1, len(names))) as pool:
        ends = dict(zip(names, pool.map(lambda name: ask_until(name, deadline), names), strict=True))
    return Answers(
        [name for name, (end, _why) in ends.items() if end in ("answered", "textless")],
        [name for name, (end, _why) in ends.items() if end == "textless"],
        [name for name, (end, _why) in ends.items() if end == "drained"],
        {name: why for name, (end, why) in ends.items() if end == "unanswered"},
    )


def report(answers: Answers) -> str:
    """A message with each name that did not answer and the states of its engines; empty if all answered."""
    if not answers.unanswered:
        return ""
    try:
        states = server_states()
    except OSError:
        states = {}
    lines = [
        f"{name}: {why} State of its engines: "
        + (", ".join(f"{host} {status}" for host, status in states.get(SET + name, {}).items()) or "none")
        for name, why in answers.unanswered.items()
    ]
    return "\n- ".join(["HAProxy runs, but these replica sets do not answer through the gateway:", *lines])
