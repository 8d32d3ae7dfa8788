# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes the steps of a swap until the swap has ended or is stuck. Private to the collection.

If this process dies, systemd starts it again, and the swap continues with the recorded step.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ...core import journal
from ...core.paths import Paths
from ...engine import gate, swap_settings
from ...engine.state import lock, swaps
from ...engine.state.drains import format_time
from ...engine.state.swaps import Report, Swap
from . import damaged, machine
from .acts import STEPS
from .node import Node, StepFailed
from .traffic import GATE_INTERVAL, Traffic

LOCK_SECONDS = 7200
"""Least seconds of a lock. The lock is renewed before each step."""


class Performance:
    """The swap of one instance."""

    def __init__(
        self,
        paths: Paths,
        name: str,
        make_node: Callable[[Callable[[str], None]], Node],
        steps: Mapping[str, Callable[[Node, Swap], dict[str, Any]]] | None = None,
        entries: journal.Journal | None = None,
    ) -> None:
        self._paths = paths
        self._name = name
        self._steps = STEPS if steps is None else steps
        self._entries = entries or journal.Journal()
        self._swap: Swap | None = None
        self._node = make_node(self._say)

    def run(self, unknown: str = "") -> Report | None:
        """Take all remaining steps. Returns the report; None if the swap is stuck, or there is no swap.

        `unknown`: why the settings of swaps cannot be read; empty if they can.

        Raises OSError if the record of a step can be written neither to disk nor to memory. Raises SystemdError if the
        swap's record is damaged, and systemd does not answer which engine runs.
        """
        self._swap = swaps.read(self._paths, self._name)
        if self._swap and self._swap.step == swaps.DAMAGED:
            self._log(self._swap.failure, journal.WARNING)
            self._write(damaged.rebuilt(self._paths, self._name, self._swap))
        if unknown and self._swap and self._swap.step in self._steps:
            self._say(unknown)
            self._write(machine.blind(self._swap, unknown))
        while self._swap and self._swap.step in self._steps:
            self._with_lock(keep_lock)
            if self._swap.tries:
                self._rest(self._swap)
            self._log(f"swap to release {self._swap.release}: {self._swap.step}{tries(self._swap)}", journal.INFO)
            following = self._take(self._swap)
            if isinstance(following, machine.Ended):
                return self._end(following)
            self._write(following)
        if self._swap and self._swap.step == swaps.STUCK:
            self._log(f"swap is stuck: {self._swap.failure}", journal.WARNING)
            self._with_lock(release_lock)
        return None

    def _rest(self, swap: Swap) -> None:
        """Wait before the next try of a step. Keep closed gates closed meanwhile, if possible."""
        traffic = self._node.traffic
        deadline = traffic.clock() + machine.WAITS[min(swap.tries, len(machine.WAITS)) - 1]
        while (left := deadline - traffic.clock()) > 0:
            for port in swap.closed_ports if swap.step in swaps.CLOSED else ():
                with contextlib.suppress(gate.GateError):
                    traffic.hold(port)
            traffic.sleep(min(GATE_INTERVAL, left))

    def _take(self, swap: Swap) -> Swap | machine.Ended:
        began = self._node.traffic.clock()
        try:
            changes = self._steps[swap.step](self._node, swap)
        except Exception as error:
            # Also for a mistake in our code: a drained engine must serve again.
            reason = str(error) or repr(error)
            self._log(f"swap: {swap.step} failed: {reason}", journal.WARNING)
            permission = error.permission if isinstance(error, StepFailed) else ""
            return machine.failed(self._swap or swap, reason, self._node.traffic.clock() - began, permission)
        # self._swap has the messages that the step has recorded.
        return machine.passed(replace(self._swap or swap, **changes))

    def _say(self, words: str) -> None:
        """Log a message for the operator, and record it with the swap."""
        self._log(words, journal.NOTICE)
        if self._swap and words not in self._swap.words:
            self._write(replace(self._swap, words=(*self._swap.words, words)))

    def _write(self, swap: Swap) -> None:
        swaps.write(self._paths, self._name, swap)
        self._swap = swap

    def _end(self, ended: machine.Ended) -> Report:
        report = _report(ended, format_time(datetime.now(UTC)))
        # Release the lock first: without the record of the swap, nothing would release it.
        self._with_lock(release_lock)
        swaps.end(self._paths, self._name, report)
        self._log(f"swap ended, {report.outcome}{': ' if report.failure else ''}{report.failure}", journal.NOTICE)
        return report

    def _with_lock(self, act: Callable[[Paths, Swap], None]) -> None:
        """Renew or release the lock. A failure is logged only: it must not keep a drained engine from serving again."""
        try:
            if self._swap:
                act(self._paths, self._swap)
        except (lock.Locked, OSError, ValueError) as error:
            self._log(f"swap: the node's lock: {error}", journal.WARNING)

    def _log(self, words: str, priority: int) -> None:
        step = self._swap.step if self._swap else None
        self._entries.say(f"{self._name}: {words}", priority, event="swap", instance=self._name, step=step)


def tries(swap: Swap) -> str:
    """The number of the present try of a step, as text; empty for the first."""
    return f", try {swap.tries + 1} of {len(machine.WAITS) + 1}" if swap.tries else ""


def _report(ended: machine.Ended, now: str) -> Report:
    swap, notes = ended.swap, ended.swap.notes
    drained, admitted = notes.get("drained"), notes.get("admitted")
    return Report(
        origin=swap.origin,
        target=swap.target,
        run_id=swap.run_id,
        since=swap.since,
        ended=now,
        outcome=ended.outcome,
        failure=swap.failure,
        permission=swap.permission,
        words=(*swap.words, *(notes[key] for key in ("speed", "errors") if notes.get(key))),
        unheard=tuple(notes.get("unheard", ())),
        behind=notes.get("behind", ""),
        kept_bridge=notes.get("kept_bridge", ""),
        unproven=notes.get("unproven", ""),
        load_seconds=notes.get("load_seconds"),
        drained_seconds=round(admitted - drained, 1) if drained and admitted else None,
        tokens_per_second=notes.get("tokens_per_second"),
        pinned=bool(notes.get("pinned")),
        requests_meanwhile=notes.get("meanwhile"),
    )


def keep_lock(paths: Paths, swap: Swap) -> None:
    """Renew the node's lock for the run that started the swap. Another run's lock stays.

    Raises ValueError, OSError.
    """
    now = datetime.now(UTC)
    found = lock.read(paths)
    if found and found.run_id == swap.run_id:
        seconds = max(LOCK_SECONDS, 3 * swap.terms.drain_seconds)
        lock.take(paths, replace(found, until=lock.until(now, seconds)), now)


def release_lock(paths: Paths, swap: Swap) -> None:
    """Release the lock of the command `inferctl`. A playbook releases its own. Raises ValueError, OSError."""
    found = lock.read(paths)
    if found and found.run_id == swap.run_id and found.playbook == lock.BY_HAND:
        lock.release(paths, swap.run_id)


def perform(paths: Paths, name: str) -> Report | None:
    """Perform the swap of an instance to its end. Raises OSError, SystemdError."""
    try:
        settings, unknown = swap_settings.read(paths), ""
    except swap_settings.NoSettings as error:
        settings, unknown = swap_settings.UNKNOWN, str(error)
    traffic = Traffic(paths, settings.gateways)
    return Performance(paths, name, lambda say: Node(paths, name, settings, traffic, say)).run(unknown)
