# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts a swap, and reads its progress. Private to the collection."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ...core import systemd
from ...core.paths import Paths, swap_unit
from ...engine import activation, bridges, swap_settings
from ...engine.release import Release
from ...engine.state import gangs, pins, releases, swaps
from ...engine.state.drains import format_time
from ...engine.state.swaps import Report, Swap
from ...engine.swap_terms import Terms
from . import damaged, members

POLL_SECONDS = 0.5

STUCK = "stuck"

IDLE_LOOKS = 12
"""How many looks in a row must find the unit inactive. systemd restarts the unit after 2 s."""


@dataclass(frozen=True)
class Request:
    """A request for a swap."""

    name: str
    release: int
    run_id: str
    reason: str
    back: bool = False
    """Whether the release has served before. Then neither golden prompts nor limits of speed judge it."""
    pin: bool = True
    """Whether the release gets a pin, so that it stays although the inventory asks for another one."""
    terms: Terms | None = None
    """None for the terms that the node has recorded."""
    counted: Mapping[str, Any] = field(default_factory=dict)
    """The engine's counters some time ago (proof.counted), for its speed under clients' load."""


class Refused(Exception):
    """The swap does not begin; the message says why. Nothing was changed."""


def begin(paths: Paths, request: Request, *, check: bool = False) -> bool:
    """Record a swap and start it. Returns whether there is anything to do.

    Raises Refused, NoSettings, ReleaseError, SystemdError, OSError, and ValueError if a recorded state is damaged.
    """
    name = request.name
    settings = swap_settings.read(paths)
    kept = releases.numbers(paths, name)
    if request.release not in kept:
        shown = ", ".join(map(str, kept)) or "none"
        raise Refused(f"{name} has no release {request.release}; it has {shown} (inferctl releases {name})")
    target = releases.load(paths, name, request.release)
    _refuse_gang(paths, target)
    found = swaps.read(paths, name)
    if found and found.step not in (swaps.LED, swaps.STUCK):
        if (found.target, found.run_id) == (request.release, request.run_id):
            if not check:
                systemd.systemctl("start", "--no-block", swap_unit(name))
            return True
        if runs(name):
            raise Refused(f"{name} is being swapped for release {found.target} ({found.step}): inferctl status {name}")
    if found and found.step == swaps.DAMAGED:
        found = damaged.rebuilt(paths, name, found)
    wanted = _swap(paths, request, found, request.terms or settings.terms)
    if wanted is None:
        return False
    if not check:
        swaps.begin(paths, name, wanted)
        try:
            # Not `start`: the process of an earlier swap may still be ending, and has not read this swap.
            systemd.systemctl("restart", "--no-block", swap_unit(name))
        except systemd.SystemdError:
            # Nothing has changed. With the new record, the refused swap would begin at the next boot.
            if found is None:
                swaps.end(paths, name)
            else:
                swaps.write(paths, name, found)
            raise
    return True


def _refuse_gang(paths: Paths, target: Release) -> None:
    """Raises Refused if an instance is a gang, or becomes one, and this node cannot swap it."""
    name, gang = target.instance, target.gang
    if gang is not None and not gang.leads:
        raise Refused(
            f"{name} follows {gang.leader.node} here, which swaps the whole gang: run the command on {gang.leader.node}"
        )
    active = releases.active_number(paths, name)
    # A damaged release is no reason against the swap that replaces it.
    with contextlib.suppress(releases.ReleaseError):
        origin = releases.load(paths, name, active) if active is not None else None
        if problem := members.unlike(origin, target):
            raise Refused(problem)


