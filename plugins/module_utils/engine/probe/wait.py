# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits for engines by asking systemd, and shows the last lines of the log of engines that failed. Private to the
collection."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from ...core import systemd
from ...core.paths import Paths, journal_tag, unit_name
from .. import environment
from ..state import attempts, gangs, releases
from ..state.drains import parse_time

POLL_INTERVAL = 0.3
"""Seconds between two questions to systemd."""

LAST_WORDS = 25
"""The most lines of the log that are shown, without earlier errors."""

EARLIER_ERRORS = 3
"""The most earlier errors that are shown, too: the cause is often above a long traceback of its consequence."""

_ERROR_LINES = 3
"""The lines that are shown of an earlier error: its message may begin on the next line."""

_JOURNAL_LINES = 600
"""Journal entries that are searched; an engine writes about 150 until it fails."""

_STARTING = "7d4958e842da4a758f6c1cdc7b36dcc5"
"""The id of the message with which a start begins: SD_MESSAGE_UNIT_STARTING in systemd's sd-messages.h."""

_ERROR = re.compile(r"^(?:\([^)]*\) )?(?:ERROR [^\]]*\] )?[A-Za-z_][\w.]*(?:Error|Exception)(?::|$)")
"""The last line of a traceback, with or without the prefixes of vLLM's processes and of its logger."""

_UNDERLINE = re.compile(r"^[\s^~]*$")
"""Empty lines, and lines in which Python marks a part of the line above."""

_STARTS = frozenset({"start-pre", "start", "start-post"})
"""Sub-states of a running start."""

_BEGAN, _BEGAN_MONOTONIC = "ExecMainStartTimestamp", "ExecMainStartTimestampMonotonic"

REFUSAL_SLACK = 60
"""Seconds by which a refusal must outlast the leader's drain."""

PROPERTIES = (
    "LoadState",
    "ActiveState",
    "SubState",
    "Result",
    "StatusText",
    "NRestarts",
    "Job",
)
"""The properties of a unit that judge() needs."""


@dataclass(frozen=True)
class Outcome:
    """The state of an instance: `ready`, `loading` or `failed`. `last_words` only where the instance failed."""

    instance: str
    state: str
    status: str = ""
    last_words: str = ""


def wait_ready(paths: Paths, names: Iterable[str], timeout: float, *, refusals: bool = False) -> list[Outcome]:
    """Wait until every instance is ready or has failed, at most `timeout` seconds. Raises SystemdError.

    `refusals`: a follower that its leader refuses fails, too, once the leader has had time to drain its gang.
    """
    wanted = list(names)
    deadline = time.monotonic() + timeout
    while True:
        outcomes = _judged(paths, wanted, refusals=refusals)
        if all(outcome.state != "loading" for outcome, _retrying in outcomes) or time.monotonic() >= deadline:
            return _with_words(paths, outcomes)
        time.sleep(min(POLL_INTERVAL, max(0.0, deadline - time.monotonic())))


def outcomes(paths: Paths, names: list[str]) -> list[Outcome]:
    """The states of the instances now. Raises SystemdError."""
    return _with_words(paths, _judged(paths, names))


def _judged(paths: Paths, names: list[str], *, refusals: bool = False) -> list[tuple[Outcome, bool]]:
    """The states of the instances, without log lines, and whether another start is running. Raises SystemdError."""
    shown = systemd.show(map(unit_name, names), (*PROPERTIES, *((_BEGAN, _BEGAN_MONOTONIC) if refusals else ())))
    outcomes = []
    for name in names:
        properties = shown[unit_name(name)]
        state, status = judge(properties, attempts.count(paths, name))
        retrying = properties["SubState"] in _STARTS
        if refusals and state == "loading" and (why := refusal(paths, name, properties)):
            # The log of the present start has the reason.
            state, status, retrying = "failed", why, False
        outcomes.append((Outcome(name, state, status), retrying))
    return outcomes


def refusal(paths: Paths, name: str, properties: dict[str, str]) -> str:
    """Why a follower cannot start: its leader has refused it for longer than a drain of the gang takes. Else empty.

    Until then, the leader may still end its gang and start the follower's release. The follower's drain limit stands
    for that of its leader.
    """
    known = gangs.read(paths, name)
    if known is None or known.state != gangs.REFUSED or properties["SubState"] != "start":
        return ""
    try:
        since = parse_time(known.since)
        begun = float(properties[_BEGAN].removeprefix("@"))
        runs = time.monotonic() - int(properties[_BEGAN_MONOTONIC]) / 1e6
        number = releases.active_number(paths, name)
        release = None if number is None else releases.load(paths, name, number)
    except (KeyError, OSError, ValueError, releases.ReleaseError):
        return ""
    # A record that is older than this start says nothing about this start.
    if release is None or since.timestamp() < begun:
        return ""
    age = (datetime.now(UTC) - since).total_seconds()
    # The monotonic clock also counts, because a boot may correct the wall clock.
    if min(age, runs) < release.drain_timeout + release.adapter.stop.kill_grace + REFUSAL_SLACK:
        return ""
    return f"its leader has refused it for {age:.0f} s: {known.detail}"


