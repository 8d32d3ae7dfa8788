# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The leader of a gang: decides when all engines of the gang start and end. Private to the collection. Pure.

Events go in, actions and an order come out. The order holds until the next event, so the caller may read it at any
time. A leader leads one epoch: for the next one, systemd starts the supervisor again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ...engine.gang.members import DIGEST_DIGITS, Gang, Member
from ...engine.state.gangs import (
    ENDED,
    LEAVING,
    LOADING,
    MISSING,
    PRESENT,
    REFUSED,
    SERVING,
    STOPPED,
    STOPPING,
    WAITING,
)
from .messages import (
    Down,
    Exited,
    Go,
    Hello,
    Joined,
    Leaving,
    Message,
    Move,
    Offers,
    Prove,
    Ready,
    Refused,
    Stopping,
    Welcome,
)
from .orders import DRAIN, KILL, NONE, RUN, Actions, Close, Order, Send, same

EXIT_GRACE = 10.0
"""Seconds that the leader's engine may still take when a follower's engine has ended during a drain. Engines of a gang
end together, and the leader's engine ends last."""

REFUSAL = 30.0
"""Seconds for which a refusal counts as the state of a member."""

PROVE_INTERVAL = 5.0
"""Seconds after which a follower is asked again to mark its release as proven."""


@dataclass
class Seat:
    """A follower, as the leader sees it."""

    member: Member
    state: str = MISSING
    detail: str = ""
    link: int | None = None
    """The follower's connection; None without a connection."""
    refused: float = 0.0
    """When the follower was last refused."""
    release: int = 0
    """The follower's own number of its release."""
    offers: Offers = field(default_factory=lambda: Offers(0, 0, 0, ""))
    asked: float | None = None
    """When the follower was last asked to mark its release as proven."""


