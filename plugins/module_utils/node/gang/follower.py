# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A follower of a gang: runs its engine only in an epoch of the leader. Private to the collection. Pure.

Events go in, actions and an order come out. The order holds until the next event. A follower never ends by itself: when
its leader is gone, it kills its engine, gets a fresh container, and waits for the next epoch.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...engine.gang.members import Gang
from ...engine.state.gangs import (
    ENDED,
    LEAVING,
    LOADING,
    MISSING,
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
from .orders import KILL, RUN, Actions, Close, Order, Send

WITH_ENGINE = (LOADING, SERVING, STOPPING, LEAVING, ENDED)
"""Phases in which an engine may run."""


class Follower:
    """A follower over all epochs."""

    def __init__(self, gang: Gang, release: int = 0) -> None:
        """`release`: this node's own number of its release."""
        self.gang = gang
        self.release = release
        self.move: Move | None = None
        """The release to which the leader wants this node to move. The caller resets it."""
        self.proof: Prove | None = None
        """The leader's message that the release has proved itself. The caller resets it."""
        self.unmoved = ""
        """Why this node could not move; empty if it could."""
        self.accepted = False
        """Whether the leader has accepted this node. The caller resets it."""
        self._offers: Offers | None = None
        self._offered: Offers | None = None
        self.phase = MISSING
        """MISSING: without a leader; ENDED: the engine must end."""
        self.detail = "has not reached its leader yet"
        self.epoch = 0
        """The epoch of the engine; 0 without an engine."""
        self.order = Order()
        self.wants_container = False
        """Whether the container must be created anew, since its engine has ended."""
        self._link: int | None = None
        self._refused = 0
        """The connection over which the leader last refused this follower."""
        self._stop = ""
        self._leave_until: float | None = None

    @property
    def hello(self) -> Hello:
        return Hello(self.gang.me.node, self.gang.rank, self.gang.digest, self.release, self.unmoved)

    @property
    def wants_link(self) -> bool:
        """Whether to keep, or to open, a connection to the leader. A new one is opened only without an engine."""
        if self._link is not None:
            return True
        return self.phase in (MISSING, REFUSED) and not self.wants_container

    def receive(self, link: int, message: Message) -> Actions:
        """A message has come over a connection."""
        if isinstance(message, Refused):
            if self.phase in (MISSING, REFUSED):
                self.phase, self.detail, self._refused = REFUSED, message.reason, link
            return []
        if isinstance(message, Move):
            # The leader sends a move only before it has accepted this node, so no engine runs here.
            if self.phase in (MISSING, REFUSED) and self.wants_link:
                self.move = message
            return []
        if isinstance(message, Welcome) and self.phase in (MISSING, REFUSED) and self.wants_link:
            self._link, self.phase, self.detail = link, WAITING, ""
            self.unmoved, self._offered, self.accepted = "", None, True
            return list(self._offer())
        if link != self._link:
            return [Close(link)]
        if isinstance(message, Go) and self.phase == WAITING:
            self.phase, self.epoch, self.order = LOADING, message.epoch, Order(RUN, message.epoch)
        elif isinstance(message, Ready) and self.phase == LOADING and message.epoch == self.epoch:
            self.phase = SERVING
        elif isinstance(message, Stopping) and self.phase in (LOADING, SERVING):
            self.phase, self.detail = STOPPING, message.reason
        elif isinstance(message, Prove) and self.phase == SERVING:
            self.proof = message
        elif isinstance(message, Down):
            return self._leader_is_gone(message.reason, planned=True)
        return []

    def lost(self, link: int, why: str) -> Actions:
        """A connection is gone, or was never made."""
        if link == self._link and self._link is not None:
            self._link = None
            return self._leader_is_gone(f"{self.gang.leader.node} is gone: it {why}")
        if self.phase in (MISSING, REFUSED) and link != self._refused:
            self.phase, self.detail = MISSING, f"{self.gang.leader.node} {why}"
        return []

    def offer(self, offers: Offers) -> Actions:
        """The releases that this node keeps. The leader hears of each change."""
        self._offers = offers
        return list(self._offer())

    def _offer(self) -> Iterator[Send]:
        if self._link is not None and self._offers is not None and self._offers != self._offered:
            self._offered = self._offers
            yield Send(self._link, self._offers)

    def engine_started(self) -> Actions:
        """The engine that was ordered runs."""
        return [] if self._link is None or not self.epoch else [Send(self._link, Joined(self.epoch))]

    def engine_ended(self, detail: str) -> Actions:
        """The engine has ended, or could not be started."""
        actions: list[Send | Close] = []
        if self._link is not None:
            # The leader decides what this means. The next epoch needs a new hello.
            actions = [Send(self._link, Exited(self.epoch, detail)), Close(self._link)]
            self.detail = f"its engine ended: {detail}"
        self._link, self.epoch, self.order = None, 0, Order()
        self.phase, self.wants_container = (STOPPED, False) if self._stop else (MISSING, True)
        return actions

    def created(self) -> Actions:
        """The container is fresh."""
        self.wants_container = False
        return []

    def stop(self, reason: str, now: float, limit: float) -> Actions:
        """The unit is being stopped. The leader has `limit` seconds to drain the gang."""
        if self._stop:
            return []
        self._stop = reason
        if self.phase not in WITH_ENGINE:
            self.phase, link = STOPPED, self._link
            self._link = None
            return [] if link is None else [Send(link, Leaving(reason)), Close(link)]
        if self._link is None:
            return []
        self.phase, self.detail, self._leave_until = LEAVING, reason, now + limit
        return [Send(self._link, Leaving(reason))]

    def tick(self, now: float) -> Actions:
        """Time passes."""
        if self.phase == LEAVING and self._leave_until is not None and now >= self._leave_until:
            return self._leader_is_gone(f"{self.gang.leader.node} did not stop the gang in time")
        return []

    def _leader_is_gone(self, reason: str, *, planned: bool = False) -> Actions:
        """Kill the engine at once: without its leader, it would hold its GPUs for ever."""
        link, self._link = self._link, None
        self.detail = reason
        if self.phase in WITH_ENGINE:
            self.phase, self.order = ENDED, Order(KILL, self.epoch, reason, planned)
        else:
            self.phase = MISSING
        return [] if link is None else [Close(link)]
