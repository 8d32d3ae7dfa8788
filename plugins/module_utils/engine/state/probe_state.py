# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent's last verdict on an instance, on disk. Private to the collection."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from ...core import files
from ...core.paths import Paths
from ..probe.health import VERDICTS
from .drains import parse_time

SCHEMA = 1

STALE = 60.0
"""Seconds after which a verdict no longer counts."""


@dataclass(frozen=True)
class ProbeState:
    """A verdict. Times are ISO 8601 in UTC."""

    instance: str
    verdict: str
    since: str
    """When the verdict last changed."""
    checked: str
    """When the last probe ended."""
    latency_ms: int | None
    detail: str
    invocation: str = ""
    """systemd's id of the start that was probed."""

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}


def read(paths: Paths, name: str) -> ProbeState | None:
    """The last verdict; None where the file is missing or damaged."""
    try:
        value = files.read_json(paths.probe(name))
    except (OSError, ValueError):
        return None
    if not isinstance(value, dict) or value.get("schema") != SCHEMA or value.get("verdict") not in VERDICTS:
        return None
    latency = value.get("latency_ms")
    texts = {name: value.get(name) for name in ("instance", "verdict", "since", "checked", "detail", "invocation")}
    if not all(isinstance(text, str) for text in texts.values()) or not isinstance(latency, int | None):
        return None
    try:
        for key in ("since", "checked"):
            parse_time(value[key])
    except ValueError:
        return None
    return ProbeState(**texts, latency_ms=latency)  # type: ignore[arg-type]


def stale(state: ProbeState, now: datetime) -> bool:
    """Whether a state is too old or from the future: the agent does not probe, or the clock was set."""
    age = (now - parse_time(state.checked)).total_seconds()
    return not -STALE <= age <= STALE
