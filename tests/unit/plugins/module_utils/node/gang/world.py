# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A gang without machines: real state machines and links, and a simulated network, clock, systemd and engines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache

from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang.members import Gang, Member
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import gangs
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.follower import Follower
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.leader import Leader
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.link import Link, LinkError
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.messages import Go, Offers, Prove
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.orders import (
    DRAIN,
    KILL,
    NONE,
    RUN,
    Actions,
    Close,
    Send,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.gang.wire import FOLLOWER, LEADER, gang_key

STEP = 0.25
"""Seconds of a step."""

LOAD = 5.0
"""Seconds until engines that all run are ready."""

DRAIN_SECONDS = 3.0
"""Seconds that requests in flight take."""

RESTART = 2.0
"""Seconds until systemd restarts a supervisor."""

KEY = gang_key(b"0123456789abcdef", "big")

OLD, NEW = "a" * 64, "b" * 64
"""Gang digests."""


def gang(rank: int, size: int = 2, digest: str = OLD) -> Gang:
    """A gang of nodes gpu-0, gpu-1 …, as one of them sees it."""
    members = tuple(Member(f"gpu-{number}", number, f"10.0.0.{number + 1}") for number in range(size))
    return Gang("big", rank, members, gang_port=5110, rendezvous_port=29510, digest=digest)


@cache
def numbered(rank: int, kept: tuple[str, ...]) -> tuple[dict[str, int], str]:
    """The release numbers of a member by digest, and the text in which the member offers its releases."""
    number_of = {digest: number + 1 + 10 * rank for number, digest in enumerate(kept)}
    return number_of, " ".join(f"{number}:{digest[:12]}" for digest, number in number_of.items())


@dataclass
class Pipe:
    """A connection between a follower and the leader."""

    rank: int
    number: int
    ends: dict[str, Link]
    lost: dict[str, str] = field(default_factory=dict)
    """Ends that are closed, with what the other end sees."""


@dataclass
class Node:
    """A member: its supervisor's state machine, its engine, its unit and its network."""

    rank: int
    machine: Leader | Follower | None = None
    engine: int = 0
    """The epoch of the running engine; 0 without one."""
    started: float = 0.0
    starts_at: float = 0.0
    """When systemd starts the supervisor again."""
    wanted: bool = True
    """Whether the unit is not stopped."""
    powered: bool = True
    cut: bool = False
    """Whether nothing arrives here or comes from here, while all connections stay open."""
    digest: str = OLD
    kept: tuple[str, ...] = (OLD, NEW)
    """The digests of the releases on the disk, oldest first. numbered() has their numbers."""
    proven: str = OLD
    desired: str = OLD
    drains_until: float | None = None
    faults: list[str] = field(default_factory=list)


class World:
    """The whole gang. `step` lets STEP seconds pass, and checks what must always hold."""

    outlives = 12.0
    """Seconds by which an engine may outlive its gang."""

    def __init__(self, size: int = 2) -> None:
        self.size = size
        self.now = 0.0
        self.epoch = 0
        self.went: set[int] = set()
        """The epochs for which the leader has sent `go`."""
        self.nodes = [Node(rank) for rank in range(size)]
        self.pipes: list[Pipe] = []
        self._number = 0
        self.alone_since: dict[int, float] = {}
        """By epoch: since when some of its engines are missing, after all of them ran."""
        self.complete: set[int] = set()

    # Events.

    def engine_dies(self, rank: int) -> None:
        self.nodes[rank].engine = 0

    def supervisor_dies(self, rank: int) -> None:
        """The process is killed: its connections are closed, and ExecStopPost removes the container."""
        node = self.nodes[rank]
        if node.machine is not None:
            node.machine, node.engine, node.drains_until = None, 0, None
            node.starts_at = self.now + RESTART
            for pipe in self._pipes_of(rank):
                self._close(pipe, self._end(rank), "closed the connection")

    def cut(self, rank: int) -> None:
        self.nodes[rank].cut = True

    def heal(self, rank: int) -> None:
        self.nodes[rank].cut = False

    def power_off(self, rank: int) -> None:
        """No connection is closed: the other ends get no more bytes."""
        node = self.nodes[rank]
        node.powered, node.machine, node.engine, node.drains_until = False, None, 0, None
        for pipe in self._pipes_of(rank):
            pipe.lost.setdefault(self._end(rank), "")

    def power_on(self, rank: int) -> None:
        self.nodes[rank].powered, self.nodes[rank].starts_at = True, self.now

    def stop(self, rank: int) -> None:
        self.nodes[rank].wanted = False

    def start(self, rank: int) -> None:
        self.nodes[rank].wanted = True

    def change_digest(self, rank: int) -> None:
        """The inventory gets another release, and the unit restarts."""
        self.nodes[rank].digest = NEW
        self.supervisor_dies(rank)

    def restore_digest(self, rank: int) -> None:
        self.nodes[rank].digest = OLD
        self.supervisor_dies(rank)

    def stranger(self, rank: int) -> None:
        """A process that sends garbage, at the address of the member."""
        link = Link(LEADER, KEY, "0" * 32, self.now)
        try:
            link.receive(b'{"v": 1, "nonce": "' + b"1" * 32 + b'"}\n{"t": "down"}\n', self.now)
            raise AssertionError("a stranger's line was accepted")
        except LinkError:
            pass

    # Time.

    def run(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Let time pass, at most until a condition holds. Returns whether it holds."""
        end = self.now + seconds
        while self.now < end and not until():
            self.step()
        return until()

    @property
    def serving(self) -> bool:
        """Whether all members serve in the leader's epoch."""
        machines = [node.machine for node in self.nodes]
        return all(machine is not None and machine.phase == gangs.SERVING for machine in machines) and all(
            node.engine == self.epoch for node in self.nodes
        )

    def step(self) -> None:
        self.now += STEP
        for node in self.nodes:
            self._systemd(node)
            self._dial(node)
        for pipe in list(self.pipes):
            self._carry(pipe)
        for node in self.nodes:
            self._supervise(node)
        self._check()

    def _systemd(self, node: Node) -> None:
        if node.powered and node.wanted and node.machine is None and self.now >= node.starts_at:
            if node.rank:
                number = node.kept.index(node.digest) + 1 + 10 * node.rank
                node.machine = Follower(gang(node.rank, self.size, node.digest), number)
            else:
                self.epoch += 1
                node.machine = Leader(gang(0, self.size, node.digest), self.epoch, self.expected())

    def _dial(self, node: Node) -> None:
        machine, leader = node.machine, self.nodes[0]
        if not isinstance(machine, Follower) or not machine.wants_link or self._pipes_of(node.rank):
            return
        if leader.machine is None or leader.cut or node.cut or not leader.powered:
            self._perform(node, machine.lost(self._next_number(), "cannot be reached"))
            return
        ends = {
            LEADER: Link(LEADER, KEY, f"{self._next_number():032x}", self.now),
            FOLLOWER: Link(FOLLOWER, KEY, f"{self._next_number():032x}", self.now, machine.hello),
        }
        self.pipes.append(Pipe(node.rank, self._next_number(), ends))

    def _next_number(self) -> int:
        self._number += 1
        return self._number

    def _carry(self, pipe: Pipe) -> None:
        """Move bytes both ways, twice, so that a question and its answer take one step."""
        severed = self.nodes[0].cut or self.nodes[pipe.rank].cut
        for _turn in range(2):
            for end, other in ((LEADER, FOLLOWER), (FOLLOWER, LEADER)):
                if end in pipe.lost:
                    continue
                try:
                    pipe.ends[end].tick(self.now)
                    if severed:
                        continue
                    data, pipe.ends[other].output = bytes(pipe.ends[other].output), bytearray()
                    for message in pipe.ends[end].receive(data, self.now) if data else ():
                        self._hear(pipe, end, message)
                        if end in pipe.lost:
                            break
                    if end not in pipe.lost and pipe.lost.get(other):
                        raise LinkError(pipe.lost[other])
                except LinkError as error:
                    self._lose(pipe, end, str(error))
        if len(pipe.lost) == 2:
            self.pipes.remove(pipe)

    def _hear(self, pipe: Pipe, end: str, message: object) -> None:
        node = self.nodes[0] if end == LEADER else self.nodes[pipe.rank]
        machine = node.machine
        if isinstance(machine, Leader):
            address = machine.gang.members[pipe.rank].address
            self._perform(node, machine.receive(pipe.number, message, address, self.now))  # type: ignore[arg-type]
        elif isinstance(machine, Follower):
            self._perform(node, machine.receive(pipe.number, message))  # type: ignore[arg-type]

    def _lose(self, pipe: Pipe, end: str, why: str) -> None:
        pipe.lost.setdefault(end, "closed the connection")
        node = self.nodes[0] if end == LEADER else self.nodes[pipe.rank]
        if node.machine is not None:
            self._perform(node, node.machine.lost(pipe.number, why))

    def _close(self, pipe: Pipe, end: str, seen: str) -> None:
        pipe.lost.setdefault(end, seen)

    def _perform(self, node: Node, actions: Actions) -> None:
        for action in actions:
            pipe = next((pipe for pipe in self.pipes if pipe.number == action.link), None)
            if pipe is None or self._end(node.rank) in pipe.lost:
                continue
            if isinstance(action, Close):
                self._close(pipe, self._end(node.rank), "closed the connection")
            elif isinstance(action, Send):
                if isinstance(action.message, Go):
                    self.went.add(action.message.epoch)
                pipe.ends[self._end(node.rank)].send(action.message)

    def _pipes_of(self, rank: int) -> Iterator[Pipe] | list[Pipe]:
        end = self._end(rank)
        return [pipe for pipe in self.pipes if (rank == 0 or pipe.rank == rank) and end not in pipe.lost]

    @staticmethod
    def _end(rank: int) -> str:
        return FOLLOWER if rank else LEADER

    # What a supervisor does for its state machine.

    def _supervise(self, node: Node) -> None:
        machine = node.machine
        if machine is None:
            return
        if isinstance(machine, Leader):
            machine.proof = self.proof()
        self._perform(node, machine.tick(self.now))
        if not node.wanted:
            if isinstance(machine, Leader):
                if machine.phase not in (gangs.STOPPING, gangs.ENDED, gangs.STOPPED):
                    self._perform(node, machine.stop())
            else:
                self._perform(node, machine.stop("its unit is being stopped", self.now, 2 * DRAIN_SECONDS))
        self._obey(node, machine)
        if isinstance(machine, Follower):
            if machine.wants_container:
                machine.created()
            self._tend_releases(node, machine)
            if machine.phase == gangs.STOPPED:
                self._exit(node)
        elif machine.order.engine == NONE and machine.phase in (gangs.ENDED, gangs.STOPPED):
            self._exit(node)

    def _tend_releases(self, node: Node, machine: Follower) -> None:
        number_of, words = numbered(node.rank, node.kept)
        if machine.proof is not None:
            machine.proof, node.proven = None, node.digest
        active, current, desired = (number_of.get(digest, 0) for digest in (node.digest, node.proven, node.desired))
        self._perform(node, machine.offer(Offers(active, current, desired, words)))
        if machine.move is not None:
            wanted, machine.move = machine.move, None
            if wanted.digest in node.kept and wanted.release in (0, number_of[wanted.digest]):
                node.digest = wanted.digest
                self.supervisor_dies(node.rank)
            else:
                machine.unmoved = "has no such release"

    def _obey(self, node: Node, machine: Leader | Follower) -> None:
        order = machine.order
        if node.engine and node.engine != order.epoch and order.engine != KILL:
            raise AssertionError(f"gpu-{node.rank} has an engine of epoch {node.engine}, and the order {order}")
        if order.engine == RUN:
            if not node.engine and not node.started:
                node.engine, node.started = order.epoch, self.now
                if isinstance(machine, Follower):
                    self._perform(node, machine.engine_started())
            elif not node.engine:
                self._engine_ended(node, machine, "died")
            elif isinstance(machine, Leader) and machine.phase == gangs.LOADING and self._loaded():
                self._perform(node, machine.engine_ready())
        elif order.engine == KILL or (order.engine == DRAIN and not node.engine):
            self._engine_ended(node, machine, "killed")
        elif order.engine == DRAIN:
            node.drains_until = node.drains_until or self.now + DRAIN_SECONDS
            if self.now >= node.drains_until:
                self._engine_ended(node, machine, "drained")

    def _loaded(self) -> bool:
        return all(node.engine == self.epoch and self.now - node.started >= LOAD for node in self.nodes)

    def _engine_ended(self, node: Node, machine: Leader | Follower, detail: str) -> None:
        node.engine, node.started, node.drains_until = 0, 0.0, None
        self._perform(node, machine.engine_ended(detail))

    def _exit(self, node: Node) -> None:
        """The supervisor ends by itself; its last messages arrive."""
        for pipe in self._pipes_of(node.rank):
            self._close(pipe, self._end(node.rank), "closed the connection")
        node.machine, node.starts_at = None, self.now + RESTART

    # What the leader's supervisor reads of a swap.

    def expected(self) -> dict[str, int]:
        return {}

    def proof(self) -> Prove | None:
        return None

    # What must always hold.

    def _check(self) -> None:
        for node in self.nodes:
            if node.machine is None:
                node.started = 0.0
                assert not node.engine, f"gpu-{node.rank} has an engine without a supervisor"
            if node.engine:
                assert node.engine in self.went, f"gpu-{node.rank} runs epoch {node.engine} without go"
        for epoch in {node.engine for node in self.nodes if node.engine}:
            there = [node for node in self.nodes if node.engine == epoch]
            if len(there) == self.size:
                self.complete.add(epoch)
                self.alone_since.pop(epoch, None)
            elif epoch in self.complete:
                since = self.alone_since.setdefault(epoch, self.now)
                outlived = self.now - since
                assert outlived <= self.outlives, (
                    f"gpu-{there[0].rank} outlives the gang of epoch {epoch} by {outlived} s"
                )
