# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connections of a gang's supervisor, on a thread of their own. Private to the collection.

The thread moves bytes, sends beats and judges silence, also while the supervisor waits for Docker or for an engine's
end. Everything on which a supervisor must decide comes out as an event. At the leader, a connection that has not yet
proved that it has the key takes one descriptor for some seconds, and causes no event but a remark.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ...engine.gang.members import Gang
from . import link as gang_link
from .link import Link, LinkError
from .messages import Hello, Message
from .orders import Actions, Close, Send, same
from .wire import FOLLOWER, LEADER, NONCE_BYTES, gang_key

RETRY = 1.0
"""Seconds between two attempts to listen, or to reach the leader."""

STRANGERS = 16
"""Most connections that have not proved themselves yet. A further connection closes the oldest of them."""

CLOSING = 2.0
"""Seconds that the last messages of a connection may take."""

LONGEST_WAIT = 60.0
"""Seconds that the thread sleeps at most."""


@dataclass(frozen=True)
class Event:
    """Something that a supervisor must know."""


@dataclass(frozen=True)
class Heard(Event):
    """A message from an end that has the key. `address`: where the message comes from."""

    link: int
    message: Message
    address: str


@dataclass(frozen=True)
class Lost(Event):
    """A connection is gone, or could not be made. `why` lacks its subject, the other end: `was silent for 10 s`."""

    link: int
    why: str


@dataclass(frozen=True)
class Remark(Event):
    """A message for the operator that changes nothing. `address`: the peer that it is about; empty for this node."""

    address: str
    text: str


@dataclass(frozen=True)
class Broken(Event):
    """The channel itself has failed: no beats are sent any more."""

    why: str


@dataclass
class _Peer:
    """A connection. `close_by`: None until this end closes the connection."""

    number: int
    socket: socket.socket
    address: str
    link: Link | None
    """None while a follower connects."""
    began: float
    close_by: float | None = None
    shut: bool = False


