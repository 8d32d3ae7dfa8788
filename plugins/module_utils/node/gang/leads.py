# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The leader's side of a gang in its supervisor. Private to the collection."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from ...core.systemd import Notifier
from ...engine.gang.members import Gang
from ...engine.state.gangs import LOADING, MISSING, SERVING, STOPPED, STOPPING, WAITING, MemberState
from ..events import Events, Job
from ..supervisor import EXTENSION, STATUS_INTERVAL
from .alone import Alone
from .channel import Broken, Heard, Listener, Lost, Remark
from .leader import Leader, Seat
from .messages import Prove
from .orders import DRAIN, KILL, Actions, Order
from .record import Record

POLL = 0.5
"""Seconds between two looks at the order when nothing happens."""

PROOF_INTERVAL = 2.0
"""Seconds between two looks whether the leader's release has proved itself."""

IDLE_INTERVAL = 1.0
"""Seconds between two questions whether the engine has requests."""

GATEWAYS_NOTICE = 3.0
"""Seconds in which gateways notice a drain: each gateway asks once a second."""


class Leads(Alone):
    """Leads a gang for one start of the unit."""

    poll = POLL

    def __init__(
        self,
        gang: Gang,
        secret: Path,
        record: Record,
        notifier: Notifier,
        *,
        drain: Callable[[str], None],
        undrain: Callable[[], None],
        is_idle: Callable[[], bool],
        numbers: Mapping[str, int] | None = None,
        proof: Callable[[], Prove | None] = lambda: None,
    ) -> None:
        """`drain` and `undrain` record and remove a drain with a reason. No callable here may raise anything.

        `numbers`: the release that followers must run, by node (Leader). `proof`: the message to followers if the
        leader's release has proved itself.
        """
        self._machine = Leader(gang, record.epoch + 1, numbers)
        self._proof = proof
        self._next_proof = 0.0
        self._gang = gang
        self._secret = secret
        self._record = record
        self._notifier = notifier
        self._drain = drain
        self._undrain = undrain
        self._is_idle = is_idle
        self._broken = ""
        self._events: Events
        self._channel: Listener

    def over(self, events: Events) -> Leads:
        self._events = events
        self._channel = Listener(self._gang, self._secret, events.wake)
        return self

    def __enter__(self) -> Leads:
        # A process that was killed may have left its drain.
        self._undrain()
        self._channel.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.engine_ended("the supervisor ends")
        self._channel.__exit__()
        self._undrain()
        self._record.flush()

    def gather(self) -> bool:
        next_report = 0.0
        while self.order().engine != KILL:
            if self._events.stop:
                self.stop()
                return False
            missing = self._machine.missing()
            if self._machine.phase != WAITING or not missing:
                return True
            now = time.monotonic()
            if now >= next_report:
                next_report = now + STATUS_INTERVAL
                self._notifier.send(STATUS=_waits(missing), EXTEND_TIMEOUT_USEC=EXTENSION * 1_000_000)
            self._events.wait(min(1.0, next_report - now))
        return True

    def order(self) -> Order:
        for event in self._channel.events():
            if isinstance(event, Heard):
                self._perform(self._machine.receive(event.link, event.message, event.address, time.monotonic()))
            elif isinstance(event, Lost):
                self._perform(self._machine.lost(event.link, event.why))
            elif isinstance(event, Remark):
                self._record.remark(event.address, event.text)
            elif isinstance(event, Broken):
                self._broken = f"the gang's channel has failed: {event.why}"
        now = time.monotonic()
        if now >= self._next_proof:
            self._next_proof = now + PROOF_INTERVAL
            self._machine.proof = self._proof()
        self._perform(self._machine.tick(now))
        if self._broken:
            return Order(KILL, self._machine.epoch, self._broken)
        return self._machine.order

    def engine_ready(self) -> None:
        self._perform(self._machine.engine_ready())

    def engine_ended(self, detail: str) -> None:
        self._perform(self._machine.engine_ended(detail))

    def stop(self) -> None:
        self._perform(self._machine.stop())

    def empty(self, limit: float) -> None:
        self._drain(self._machine.order.reason)
        began = time.monotonic()
        asked: Job[bool] | None = None
        while not self._events.died and self.order().engine == DRAIN and time.monotonic() < began + limit:
            if asked is not None and asked.done:
                if asked.result() and time.monotonic() >= began + GATEWAYS_NOTICE:
                    return
                asked = None
                self._events.wait(IDLE_INTERVAL)
            if asked is None:
                asked = Job(self._events, self._is_idle)
            self._events.wait(POLL)

    def _perform(self, actions: Actions) -> None:
        self._channel.perform(actions)
        machine = self._machine
        state = machine.phase
        me = MemberState(self._gang.me.node, 0, self._gang.me.address, state)
        seats = sorted(machine.seats.values(), key=lambda seat: seat.member.rank)
        others = tuple(
            MemberState(
                seat.member.node, seat.member.rank, seat.member.address, seat.state, seat.detail, **_offered(seat)
            )
            for seat in seats
        )
        present = state in (LOADING, SERVING)
        detail = _waits(machine.missing()) if state == WAITING else "" if present else machine.order.reason
        planned = state in (STOPPING, STOPPED) or machine.order.planned
        self._record.write(machine.epoch, state, detail, planned, (me, *others))


def _offered(seat: Seat) -> dict[str, Any]:
    """The releases of a follower, for the state file."""
    return asdict(seat.offers)


def _waits(missing: list[Seat]) -> str:
    """The members that the leader waits for, and why."""
    if not missing:
        return "waits for no member"
    words = []
    for seat in missing:
        why = seat.detail if seat.state == MISSING else f"{seat.state}: {seat.detail}"
        words.append(f"{seat.member.node} (rank {seat.member.rank}{': ' + why if why else ''})")
    return f"waits for {', '.join(words)}"
