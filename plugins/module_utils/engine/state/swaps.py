# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a swap: its steps, and how the last swap ended. Private to the collection.

Each step is recorded before it begins: a swap that is cut off continues with the recorded step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...core import files
from ...core.paths import Paths
from ...core.problems import is_integer
from ...core.records import ill_typed
from ..swap_terms import Terms
from . import releases
from .drains import format_time

SCHEMA = 2

LED = "led"
"""Stands for a step: a playbook of a version before 0.2 led this swap, and was cut off. The next swap continues it."""

DAMAGED = "damaged"
"""Stands for a step: the record cannot be understood. node/swap/damaged.py ends such a swap."""

BEGUN, BRIDGE, DRAIN, GATE, STOP, START = "begun", "bridge", "drain", "gate", "stop", "start"
PROBE, ADMIT, WATCH, PROVE, RELEASE, UNBRIDGE = "probe", "admit", "watch", "prove", "release", "unbridge"
STAGED, MEMBERS = "staged", "members"
STUCK = "stuck"
"""The steps. node/swap/machine.py has their order, node/swap/acts.py what each step does."""

STEPS = frozenset(
    {
        *(LED, BEGUN, STAGED, BRIDGE, DRAIN, GATE, STOP, START, PROBE, ADMIT, WATCH, MEMBERS, PROVE, RELEASE),
        *(UNBRIDGE, STUCK),
    }
)
"""What a record may have as its step."""

OF_GANGS = frozenset({STAGED, MEMBERS})
"""Steps that only a gang takes."""

CLOSED = frozenset({GATE, STOP, START, PROBE})
"""Steps in which the gate in front of the engine is closed."""

DONE, RETURNED, REFUSED = "done", "returned", "refused"
"""The outcomes of a swap. DONE: the new release serves. RETURNED: the release before serves again. REFUSED: nothing was
changed. A stuck swap has no outcome yet."""

OUTCOMES = frozenset({DONE, RETURNED, REFUSED})


_NO_FILE = object()
"""Stands for a record that does not exist: a file with JSON's null is damaged."""


@dataclass(frozen=True)
class Move:
    """The numbers of a gang's releases on a follower. Each node has its own numbers."""

    origin: int
    """The follower's release at the start of the swap; 0 without one."""
    target: int


@dataclass(frozen=True)
class Swap:
    """A swap from release `origin` to `target`. `since` is ISO 8601 in UTC. `origin` None: nothing ran before."""

    origin: int | None
    target: int
    run_id: str
    since: str
    back: bool = False
    """Whether this is a rollback, and not an update."""
    pin: bool = True
    """Whether the release stays where the inventory asks for another one."""
    reason: str = ""
    """The reason in words, for the drain, and for the pin of a release that the inventory does not ask for."""
    terms: Terms = field(default_factory=Terms)
    step: str = LED
    returning: bool = False
    """Whether the swap goes back to the release before."""
    touched: bool = False
    """Whether the swap has reached the step `stop`, which ends the engine that served."""
    bridged: bool = False
    """Whether a bridge serves during the swap, or is left over."""
    failure: str = ""
    """Why the swap cannot go forward; empty while it can."""
    permission: str = ""
    """The term with which the swap would have continued: FORCE or ALLOW_DOWNTIME; empty where neither helps."""
    closed_port: int | None = None
    """The port of the release that served, whose gate this swap closes. None: the swap has closed no gate."""
    other_port: int | None = None
    """The port of the other release, whose gate is closed too. None where both releases have the same port."""
    tries: int = 0
    """How often the step has failed. Counted only at `members`, `prove` and `release`, and on the way back."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """What steps have measured, for later steps and for the report."""
    words: tuple[str, ...] = ()
    """Lines for the operator."""
    gang: bool = False
    """Whether the instance is a gang, which this node leads."""
    moves: Mapping[str, Move] = field(default_factory=dict)
    """The followers' releases, by node. Empty before the step STAGED has passed."""

    @property
    def release(self) -> int | None:
        """The release that the swap leads to now."""
        return self.origin if self.returning else self.target

    def release_of(self, node: str, number: int) -> int:
        """The number on a follower of the release that has `number` on the leader; 0 where the swap has none."""
        move = self.moves.get(node)
        if move is None or number not in (self.origin, self.target):
            return 0
        if self.origin == self.target:
            # Only followers swap, to releases with the same gang digest.
            return move.target if self.touched and not self.returning else move.origin
        return move.target if number == self.target else move.origin

    @property
    def closed_ports(self) -> tuple[int, ...]:
        """Every port whose gate this swap closes."""
        return tuple(port for port in (self.closed_port, self.other_port) if port is not None)

    @property
    def gated(self) -> bool:
        """Whether the gate must be closed: also after a restart of the node, before the engine starts."""
        # After a stop, the gate stays closed until the engine has passed the probe.
        closed = CLOSED | {STUCK} | ({BEGUN, STAGED, BRIDGE, DRAIN} if self.touched else set())
        return self.closed_port is not None and self.step in closed


@dataclass(frozen=True)
class Report:
    """How a swap ended. Times are ISO 8601 in UTC. None: not measured."""

    origin: int | None
    target: int
    run_id: str
    since: str
    ended: str
    outcome: str
    """`done`, `returned` or `refused`."""
    failure: str = ""
    permission: str = ""
    """The term with which the swap would have continued (see Swap)."""
    words: tuple[str, ...] = ()
    unheard: tuple[str, ...] = ()
    """Gateways that did not report whether they send requests again."""
    behind: str = ""
    """Which members of a gang could not mark the release as proven, and why; empty if all could."""
    kept_bridge: str = ""
    """Why the bridge could not be removed; empty where there is none."""
    unproven: str = ""
    """Why the release that serves could not be marked as proven; empty where it could."""
    load_seconds: float | None = None
    drained_seconds: float | None = None
    tokens_per_second: float | None = None
    pinned: bool = False
    """Whether the release stays although the inventory asks for another one."""
    requests_meanwhile: int | None = None
    """Requests that the replica set got at the gateways during the swap."""