def _swap(paths: Paths, request: Request, found: Swap | None, terms: Terms) -> Swap | None:
    """The swap that would begin; None if there is nothing to do. Raises ReleaseError, SystemdError."""
    name, now = request.name, format_time(datetime.now(UTC))
    gang = releases.load(paths, name, request.release).gang
    wanted = Swap(
        origin=found.origin if found else releases.active_number(paths, name),
        target=request.release,
        run_id=request.run_id,
        since=now,
        back=request.back,
        pin=request.pin,
        reason=request.reason,
        terms=terms,
        step=swaps.BEGUN,
        # Continue the state of a swap that was cut off. A playbook of an older version recorded its swap (LED) only
        # when it stopped the engine.
        touched=found is not None and (found.touched or found.step == swaps.LED),
        bridged=found is not None and found.bridged,
        closed_port=found.closed_port if found else None,
        other_port=found.other_port if found else None,
        notes={"counted": [dict(request.counted)] if request.counted else []},
        gang=gang is not None,
        moves=found.moves if found and found.touched and found.target == request.release else {},
    )
    unequal = gang is not None and members.due(gang, gangs.read(paths, name))
    if found or unequal or not _serves(paths, name, request.release):
        return wanted
    if bridges.left(paths, name):
        return Swap(**{**vars(wanted), "step": swaps.UNBRIDGE, "bridged": True})
    return None


def _serves(paths: Paths, name: str, number: int) -> bool:
    """Whether a release runs and has proved itself, as after a swap. Raises ReleaseError, SystemdError."""
    pin = pins.read(paths, name)
    settled = releases.desired_number(paths, name) in (None, number) or (pin is not None and pin.release == number)
    return settled and releases.proven(paths, name, number) and activation.runs(paths, name, number)


def runs(name: str) -> bool:
    """Whether the unit that performs a swap is active. Raises SystemdError."""
    return systemd.active_state(swap_unit(name)) in (*systemd.RUNNING, "deactivating")


@dataclass(frozen=True)
class Progress:
    """The progress of a swap. `outcome` is empty while the swap is under way."""

    outcome: str
    step: str
    words: tuple[str, ...]
    failure: str
    report: Report | None = None
    permission: str = ""
    """The term that would have allowed the swap."""


def progress(paths: Paths, name: str, run_id: str) -> Progress:
    """The progress or outcome of a run's swap. Raises SystemdError."""
    report = swaps.last(paths, name)
    if report and report.run_id == run_id:
        return Progress(report.outcome, "", report.words, report.failure, report, report.permission)
    # Read the unit before the record: a swap that ends in between has left its report.
    active, found = runs(name), swaps.read(paths, name)
    if found is None or found.run_id != run_id:
        report = swaps.last(paths, name)
        if report and report.run_id == run_id:
            return Progress(report.outcome, "", report.words, report.failure, report, report.permission)
        return Progress(STUCK, "", (), f"the outcome of the swap is unknown: journalctl -u {swap_unit(name)}")
    if found.step == swaps.STUCK:
        return Progress(STUCK, found.step, found.words, found.failure)
    if not active:
        return Progress(STUCK, found.step, found.words, f"the swap does not run: journalctl -u {swap_unit(name)}")
    return Progress("", found.step, found.words, found.failure)


def awaited(paths: Paths, name: str, run_id: str, seconds: float) -> Progress:
    """Wait up to `seconds`, and longer while the unit may restart, until a swap has ended or is stuck. Raises
    SystemdError."""
    deadline = time.monotonic() + seconds
    idle = 0
    while True:
        found = progress(paths, name, run_id)
        # systemd restarts a swap whose process died, so one look is not enough.
        idle = idle + 1 if found.outcome == STUCK and found.step != swaps.STUCK else 0
        if (found.outcome and idle in (0, IDLE_LOOKS)) or (time.monotonic() >= deadline and not idle):
            return found
        time.sleep(POLL_SECONDS)


def line(report: Report, name: str, node: str) -> str:
    """The result of a swap that is done, for the operator."""

    def shown(value: float | None) -> str:
        return "?" if value is None else str(round(value))

    pinned = " (pinned: the inventory asks for another one)" if report.pinned else ""
    drained, load = shown(report.drained_seconds), shown(report.load_seconds)
    words = [
        f"{name} on {node} serves release {report.target}{pinned}. Drained for {drained} s, of which it loaded for"
        f" {load} s; one request alone gets {report.tokens_per_second or '?'} tokens/s",
        *report.words,
    ]
    if report.requests_meanwhile is not None:
        words.append(f"{max(0, report.requests_meanwhile)} requests for {name} came meanwhile")
    return "; ".join(words)