class Channel:
    """Connections, and the thread that serves them. Use as a context manager.

    `wake` is called after each new event, from the thread.
    """

    def __init__(self, gang: Gang, secret: Path, wake: Callable[[], None]) -> None:
        self._gang = gang
        self._secret = secret
        self._wake = wake
        self._events: deque[Event] = deque()
        self._actions: deque[Actions] = deque()
        self._peers: dict[int, _Peer] = {}
        self._numbers = 0
        self._end_by: float | None = None
        self._selector = selectors.DefaultSelector()
        self._reader, self._writer = socket.socketpair()
        self._thread = threading.Thread(target=self._run, daemon=True, name="gang")

    def __enter__(self) -> Self:
        for end in (self._reader, self._writer):
            end.setblocking(False)
        self._selector.register(self._reader, selectors.EVENT_READ)
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Send what is left, for CLOSING seconds at most, and close all connections."""
        self._end_by = time.monotonic() + CLOSING
        self._nudge()
        self._thread.join(2 * CLOSING)
        self._reader.close()
        self._writer.close()

    def events(self) -> Iterator[Event]:
        """The events since the last call."""
        while self._events:
            yield self._events.popleft()

    def perform(self, actions: Actions) -> None:
        """Perform actions in their order. Actions for a connection that is gone or being closed are left out."""
        if actions:
            self._actions.append(actions)
            self._nudge()

    def _nudge(self) -> None:
        # A full buffer wakes the thread, too. After the end, nothing waits.
        with contextlib.suppress(OSError):
            self._writer.send(b"\0")

    def _emit(self, event: Event) -> None:
        self._events.append(event)
        self._wake()

    def _run(self) -> None:
        try:
            while self._end_by is None or (self._peers and time.monotonic() < self._end_by):
                self._turn()
        except Exception as error:
            self._emit(Broken(repr(error)))
        finally:
            for peer in list(self._peers.values()):
                self._drop(peer)
            self._shut_down()
            self._selector.close()

    def _turn(self) -> None:
        now = time.monotonic()
        wait = min([now + LONGEST_WAIT, *self._due(now), *(map(self._peer_due, self._peers.values()))]) - now
        # The thread reads from all connections before it judges silence. So a supervisor that did not run for some
        # time does not take other supervisors for silent.
        for key, mask in self._selector.select(max(0.0, wait)):
            if key.data is None:
                self._readable(key.fd)
            elif key.data.number in self._peers:
                self._serve(key.data, mask)
        while self._actions:
            self._act(self._actions.popleft())
        now = time.monotonic()
        if self._end_by is None:
            self._maintain(now)
        for peer in list(self._peers.values()):
            self._attend(peer, now)

    def _readable(self, handle: int) -> None:
        if handle == self._reader.fileno():
            with contextlib.suppress(BlockingIOError):
                while self._reader.recv(4096):
                    pass
        else:
            self._accept()

    # What listening and dialling channels do differently.

    def _maintain(self, now: float) -> None:
        """Listen, or dial."""
        raise NotImplementedError

    def _due(self, now: float) -> list[float]:
        """When _maintain() has work."""
        raise NotImplementedError

    def _accept(self) -> None:
        """Take a new connection."""

    def _shut_down(self) -> None:
        """Close the socket that listens, if there is one."""

    def _connected(self, peer: _Peer) -> None:
        """A follower's connection to the leader is made, or has failed."""

    # Connections.

    def _add(self, connection: socket.socket, address: str, link: Link | None) -> _Peer:
        self._numbers += 1
        peer = _Peer(self._numbers, connection, address, link, time.monotonic())
        self._peers[peer.number] = peer
        self._selector.register(connection, _interest(peer), peer)
        return peer

    def _drop(self, peer: _Peer) -> None:
        del self._peers[peer.number]
        self._selector.unregister(peer.socket)
        peer.socket.close()

    def _fail(self, peer: _Peer, why: str) -> None:
        """Close a connection that is of no more use, and report that unless this end has closed the connection."""
        self._drop(peer)
        if peer.close_by is None:
            self._emit(self._loss(peer, why))

    def _loss(self, peer: _Peer, why: str) -> Event:
        """The event for a connection that is gone."""
        raise NotImplementedError

    def _serve(self, peer: _Peer, mask: int) -> None:
        if peer.link is None:
            self._connected(peer)
            return
        if mask & selectors.EVENT_READ:
            self._read(peer)

    def _read(self, peer: _Peer) -> None:
        try:
            data = peer.socket.recv(1 << 16)
            if not data:
                self._fail(peer, "closed the connection")
            elif peer.close_by is None and peer.link is not None:
                for message in peer.link.receive(data, time.monotonic()):
                    self._emit(Heard(peer.number, message, peer.address))
        except BlockingIOError:
            return
        except OSError as error:
            self._fail(peer, f"broke the connection ({_why(error)})")
        except LinkError as error:
            self._fail(peer, str(error))

    def _act(self, actions: Actions) -> None:
        for action in actions:
            peer = self._peers.get(action.link)
            if peer is None or peer.link is None or peer.close_by is not None:
                continue
            if isinstance(action, Close):
                peer.close_by = time.monotonic() + CLOSING
            elif isinstance(action, Send):
                with contextlib.suppress(LinkError):
                    peer.link.send(action.message)

    def _attend(self, peer: _Peer, now: float) -> None:
        """Send beats and what waits; judge silence; end a connection that is being closed."""
        if peer.link is None:
            # At the end, a connection that is still being made has nothing to send.
            if self._end_by is not None:
                self._drop(peer)
            elif now - peer.began >= gang_link.HELLO_LIMIT:
                self._fail(peer, f"cannot be reached (no answer within {gang_link.HELLO_LIMIT:.0f} s)")
            return
        if self._end_by is not None and peer.close_by is None:
            peer.close_by = self._end_by
        try:
            if peer.close_by is None:
                peer.link.tick(now)
            if peer.link.output:
                del peer.link.output[: peer.socket.send(peer.link.output)]
        except BlockingIOError:
            pass
        except OSError as error:
            self._fail(peer, f"broke the connection ({_why(error)})")
            return
        except LinkError as error:
            self._fail(peer, str(error))
            return
        if peer.close_by is not None and not peer.link.output and not peer.shut:
            # To close at once would make the kernel drop the last message if something unread has arrived.
            peer.shut = True
            with contextlib.suppress(OSError):
                peer.socket.shutdown(socket.SHUT_WR)
        if peer.close_by is not None and now >= peer.close_by:
            self._drop(peer)
        else:
            self._selector.modify(peer.socket, _interest(peer), peer)

    def _peer_due(self, peer: _Peer) -> float:
        if peer.close_by is not None:
            return peer.close_by
        return peer.began + gang_link.HELLO_LIMIT if peer.link is None else peer.link.due()

    def _key(self) -> bytes | None:
        """The gang's key; None, with a remark, if the node has none. Read anew each time: the key may change."""
        try:
            secret = self._secret.read_bytes().strip()
        except OSError as error:
            self._emit(Remark("", f"{self._secret} cannot be read ({_why(error)}): run baremetal.inference.site"))
            return None
        if not secret:
            self._emit(Remark("", f"{self._secret} is empty: set gang_key and run baremetal.inference.site"))
            return None
        return gang_key(secret, self._gang.name)


def _why(error: OSError) -> str:
    """The kernel's words alone: Python adds addresses to some errors."""
    return os.strerror(error.errno) if error.errno else str(error)


