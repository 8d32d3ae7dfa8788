# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The recorded steps of an instance's recovery, and its breaker. Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from ...core import files
from ...core.paths import Paths
from ...engine.state.drains import parse_time

SCHEMA = 1

WINDOW = timedelta(hours=1)
"""The time over which the budget counts faults."""

KEPT = 50
"""How many of the last steps to record."""


@dataclass(frozen=True)
class Step:
    """A step of the ladder. `time` is ISO 8601 in UTC. `verdict` is the one that caused the step."""

    time: str
    act: str
    verdict: str
    reason: str
    outcome: str = ""


@dataclass(frozen=True)
class Breaker:
    """An open breaker: recovery takes no step by itself. `alerts`: the outcome of each channel, `sent` or why not."""

    since: str
    reason: str
    alerts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class State:
    """The state of an instance's recovery."""

    instance: str
    armed: bool = True
    breaker: Breaker | None = None
    steps: tuple[Step, ...] = ()
    total: int = 0
    """All steps ever taken, for the metrics."""
    gpus_reset: str = ""
    """When the GPUs were last reset with success, ISO 8601 in UTC. Stays when the steps are removed."""

    def with_step(self, step: Step) -> State:
        """The state after one more step."""
        return replace(self, steps=(*self.steps, step)[-KEPT:], total=self.total + 1)

    def recent(self, now: datetime, *kinds: str) -> list[Step]:
        """The steps of these kinds within the window."""
        return [step for step in self.steps if step.act in kinds and in_window(step.time, now)]

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}


def in_window(time: str, now: datetime) -> bool:
    """Whether a time is less than an hour ago.
    A time in the next hour counts, too, since the clock may have been set back."""
    try:
        return abs(now - parse_time(time)) < WINDOW
    except ValueError:
        return False


def read(paths: Paths, name: str) -> State:
    """The state of an instance. A damaged file counts as an empty state: it must not prevent recovery."""
    # The copy in memory exists only while the disk could not be written.
    return _read(paths.recovered_meanwhile(name), name) or _read(paths.recovered(name), name) or State(name)


def _read(path: Path, name: str) -> State | None:
    try:
        value = files.read_json(path)
        if not isinstance(value, dict) or value.get("schema") != SCHEMA:
            return None
        breaker = value.get("breaker")
        return State(
            instance=name,
            armed=bool(value.get("armed", True)),
            breaker=_breaker(breaker) if breaker else None,
            steps=tuple(Step(**{key: str(text) for key, text in step.items()}) for step in value.get("steps", ())),
            total=int(value.get("total", 0)),
            gpus_reset=str(value.get("gpus_reset", "")),
        )
    except (OSError, ValueError, TypeError, AttributeError, KeyError):
        return None


def _breaker(value: Mapping[str, Any]) -> Breaker:
    """Raises AttributeError, KeyError, TypeError."""
    alerts = {str(channel): str(outcome) for channel, outcome in value.get("alerts", {}).items()}
    return Breaker(str(value["since"]), str(value["reason"]), alerts)


def write(paths: Paths, state: State) -> bool:
    """Record a state: on disk, or in memory if the disk cannot be written. Returns whether it changed. Raises OSError
    if neither works."""
    meanwhile = paths.recovered_meanwhile(state.instance)
    try:
        changed = files.write_json(paths.recovered(state.instance), state.to_json())
    except OSError:
        return files.write_json(meanwhile, state.to_json())
    meanwhile.unlink(missing_ok=True)
    return changed
