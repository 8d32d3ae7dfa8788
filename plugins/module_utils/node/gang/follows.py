# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The supervisor of a follower: runs its engine in the epochs of its leader. Private to the collection.

A follower has no API, so it is not probed: it is ready when its leader says so. Its process ends if its unit
is stopped, or if its own channel fails. So neither its leader's end nor its own engine's end uses up starts of the
unit: the leader alone has a budget.
"""

# pylint: disable=ansible-bad-function  # a service, which prints to the journal
from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from ...core.docker_api import Docker
from ...core.systemd import Notifier
from ...engine.gang.members import Gang
from ...engine.release import Release
from ...engine.state.gangs import LEAVING, LOADING, MISSING, REFUSED, SERVING, STOPPED, STOPPING, WAITING, MemberState
from ..events import Events, Job
from ..supervisor import EXTENSION, STATUS_INTERVAL, Engine, EngineError, attach, exit_of
from .channel import RETRY, Broken, Dialer, Heard, Lost, Remark
from .follower import Follower
from .moves import Own
from .orders import KILL, RUN
from .record import Record

TURN = 0.5
"""Seconds between two rounds of the loop, if no event arrives."""

REFUSED_RETRY = 5.0
"""Seconds between two attempts after the leader has refused this member."""

EXIT_LIMIT = 1.0
"""Seconds that dockerd may take to report an exit code: the leader must know of the end within two seconds."""

CREATE_RETRY = 5.0
"""Seconds between two attempts to create a container."""

OFFER_INTERVAL = 5.0
"""Seconds between two looks at the releases of this node."""


class Follows:
    """Runs the engine of a follower. `run` returns the process's exit code.

    `create` removes the container that has ended and creates a new one; it raises EngineError. `on_ready` must raise
    nothing. `own`: the releases of this node. `leave_limit`: seconds that the leader may
    take to drain the gang when this unit is being stopped.
    """

    def __init__(
        self,
        gang: Gang,
        release: Release,
        docker: Docker,
        notifier: Notifier,
        secret: Path,
        record: Record,
        *,
        create: Callable[[], None],
        on_ready: Callable[[], None] = lambda: None,
        own: Own | None = None,
        leave_limit: float,
    ) -> None:
        self._gang = gang
        self._release = release
        self._docker = docker
        self._notifier = notifier
        self._secret = secret
        self._record = record
        self._create = create
        self._on_ready = on_ready
        self._leave_limit = leave_limit
        self._own = own
        self._machine = Follower(gang, release.number)
        if own is not None:
            self._machine.unmoved = own.unmoved()
        self._engine: Engine | None = None
        self._starting: Job[Engine] | None = None
        self._creating: Job[None] | None = None
        self._create_at = 0.0
        self._create_problem = ""
        self._killed = False
        self._ready = False
        self._next_report = 0.0
        self._next_offer = 0.0
        self._last_status = ""

    def run(self) -> int:
        """Follow the leader until the unit is stopped (returns 0), or until the channel fails (returns 1)."""
        machine = self._machine
        with Events() as events, Dialer(self._gang, self._secret, events.wake, lambda: machine.hello) as channel:
            while machine.phase != STOPPED:
                for event in channel.events():
                    if isinstance(event, Heard):
                        channel.perform(machine.receive(event.link, event.message))
                    elif isinstance(event, Lost):
                        channel.perform(machine.lost(event.link, event.why))
                    elif isinstance(event, Remark):
                        self._record.remark(event.address, event.text)
                    elif isinstance(event, Broken):
                        self._abandon(events, event.why)
                        return 1
                now = time.monotonic()
                channel.perform(machine.tick(now))
                if events.stop:
                    channel.perform(machine.stop("its unit is being stopped", now, self._leave_limit))
                self._tend_engine(events, channel)
                self._tend_container(events)
                self._tend_releases(channel, now)
                channel.want(machine.wants_link, REFUSED_RETRY if machine.phase == REFUSED else RETRY)
                self._report()
                events.wait(TURN)
        self._report()
        self._record.flush()
        return 0

    def say(self, message: str) -> None:
        """Print one line for the journal."""
        release = self._release
        print(f"{release.instance} ({release.model}, release {release.number}): {message}", file=sys.stderr, flush=True)

    def _tend_engine(self, events: Events, channel: Dialer) -> None:
        """Start, watch or kill the engine as the present order requires."""
        machine = self._machine
        if self._engine is None and self._starting is None:
            if machine.order.engine == RUN:
                self._starting = Job(events, lambda: attach(self._docker, self._release.container))
            elif machine.order.engine == KILL:
                # The end came before the start.
                channel.perform(machine.engine_ended("it was not started"))
        if self._starting is not None and self._starting.done:
            try:
                self._engine = self._starting.result()
                events.watch(self._engine.pidfd)
                channel.perform(machine.engine_started())
            except EngineError as error:
                self.say(str(error))
                channel.perform(machine.engine_ended(str(error)))
            self._starting = None
        if self._engine is None:
            return
        if events.died:
            what = "killed" if self._killed else str(exit_of(self._docker, self._release.container, EXIT_LIMIT))
            os.close(self._engine.pidfd)
            events.forget()
            self._engine, self._killed = None, False
            channel.perform(machine.engine_ended(what))
        elif machine.order.engine == KILL and not self._killed:
            self.say(f"kills its engine: {machine.order.reason}")
            self._engine.send(signal.SIGKILL)
            self._killed = True

    def _tend_container(self, events: Events) -> None:
        """Get a fresh container after an engine's end, before the next hello."""
        if self._creating is not None and self._creating.done:
            try:
                self._creating.result()
                self._machine.created()
                self._create_problem = ""
            except EngineError as error:
                self._create_problem = str(error)
                self._create_at = time.monotonic() + CREATE_RETRY
            self._creating = None
        if self._machine.wants_container and self._creating is None and time.monotonic() >= self._create_at:
            self._creating = Job(events, self._create)

    def _tend_releases(self, channel: Dialer, now: float) -> None:
        """Offer this node's releases to the leader. On the leader's order, mark the release that runs as proven,
        or move to another release."""
        machine, own = self._machine, self._own
        if own is None:
            return
        if machine.proof is not None:
            own.prove(machine.proof)
            machine.proof, self._next_offer = None, now
        if now >= self._next_offer:
            self._next_offer = now + OFFER_INTERVAL
            channel.perform(machine.offer(own.offers()))
        if machine.move is not None:
            wanted, machine.move = machine.move, None
            # Without a problem, systemd now stops this unit and starts it with the other release.
            machine.unmoved = own.move(wanted)
            machine.detail = f"{machine.detail}: {machine.unmoved or 'moves to that release'}"
        if machine.accepted:
            # The phase may be past WAITING already: if this member is the last one, an epoch begins at once.
            machine.accepted = False
            own.arrived()

    def _abandon(self, events: Events, why: str) -> None:
        """End at once, since the channel has failed: no engine may run without it."""
        self.say(f"the gang's channel has failed: {why}")
        if self._engine is not None:
            self._engine.send(signal.SIGKILL)
            events.wait(TURN, signals=False)

    def _report(self) -> None:
        """Report to systemd, and write the state file."""
        machine, gang = self._machine, self._gang
        detail = self._create_problem or machine.detail
        present = machine.phase in (WAITING, LOADING, SERVING, STOPPING)
        me = MemberState(gang.me.node, gang.rank, gang.me.address, machine.phase, "" if present else detail)
        leader = MemberState(gang.leader.node, 0, gang.leader.address, _of_leader(machine.phase))
        self._record.write(machine.epoch, machine.phase, "" if present else detail, machine.order.planned, (leader, me))
        status = self._status(detail)
        if machine.phase == SERVING and not self._ready:
            self._ready = True
            self._on_ready()
            self._notifier.send(READY=1, STATUS=status)
        elif status != self._last_status or (not self._ready and time.monotonic() >= self._next_report):
            self._next_report = time.monotonic() + STATUS_INTERVAL
            more = {} if self._ready else {"EXTEND_TIMEOUT_USEC": EXTENSION * 1_000_000}
            self._notifier.send(STATUS=status, **more)
        self._last_status = status

    def _status(self, detail: str) -> str:
        machine = self._machine
        leader = f"the leader {self._gang.leader.node}"
        words = {
            MISSING: f"waits for {leader}: {detail}",
            REFUSED: f"refused by {leader}: {detail}",
            WAITING: f"waits for {leader}, which waits for other members",
            LOADING: f"loading {self._release.model}, epoch {machine.epoch}",
            SERVING: f"serving {self._release.model} with {leader}, epoch {machine.epoch}",
            STOPPING: f"{leader} drains the gang: {detail}",
            LEAVING: f"waits until {leader} has drained the gang",
            STOPPED: "stopped",
        }
        return words.get(machine.phase, f"ends its engine: {detail}")


def _of_leader(phase: str) -> str:
    """The leader's state, by the phase of this follower."""
    return phase if phase in (WAITING, LOADING, SERVING, STOPPING) else STOPPING if phase == LEAVING else MISSING