def _with_words(paths: Paths, judged: list[tuple[Outcome, bool]]) -> list[Outcome]:
    """The outcomes, with the last log lines of instances that failed. The journal is read once, not for every poll."""
    return [
        replace(outcome, last_words=last_words(paths, outcome.instance, retrying=retrying))
        if outcome.state == "failed"
        else outcome
        for outcome, retrying in judged
    ]


def judge(properties: dict[str, str], attempt: int) -> tuple[str, str]:
    """State and status of an instance from its unit's properties and the number of starts without success.

    Under Restart=always systemd repeats a failed start again and again: such an instance counts as failed.
    """
    active, sub = properties["ActiveState"], properties["SubState"]
    text = properties.get("StatusText", "")
    if properties.get("NRestarts", "0") == "0":
        # systemd has not restarted the unit by itself: an older count no longer matters.
        attempt = min(attempt, 1)
    if active in ("active", "reloading", "refreshing"):
        return "ready", text
    if active == "activating" and sub == "auto-restart":
        return ("failed", f"start {attempt} failed; systemd tries again") if attempt else ("loading", "restarting")
    if active == "activating" and attempt > 1:
        return "failed", f"{attempt - 1} starts failed; systemd tries again"
    if active == "activating":
        return "loading", text or "preparing"
    if active == "deactivating":
        return "loading", text or "stopping"
    # A running unit continues without its file: only a unit that does not run gets here.
    if properties["LoadState"] == "not-found":
        return "failed", "has no unit: run baremetal.inference.site"
    if properties.get("Job", "0") not in ("", "0"):
        return "loading", "waiting for systemd to start it"
    if active == "failed":
        return "failed", f"systemd gave up: {properties.get('Result', 'failed')}"
    result = properties.get("Result", "success")
    return "failed", "is stopped" if result == "success" else f"is stopped; its last run failed: {result}"


def last_words(paths: Paths, name: str, *, retrying: bool) -> str:
    """The log of the engine and its unit from the last failed start, with secrets masked.

    `retrying`: another start is already running, and the start before it counts.
    """
    query = [f"SYSLOG_IDENTIFIER={journal_tag(name)}", "+", f"_SYSTEMD_UNIT={unit_name(name)}", "+"]
    command = ["journalctl", "--quiet", "--output=json", f"--lines={_JOURNAL_LINES}", *query, f"UNIT={unit_name(name)}"]
    try:
        result = subprocess.run(command, capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"(the journal cannot be read: {error})"
    if result.returncode != 0:
        return f"(the journal cannot be read: {result.stderr.decode(errors='replace').strip()})"
    words = select(parse_journal(result.stdout), retrying)
    return environment.mask(words, environment.secrets(environment.read(paths, name))) or "(the journal is empty)"


def parse_journal(raw: bytes) -> list[dict[str, Any]]:
    """The entries of `journalctl --output=json`; a line that is not JSON is left out."""
    entries = []
    for line in raw.splitlines():
        with contextlib.suppress(ValueError):
            entries.append(json.loads(line))
    return entries


def select(entries: list[dict[str, Any]], retrying: bool) -> str:
    """The last lines of the failed start, and errors before those lines."""
    starts = [index for index, entry in enumerate(entries) if entry.get("MESSAGE_ID") == _STARTING]
    if retrying and starts:
        entries = entries[: starts.pop()]
    if starts:
        entries = entries[starts[-1] :]
    lines = [line for entry in entries for line in _message(entry).splitlines() if not _UNDERLINE.match(line)]
    before, tail = lines[:-LAST_WORDS], lines[-LAST_WORDS:]
    errors = [index for index, line in enumerate(before) if _ERROR.match(line)][-EARLIER_ERRORS:]
    earlier = sorted({line for index in errors for line in range(index, index + _ERROR_LINES) if line < len(before)})
    return "\n".join([*(before[line] for line in earlier), *(["[…]"] if earlier else []), *tail])


def _message(entry: dict[str, Any]) -> str:
    """The text of an entry. The journal writes a text with control characters, such as colours, as a list of bytes."""
    message = entry.get("MESSAGE") or ""
    if isinstance(message, list):
        message = bytes(byte for byte in message if isinstance(byte, int)).decode(errors="replace")
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", str(message)).rstrip()
