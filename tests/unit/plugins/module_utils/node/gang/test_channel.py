# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The channel with real sockets. test_follows.py has strangers and whole gangs."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang.members import Gang
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang import channel, link
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.channel import (
    Broken,
    Channel,
    Dialer,
    Event,
    Heard,
    Listener,
    Lost,
    Remark,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.messages import Down, Go, Hello, Welcome
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.orders import Close, Send

from ....ports import free_port
from .machines import members, until

HELLO = Hello("gpu-1", 1, "a" * 64, 3, "")


class Side:
    """A channel, and the events that have come out of it."""

    def __init__(self, made: Callable[[Callable[[], None]], Channel], stack: ExitStack) -> None:
        self.woken = threading.Event()
        self.channel = stack.enter_context(made(self.woken.set))
        self.seen: list[Event] = []

    def of(self, kind: type[Event]) -> list[Event]:
        self.seen += self.channel.events()
        return [event for event in self.seen if isinstance(event, kind)]


Sides = tuple[Side, Side]


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "gang.key"
    path.write_text("0123456789abcdef\n")
    return path


@pytest.fixture
def sides(secret: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sides]:
    """A leader that listens, and a follower that may dial."""
    for place, name, value in ((link, "BEAT", 0.1), (link, "SILENCE", 1.0), (link, "HELLO_LIMIT", 0.5)):
        monkeypatch.setattr(place, name, value)
    monkeypatch.setattr(channel, "RETRY", 0.05)
    port = free_port()
    gangs = [Gang("big", rank, members(2), port, 29510, "a" * 64) for rank in (0, 1)]
    with ExitStack() as stack:
        yield (
            Side(lambda wake: Listener(gangs[0], secret, wake), stack),
            Side(lambda wake: Dialer(gangs[1], secret, wake, lambda: HELLO), stack),
        )


def dialer(side: Side) -> Dialer:
    assert isinstance(side.channel, Dialer)
    return side.channel


def connect(sides: Sides) -> tuple[int, int]:
    """Connect leader and follower, and return the numbers of the connection at each end.

    Forgets the follower's events of attempts before the leader listened.
    """
    leader, follower = sides
    dialer(follower).want(True, 0.05)
    until(lambda: bool(leader.of(Heard)))
    heard = leader.of(Heard)[-1]
    assert isinstance(heard, Heard) and heard.message == HELLO and heard.address == "127.0.0.2"
    leader.channel.perform([Send(heard.link, Welcome())])
    until(lambda: bool(follower.of(Heard)))
    welcome = follower.of(Heard)[-1]
    assert isinstance(welcome, Heard) and welcome.message == Welcome()
    early = [event for event in follower.of(Lost) if isinstance(event, Lost) and event.link != welcome.link]
    follower.seen = [event for event in follower.seen if event not in early]
    return heard.link, welcome.link


def test_both_ends_get_messages_and_beats_are_no_events(sides: Sides) -> None:
    leader, follower = sides
    ours, theirs = connect(sides)
    leader.channel.perform([Send(ours, Go(3))])
    until(lambda: len(follower.of(Heard)) == 2)
    assert follower.of(Heard)[-1] == Heard(theirs, Go(3), "127.0.0.1")
    threading.Event().wait(1.5)
    assert not leader.of(Lost) and not follower.of(Lost) and len(leader.of(Heard)) == 1
    assert leader.woken.is_set() and follower.woken.is_set()


def test_the_end_does_not_wait_for_a_connection_that_is_still_being_made(
    secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "CLOSING", 0.5)
    with ExitStack() as stack:
        # The kernel answers no further connection to a socket whose queue is full.
        deaf = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        stack.enter_context(socket.create_connection(deaf.getsockname()))
        gang = Gang("big", 1, members(2), deaf.getsockname()[1], 29510, "a" * 64)
        side = Side(lambda wake: Dialer(gang, secret, wake, lambda: HELLO), stack)
        dialer(side).want(True)
        until(lambda: bool(side.channel._peers))
        stack.pop_all().close()
        assert not side.channel._thread.is_alive() and not side.of(Lost)


def test_a_last_message_arrives_before_the_connection_closes(sides: Sides) -> None:
    leader, follower = sides
    ours, theirs = connect(sides)
    dialer(follower).want(False)
    leader.channel.perform([Send(ours, Down("the end")), Close(ours)])
    until(lambda: bool(follower.of(Lost)))
    assert follower.seen[-2:] == [Heard(theirs, Down("the end"), "127.0.0.1"), Lost(theirs, "closed the connection")]
    # The end that closes a connection gets no event of its loss.
    assert not leader.of(Lost)


def test_a_channel_that_closes_sends_its_remaining_messages(sides: Sides) -> None:
    leader, follower = sides
    ours, theirs = connect(sides)
    leader.channel.perform([Send(ours, Down("the end"))])
    leader.channel.__exit__()
    until(lambda: bool(follower.of(Lost)))
    assert Heard(theirs, Down("the end"), "127.0.0.1") in follower.seen


def test_a_follower_tries_again_to_reach_a_missing_leader(sides: Sides, secret: Path) -> None:
    leader, follower = sides
    leader.channel.__exit__()
    dialer(follower).want(True, 0.05)
    until(lambda: len(follower.of(Lost)) > 2)
    lost = follower.of(Lost)[-1]
    assert isinstance(lost, Lost) and lost.why == "cannot be reached (Connection refused)"
    dialer(follower).want(False)
    threading.Event().wait(0.2)
    count = len(follower.of(Lost))
    threading.Event().wait(0.3)
    assert len(follower.of(Lost)) == count


def test_a_leader_listens_once_a_taken_port_is_free(secret: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "RETRY", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as other, ExitStack() as stack:
        port = other.getsockname()[1]
        gang = Gang("big", 0, members(2), port, 29510, "a" * 64)
        side = Side(lambda wake: Listener(gang, secret, wake), stack)
        until(lambda: bool(side.of(Remark)))
        assert side.seen[0] == Remark("", f"cannot listen on 127.0.0.1 port {port}: Address already in use")
        other.close()
        until(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0)


def test_a_fault_of_the_channel_itself_is_an_event(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    leader = sides[0]
    monkeypatch.setattr(leader.channel, "_maintain", lambda now: 1 / 0)
    leader.channel.perform([Close(99)])
    until(lambda: bool(leader.of(Broken)))
    assert "ZeroDivisionError" in str(leader.of(Broken)[0])


def test_connections_without_the_key_are_limited_and_members_can_connect(sides: Sides) -> None:
    leader = sides[0]
    gang = leader.channel._gang
    until(lambda: socket.socket().connect_ex(("127.0.0.1", gang.gang_port)) == 0)
    strangers = [
        socket.create_connection(("127.0.0.1", gang.gang_port), source_address=("127.0.0.2", 0))
        for _number in range(channel.STRANGERS + 4)
    ]
    connect(sides)
    assert len(leader.channel._peers) <= channel.STRANGERS + 1
    for stranger in strangers:
        stranger.close()