def read(paths: Paths, name: str) -> Swap | None:
    """The swap that is under way, stuck, or was cut off; None where there is none.

    A record that cannot be understood is a swap as well, at the step DAMAGED: the swap may have left a drain or a
    closed gate. Such a swap leads to the active release.
    """
    unread: tuple[Path, Exception] | None = None
    for path in (paths.swap_meanwhile(name), paths.swap(name)):
        try:
            value = files.read_json(path, missing=_NO_FILE)
            if value is not _NO_FILE:
                return _from_json(value)
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            unread = path, error
    return _damaged(paths, name, *unread) if unread else None


def _damaged(paths: Paths, name: str, path: Path, error: Exception) -> Swap:
    active = releases.active_number(paths, name)
    try:
        since = format_time(datetime.fromtimestamp(path.stat().st_mtime, UTC))
    except OSError:
        since = ""
    foreign = isinstance(error, TypeError | KeyError | AttributeError)
    reason = "has other keys than this version writes" if foreign else str(error).removeprefix(f"{path} ")
    failure = f"{path} is damaged ({reason}): how far the swap of {name} has come is unknown"
    return Swap(active, active or 0, "", since, step=DAMAGED, failure=failure)


def _from_json(value: Any) -> Swap:
    """Raises AttributeError, KeyError, TypeError, ValueError."""
    schema = value.pop("schema", None) if isinstance(value, dict) else None
    if schema == 1:
        return _checked(Swap(**value))
    if schema != SCHEMA:
        raise ValueError(f"is no record of schema {SCHEMA}")
    forms = {"terms": dict, "words": list, "moves": dict}
    if wrong := [key for key, form in forms.items() if key in value and not isinstance(value[key], form)]:
        raise ValueError(f"has values of another type: {', '.join(wrong)}")
    value["terms"] = Terms.from_dict(value["terms"])
    value["words"] = tuple(value["words"])
    value["moves"] = {node: Move(**move) for node, move in value.get("moves", {}).items()}
    return _checked(Swap(**value))


def _checked(swap: Swap) -> Swap:
    """Raises ValueError where a swap has what no step can work with."""
    numbers = (swap.origin, swap.closed_port, swap.other_port)
    if not is_integer(swap.target) or not all(number is None or is_integer(number) for number in numbers):
        raise ValueError("has a release or a port that is no number")
    if not all(is_integer(number) for move in swap.moves.values() for number in (move.origin, move.target)):
        raise ValueError("has a member's release that is no number")
    notes = [] if isinstance(swap.notes, dict) else ["notes"]
    if wrong := [*ill_typed(swap), *notes]:
        raise ValueError(f"has values of another type: {', '.join(wrong)}")
    if swap.step not in STEPS:
        raise ValueError("has no step that this version knows")
    return swap


def _to_json(swap: Swap) -> dict[str, Any]:
    """The form that _from_json reads."""
    moves = {node: vars(move) for node, move in swap.moves.items()}
    return {"schema": SCHEMA, **vars(swap), "terms": vars(swap.terms), "moves": moves}


def write(paths: Paths, name: str, swap: Swap) -> None:
    """Record a step before it begins. Where the disk refuses, record the step in memory. Raises OSError where both
    refuse.

    A restart of the node loses the file in memory. The older step on disk then runs once more.
    """
    value = _to_json(swap)
    try:
        files.write_json(paths.swap(name), value)
        files.write(paths.swap_meanwhile(name), None)
    except OSError:
        files.write_json(paths.swap_meanwhile(name), value)


def begin(paths: Paths, name: str, swap: Swap) -> bool:
    """Record a swap before its first step, and remove the report of the last swap. Returns whether anything changed.

    Raises OSError.
    """
    changed = [
        files.write(paths.swap_report(name), None),
        files.write_json(paths.swap(name), _to_json(swap)),
        files.write(paths.swap_meanwhile(name), None),
    ]
    return any(changed)


def end(paths: Paths, name: str, report: Report | None = None) -> bool:
    """Record the end of a swap. Returns whether there was a swap.

    On a full disk only the report is lost. Raises OSError.
    """
    if report:
        try:
            files.write_json(paths.swap_report(name), {"schema": SCHEMA, **asdict(report)})
        except OSError:
            files.write(paths.swap_report(name), None)
    there = [files.write(path, None) for path in (paths.swap(name), paths.swap_meanwhile(name))]
    return any(there)


def last(paths: Paths, name: str) -> Report | None:
    """How the last swap ended; None where none has ended, or the report is damaged."""
    try:
        value = files.read_json(paths.swap_report(name))
        if not isinstance(value, dict) or value.pop("schema", None) != SCHEMA:
            return None
        lists = {key: tuple(value.get(key, ())) for key in ("words", "unheard")}
        report = Report(**{**value, **lists})
        return None if ill_typed(report) or report.outcome not in OUTCOMES else report
    except (OSError, ValueError, TypeError, KeyError):
        return None


def names(paths: Paths) -> list[str]:
    """The instances whose swap is under way, stuck, or was cut off."""
    found = {
        path.stem
        for directory in (paths.swap("x").parent, paths.swap_meanwhile("x").parent)
        for path in directory.glob("*.json")
    }
    return sorted(name for name in found if read(paths, name))