class Leader:
    """Leads one epoch of a gang."""

    def __init__(self, gang: Gang, epoch: int, numbers: Mapping[str, int] | None = None) -> None:
        """`numbers`: the release that followers must run, by node, as a swap has recorded. Without a number, or
        with 0, the digest alone decides."""
        self.gang = gang
        self.proof: Prove | None = None
        """The message to followers whose release is not marked as proven; None until the leader's release has proved
        itself."""
        self._numbers = numbers or {}
        self.epoch = epoch
        self.phase = WAITING
        self.order = Order()
        self.seats = {member.rank: Seat(member) for member in gang.followers}
        self._kill_at: float | None = None

    @property
    def ended(self) -> bool:
        """Whether the epoch has ended, or has to end now."""
        return self.order.engine == KILL or self.phase in (ENDED, STOPPED)

    def missing(self) -> list[Seat]:
        """The followers for which the leader waits."""
        return [seat for seat in self.seats.values() if seat.state != WAITING]

    def receive(self, link: int, message: Message, address: str, now: float) -> Actions:
        """A message has come over a connection, from an address."""
        if isinstance(message, Hello):
            return self._hello(link, message, address, now)
        seat = self._seat(link)
        if seat is None:
            return [Close(link)]
        if isinstance(message, Leaving):
            return self._leaving(seat, message)
        if isinstance(message, Joined) and message.epoch == self.epoch and seat.state == WAITING:
            seat.state = SERVING if self.phase == SERVING else LOADING
        elif isinstance(message, Offers):
            seat.offers = message
        elif isinstance(message, Exited) and message.epoch == self.epoch:
            seat.state, seat.detail = ENDED, message.detail
            if self.phase in (LOADING, SERVING):
                return self._break(f"the engine of {seat.member.node} ended: {message.detail}")
            if self.phase == STOPPING and self._kill_at is None:
                self._kill_at = now + EXIT_GRACE
        return []

    def lost(self, link: int, why: str) -> Actions:
        """A connection is gone."""
        seat = self._seat(link)
        if seat is None:
            return []
        seat.link = None
        # A member that has said that it leaves, and is lost before the drain is over, is no failure: nothing died.
        left = seat.state == LEAVING
        # The reason for an end stays visible, although the connection of a member that was refused, or whose engine
        # ended, is lost soon after.
        if seat.state not in (REFUSED, ENDED):
            seat.state, seat.detail = MISSING, why
        if self.phase in (LOADING, SERVING) or (self.phase == STOPPING and seat.state != ENDED):
            return self._break(f"{seat.member.node} is gone: it {why}", planned=left)
        return []

    def engine_ready(self) -> Actions:
        """The gang answers requests."""
        if self.phase != LOADING:
            return []
        self.phase = SERVING
        for seat in self.seats.values():
            seat.state = SERVING if seat.state == LOADING else seat.state
        return list(self._all(Ready(self.epoch)))

    def engine_ended(self, detail: str) -> Actions:
        """The leader's own engine has ended, by itself or by order."""
        planned = self.phase == STOPPING or self.order.planned
        reason = self.order.reason if planned else f"the leader's engine ended: {detail}"
        actions = self._break(reason, planned=planned)
        if self.order.engine != NONE:
            self.order = Order(NONE, 0, self.order.reason, planned)
            self.phase = STOPPED if planned else ENDED
        return actions

    def stop(self) -> Actions:
        """The leader's unit is being stopped."""
        reason = f"{self.gang.leader.node} stops the instance"
        if self.phase == WAITING:
            self.phase = STOPPED
            return [*self._all(Down(reason)), *self._close()]
        return self._wind_down(reason)

    def tick(self, now: float) -> Actions:
        """Time passes."""
        for seat in self.seats.values():
            # A refused member asks again every few seconds, unless its unit was stopped or its node is off.
            if seat.state == REFUSED and now - seat.refused >= REFUSAL:
                seat.state, seat.detail = MISSING, "has stopped asking"
        if self._kill_at is not None and now >= self._kill_at and self.order.engine == DRAIN:
            return self._break("an engine of the gang has ended, and the leader's engine did not follow")
        return list(self._prove(now))

    def _prove(self, now: float) -> Iterator[Send]:
        """Ask followers to mark their release as proven, until their offers show the mark."""
        for seat in self.seats.values() if self.proof and self.phase == SERVING else ():
            due = seat.asked is None or now - seat.asked >= PROVE_INTERVAL
            if self.proof and seat.link is not None and due and seat.offers.current != seat.release:
                seat.asked = now
                yield Send(seat.link, self.proof)

    def _hello(self, link: int, hello: Hello, address: str, now: float) -> Actions:
        seat = self.seats.get(hello.rank)
        if seat is None or seat.member.node != hello.node or not same(seat.member.address, address):
            # Two nodes disagree about the members: no seat may show the state of such a node.
            reason = f"{hello.node} at {address} with rank {hello.rank} is no member of this gang at {self._me}"
            return [Send(link, Refused(f"{reason}: run baremetal.inference.site on all members")), Close(link)]
        number = self._numbers.get(hello.node, 0)
        if hello.digest != self.gang.digest or (number and number != hello.release):
            return self._move(link, hello, seat, number, now)
        before, seat.link = seat.link, link
        seat.release, seat.asked = hello.release, None
        actions: list[Send | Close] = [] if before is None else [Close(before)]
        if self.phase != WAITING:
            # A member that says hello has no engine any more.
            broken = self._break(f"{hello.node} started anew")
            return [*actions, *broken] if broken else [*actions, *self._refuse_late(seat)]
        seat.state, seat.detail = WAITING, ""
        return [*actions, Send(link, Welcome()), *self._go()]

    def _move(self, link: int, hello: Hello, seat: Seat, number: int, now: float) -> Actions:
        """Turn away a member with another release. The member moves to the leader's release if it has that release."""
        reason = (
            f"{hello.node} has the gang digest {hello.digest[:DIGEST_DIGITS]}, and {self._me} has"
            f" {self.gang.digest[:DIGEST_DIGITS]}"
        )
        if hello.digest == self.gang.digest:
            reason = f"{hello.node} has its release {hello.release}, and its release {number} must run"
        if seat.link is None and self.phase == WAITING:
            seat.state, seat.refused = REFUSED, now
            seat.detail = f"{reason}: {hello.detail or 'it moves'}"
        return [Send(link, Refused(reason)), Send(link, Move(number, self.gang.digest)), Close(link)]

    def _refuse_late(self, seat: Seat) -> Actions:
        """Turn away a member that comes after the end of the epoch. The leader's next process leads the next epoch."""
        link, seat.link = seat.link, None
        return [] if link is None else [Send(link, Down("the gang has just ended")), Close(link)]

    def _go(self) -> Iterator[Send]:
        if self.missing():
            return
        self.phase, self.order = LOADING, Order(RUN, self.epoch)
        yield from self._all(Go(self.epoch))

    def _leaving(self, seat: Seat, message: Leaving) -> Actions:
        seat.state, seat.detail = LEAVING, message.reason
        return self._wind_down(f"{seat.member.node} leaves: {message.reason}")

    def _wind_down(self, reason: str) -> Actions:
        """End the epoch on request: with a drain if the gang serves."""
        if self.phase == SERVING:
            self.phase, self.order = STOPPING, Order(DRAIN, self.epoch, reason, planned=True)
            return list(self._all(Stopping(reason)))
        return self._break(reason, planned=True) if self.phase == LOADING else []

    def _break(self, reason: str, *, planned: bool = False) -> Actions:
        """End the epoch at once. Nothing happens if there is no epoch to end."""
        if self.phase not in (LOADING, SERVING, STOPPING):
            return []
        self.phase, self.order = ENDED, Order(KILL, self.epoch, reason, planned)
        return [*self._all(Down(reason)), *self._close()]

    def _all(self, message: Message) -> Iterator[Send]:
        return (Send(seat.link, message) for seat in self.seats.values() if seat.link is not None)

    def _close(self) -> list[Close]:
        links = [seat.link for seat in self.seats.values() if seat.link is not None]
        for seat in self.seats.values():
            # The member that caused the end keeps the state that shows the cause.
            seat.state = STOPPED if seat.state in PRESENT else seat.state
            seat.link = None
        return [Close(link) for link in links]

    def _seat(self, link: int) -> Seat | None:
        return next((seat for seat in self.seats.values() if seat.link == link), None)

    @property
    def _me(self) -> str:
        return self.gang.leader.node