def _interest(peer: _Peer) -> int:
    if peer.link is None:
        return selectors.EVENT_WRITE
    return selectors.EVENT_READ | (selectors.EVENT_WRITE if peer.link.output else 0)


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _prepare(connection: socket.socket) -> None:
    connection.setblocking(False)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class Listener(Channel):
    """The leader's channel: accepts connections from the addresses of members."""

    def __init__(self, gang: Gang, secret: Path, wake: Callable[[], None]) -> None:
        super().__init__(gang, secret, wake)
        self._server: socket.socket | None = None
        self._next_try = 0.0

    def _maintain(self, now: float) -> None:
        if self._server is not None or now < self._next_try:
            return
        self._next_try = now + RETRY
        address, port = self._gang.leader.address, self._gang.gang_port
        try:
            self._server = socket.create_server((address, port), family=_family(address), backlog=STRANGERS)
        except OSError as error:
            # At a boot, the address may come late.
            self._emit(Remark("", f"cannot listen on {address} port {port}: {_why(error)}"))
            return
        self._server.setblocking(False)
        self._selector.register(self._server, selectors.EVENT_READ)

    def _due(self, now: float) -> list[float]:
        return [self._next_try] if self._server is None else []

    def _shut_down(self) -> None:
        if self._server is not None:
            self._selector.unregister(self._server)
            self._server.close()
            self._server = None

    def _loss(self, peer: _Peer, why: str) -> Event:
        proved = peer.link is not None and peer.link.proved
        return Lost(peer.number, why) if proved else Remark(peer.address, why)

    def _accept(self) -> None:
        if self._server is None:
            return
        try:
            connection, (address, *_more) = self._server.accept()
        except (BlockingIOError, ConnectionError):
            return
        except OSError as error:
            # No descriptor is left, for example. The kernel would report the same connection again at once.
            self._emit(Remark("", f"cannot accept connections: {_why(error)}"))
            self._next_try = time.monotonic() + RETRY
            self._shut_down()
            return
        address = address.partition("%")[0]
        key = self._key() if any(same(member.address, address) for member in self._gang.others) else None
        if key is None:
            connection.close()
            return
        _prepare(connection)
        strangers = [peer for peer in self._peers.values() if peer.link is not None and not peer.link.proved]
        for peer in strangers[: max(0, len(strangers) - STRANGERS + 1)]:
            self._drop(peer)
        self._add(connection, address, Link(LEADER, key, os.urandom(NONCE_BYTES).hex(), time.monotonic()))


class Dialer(Channel):
    """A follower's channel: one connection to the leader, while `wanted`."""

    def __init__(self, gang: Gang, secret: Path, wake: Callable[[], None], hello: Callable[[], Hello]) -> None:
        super().__init__(gang, secret, wake)
        self._hello = hello
        self._wanted = False
        self._retry = RETRY
        self._last_try = 0.0

    def want(self, wanted: bool, retry: float = RETRY) -> None:
        """Whether to connect to the leader, and how many seconds to wait between two attempts. A connection that is
        there stays."""
        if (wanted, retry) != (self._wanted, self._retry):
            self._wanted, self._retry = wanted, retry
            self._nudge()

    def _idle(self) -> bool:
        """Whether to make a connection. A connection that is being closed does not count."""
        return self._wanted and all(peer.close_by is not None for peer in self._peers.values())

    def _due(self, now: float) -> list[float]:
        return [self._last_try + self._retry] if self._idle() else []

    def _maintain(self, now: float) -> None:
        if not self._idle() or now < self._last_try + self._retry:
            return
        self._last_try = now
        if self._key() is None:
            return
        leader, me = self._gang.leader, self._gang.me
        connection = socket.socket(_family(leader.address), socket.SOCK_STREAM)
        try:
            _prepare(connection)
            # The leader identifies its members by their addresses.
            connection.bind((me.address, 0))
            with contextlib.suppress(BlockingIOError):
                connection.connect((leader.address, self._gang.gang_port))
        except OSError as error:
            connection.close()
            self._numbers += 1
            self._emit(Lost(self._numbers, f"cannot be reached ({_why(error)})"))
            return
        self._add(connection, leader.address, None)

    def _loss(self, peer: _Peer, why: str) -> Event:
        if peer.link is not None and not peer.link.proved:
            why += " before it had accepted this node: do both have the same gang_key and the same members?"
        return Lost(peer.number, why)

    def _connected(self, peer: _Peer) -> None:
        error = peer.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        key = self._key() if not error else None
        if error:
            self._fail(peer, f"cannot be reached ({os.strerror(error)})")
        elif key is None:
            self._drop(peer)
        else:
            peer.link = Link(FOLLOWER, key, os.urandom(NONCE_BYTES).hex(), time.monotonic(), self._hello())
