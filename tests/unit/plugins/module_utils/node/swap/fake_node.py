# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated node that swaps its instance. Engines, gate, agent and gateways are in memory, and so are clients, which
try to connect all the time.

All changes that a swap makes to the node, except those of its lock, pass through `FakeNode.act`. There, a test may
raise an error, kill the swap, or restart the node, and the invariants of a swap are checked before and after each act.
State files are real, below a directory of the test.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.journal import Journal
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths, unit_name
from ansible_collections.baremetal.inference.plugins.module_utils.engine import (
    bridges,
    gate,
    listeners,
    load_time,
    prepare,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.bridge_place import Place
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import wait
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe.acceptance import Result
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Settings
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import (
    drains,
    gateway_answers,
    install_state,
    lock,
    releases,
    swaps,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.gateway_answers import GatewayAnswer
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.swaps import Report, Swap
from ansible_collections.baremetal.inference.plugins.module_utils.engine.swap_settings import (
    UNKNOWN,
    Gateway,
    SwapSettings,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.swap_terms import Terms
from ansible_collections.baremetal.inference.plugins.module_utils.node.cli import swap as cli
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap import (
    begin,
    bridge,
    gateways,
    perform,
    proof,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.acts import STEPS
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.gateways import Server, SetView, Views
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.node import Node
from ansible_collections.baremetal.inference.plugins.module_utils.node.swap.traffic import Traffic

from ...conftest import stage

NAME, BRIDGE, NODE = "main", "main_bridge", "node1"
UNIT = unit_name(NAME)
PORTS = {NAME: 5005, BRIDGE: 5105}
ADDRESS = Settings().address
ORIGIN, TARGET = 1, 2
SINCE = "2026-11-25T12:00:00Z"
RUN = "20261125T120000-ab12"
GATEWAY = Gateway("gw1", "10.0.0.9", 8404)

CONNECTED_SECONDS = 1.0
"""Seconds that the engine takes for a request."""

_WRITE, _LINK = files.write, files.link

RECORDS = ("swap", "drain")
"""The directories of the records that the invariants read."""

PATIENCE = 40
"""Most processes of one swap. A swap with more never ends."""


class Killed(BaseException):
    """The process of the swap is killed. No step may catch this exception."""


class Restarted(Killed):
    """The node restarts."""


class Broken(BaseException):
    """An invariant does not hold. Not an Exception, which a swap would treat as a failed step, and hide."""


def holds(condition: object, words: str) -> None:
    """Raise Broken if an invariant does not hold."""
    if not condition:
        raise Broken(words)


def _no_space(what: str) -> bool:
    raise OSError(28, f"No space left on device: {what}")


@dataclass(frozen=True)
class Fault:
    """A fault at an act: `raise`, `kill` or `restart`; before the act, or after it."""

    kind: str
    after: bool = True
    damage: str | None = None
    """The text that the fault writes to the record of the swap, if there is a record."""


@dataclass
class Engine:
    """An engine that runs."""

    release: int
    fit: bool = False
    """Whether clients may reach it: its process has passed the probe, or its release was proven before."""
    connections: list[float] = field(default_factory=list)
    """When each of its requests will have ended."""
    started: int = field(default_factory=lambda: int(time.time()) + 1)
    """Seconds since 1970."""


class FakeNode:
    """The node. `others`: another node of the set serves. `deaf`: the gateway does not check the agent."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, name: str = NODE) -> None:
        self.paths = Paths(root)
        self.settings = SwapSettings(name, (GATEWAY,))
        self.host = name
        """The node's name at the gateways."""
        self.other: FakeNode | None = None
        """Another node of the set, which swaps its instance, too, in place of `others`."""
        self.engines: dict[str, Engine] = {}
        self.enabled: set[str] = set()
        self.closed: set[int] = set()
        self.others = True
        self.others_status = ""
        self.deaf = False
        self.silent = False
        self.hostile = True
        self.bridge_problem = "it has no bridge_port"
        self.moves_to: int | None = None
        """The port of the target release, if this port is another one."""
        self.unfit: set[int] = set()
        """Releases that do not pass the probe."""
        self.dead: set[int] = set()
        """Releases that do not start."""
        self.failing: set[int] = set()
        """Releases that die while they are watched."""
        self.faults: dict[int, Fault] = {}
        self.damaged = False
        """Whether a fault has damaged the record of the swap."""
        self.full_from: int | None = None
        """From this act on, the disk is full. Files below /run can be written, and files can be removed."""
        self.gateway_lost_at: int | None = None
        """From this act on, the gateway neither asks the agent nor answers the node."""
        self.fails_on_return: tuple[str, float] | None = None
        """An act that fails on the way back, and the seconds for which it fails from its first failure on."""
        self._out_since: float | None = None
        self.killed_at_rest = False
        """Whether the process is killed once before each further try."""
        self._rested: set[int] = set()
        self.forgets = False
        """Whether swap.json, the file with the node's gateways, is damaged when the process of the swap dies."""
        self.unknown = ""
        self.acts: list[str] = []
        self.said: list[str] = []
        self.steps: list[str] = []
        self._dead: Killed | None = None
        self._step = ""
        self.clock = 1000.0
        self._resting = False
        self._belief: dict[str, tuple[str, int]] = {}
        self._known: dict[str, Any] = {}
        """What was read from disk since the last step began, or since one of RECORDS was written."""
        self._patch(monkeypatch)

    def _patch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for module, name, fake in self.fakes():
            monkeypatch.setattr(module, name, fake)

    def fakes(self) -> Sequence[tuple[Any, str, Callable[..., Any]]]:
        """The functions in place of those of a real node: module, name, and the function."""

        def written(path: Path, content: str | bytes | None, mode: int = 0o644) -> bool:
            verb = "remove" if content is None else "write"
            if path == self.paths.lock if content else not path.exists():
                # The lock is renewed, or there is nothing to remove.
                return _WRITE(path, content, mode)
            what = f"{verb} {path.relative_to(self.paths.root)}"
            if content is not None and self._is_full(path) and not files.same(path, content, mode):
                return self.act(what, lambda: _no_space(what), OSError)
            return self.act(what, lambda: self._write(path, content, mode), OSError)

        return (
            (files.os, "fsync", lambda _handle: None),
            (files, "write", written),
            (files, "link", lambda path, text: self.act(f"link {path.name}", lambda: _LINK(path, text), OSError)),
            (gate, "close", lambda port: self.act(f"close {port}", lambda: self.closed.add(port), gate.GateError)),
            (gate, "open_", lambda port: self.act(f"open {port}", lambda: self._open(port), gate.GateError)),
            (gate, "closed", lambda: set(self.closed)),
            (gate, "local_clients", set),
            (systemd, "systemctl", self._systemctl),
            (systemd, "show", self._show),
            (load_time, "seconds", lambda _name: 12.5),
            (load_time, "expected", lambda *_given: 12.5),
            (prepare, "missing", lambda *_given: []),
            (listeners, "clients", self._connected),
            (begin, "place", lambda *_given: Place(problem=self.bridge_problem)),
            (bridge, "place", lambda *_given: Place(problem=self.bridge_problem)),
            (bridges, "declared_port", lambda *_given: None if self.bridge_problem else PORTS[BRIDGE]),
            (install_state, "serving", lambda _paths, name, _now: name in self.engines),
            (gateway_answers, "read", lambda _paths, name: self._answers(name)),
            (gateways, "ask_all", lambda listed, _name: self._views() if listed else Views((), {})),
            (wait, "wait_ready", self._wait_ready),
            (proof, "accept", self._accept),
            (proof, "watch", self._watch),
            (proof, "counted", lambda *_given: {}),
        )

    def _write(self, path: Path, content: str | bytes | None, mode: int) -> bool:
        if path.parent.name in RECORDS:
            self._known.clear()
        return _WRITE(path, content, mode)

    # What happens on the node ----------------------------------------------------------------------------------------

    def act(self, what: str, change: Callable[[], Any], error: type[Exception] = RuntimeError) -> Any:
        """Change the node, or inject a fault of the test."""
        if self._resting:
            return change()
        if self._dead:
            raise self._dead
        self._world_goes_on()
        self.acts.append(f"{self._step}: {what}")
        fault = self.faults.pop(len(self.acts), None)
        if fault and not fault.after:
            self._fail(fault, error, what)
        if self.gateway_lost_at is not None and len(self.acts) >= self.gateway_lost_at:
            self.deaf = self.silent = True
        if self._is_out(what):
            self._fail(Fault("raise"), error, what)
        result = change()
        self._world_goes_on()
        if fault:
            self._fail(fault, error, what)
        return result

    def _fail(self, fault: Fault, error: type[Exception], what: str) -> None:
        if fault.damage is not None and self.paths.swap(NAME).exists():
            _WRITE(self.paths.swap(NAME), fault.damage)
            _WRITE(self.paths.swap_meanwhile(NAME), None)
            self.damaged = True
            self._known.clear()
        if fault.kind == "raise":
            raise error(f"a fault at: {what}")
        # A killed process does nothing more, not even the statements of `finally`.
        self._dead = {"kill": Killed, "restart": Restarted}[fault.kind](what)
        raise self._dead

    def _is_full(self, path: Path) -> bool:
        on_disk = not path.is_relative_to(self.paths.root / "run")
        return on_disk and self.full_from is not None and len(self.acts) + 1 >= self.full_from

    def _is_out(self, what: str) -> bool:
        swap = self.swap()
        if (
            self.fails_on_return is None
            or swap is None
            or not swap.returning
            or not what.startswith(self.fails_on_return[0])
        ):
            return False
        self._out_since = self.clock if self._out_since is None else self._out_since
        return self.clock - self._out_since < self.fails_on_return[1]

    def sleep(self, seconds: float) -> None:
        self.clock += seconds
        self._world_goes_on()
        swap = self.swap()
        if self.killed_at_rest and swap and swap.tries and swap.tries not in self._rested:
            self._rested.add(swap.tries)
            self._fail(Fault("kill"), RuntimeError, "rest")

    def _world_goes_on(self) -> None:
        """Requests end, new ones come through open gates, and the invariants are checked."""
        for name, engine in self.engines.items():
            engine.connections = [end for end in engine.connections if end > self.clock]
            believed = self._belief.get(name, ("down", 0))[0]
            if self.port(name) not in self.closed and (believed == "up" or (self.hostile and name == NAME)):
                engine.connections.append(self.clock + CONNECTED_SECONDS)
        self.check()

    def port(self, name: str) -> int:
        """The port of an engine."""
        engine = self.engines.get(name)
        moved = self.moves_to if name == NAME and engine and engine.release == TARGET else None
        return moved or PORTS[name]

    def swap(self) -> Swap | None:
        """The recorded swap."""
        if "swap" not in self._known:
            self._known["swap"] = swaps.read(self.paths, NAME)
        return self._known["swap"]

    def drain(self, name: str) -> drains.Drain | None:
        """The recorded drain of an engine."""
        if name not in self._known:
            self._known[name] = drains.read(self.paths, name, drains.parse_time(SINCE))
        return self._known[name]

    def word(self, name: str) -> str:
        """The agent's answer to a gateway."""
        swap = self.swap() if name == NAME else None
        if self.drain(name) or (swap and swap.gated):
            return "drain"
        return "up" if name in self.engines else "down"

    def _answers(self, name: str) -> list[GatewayAnswer]:
        if self.deaf:
            return []
        word, (before, times) = self.word(name), self._belief.get(name, ("", 0))
        self._belief[name] = (word, times + 1 if word == before else 1)
        return [GatewayAnswer(GATEWAY.name, *self._belief[name], asked=self.clock)]

    def _views(self) -> Views:
        if self.silent:
            return Views((), {GATEWAY.name: "gw1 does not answer"})
        self._answers(NAME), self._answers(BRIDGE)

        addresses = tuple(f"{ADDRESS}:{port}" for port in (PORTS[NAME], self.moves_to) if port)

        def server(status: str) -> Server:
            return Server(status.startswith("UP"), status, 100, 10, 0, addresses)

        names = {"up": "UP", "drain": "DRAIN", "down": "DOWN"}
        own = self.host
        servers = {
            own: server(names[self._belief.get(NAME, ("down", 0))[0]]),
            f"{BRIDGE}.{own}": server(names[self._belief.get(BRIDGE, ("down", 0))[0]]),
        }
        if self.other:
            self.other._answers(NAME)
            servers[self.other.host] = server(names[self.other._belief[NAME][0]])
        elif self.others or self.others_status:
            servers["node2"] = server(self.others_status or "UP")
        return Views((SetView(GATEWAY.name, True, hold_seconds=120, age=60, requests=10, servers=servers),), {})

    def _connected(self, port: int, _users: Iterable[int] = ()) -> list[str]:
        found = sum(len(engine.connections) for name, engine in self.engines.items() if self.port(name) == port)
        return ["10.0.0.9"] * found

    def _open(self, port: int) -> None:
        engine = self.engines.get(NAME)
        if port == self.port(NAME) and port in self.closed and engine:
            holds(engine.fit, "the gate opens in front of an engine that has not passed its probe")
        self.closed.discard(port)

    def _systemctl(self, *words: str) -> str:
        verb, names = words[0], [name for name in words[1:] if name in (UNIT, unit_name(BRIDGE))]
        changes: dict[str, Callable[[str], None]] = {
            "stop": self._stop,
            "start": self._start,
            "enable": self.enabled.add,
            "disable": self.enabled.discard,
        }
        for name in names if verb in changes else ():
            instance = next(one for one in PORTS if unit_name(one) == name)
            self.act(f"{verb} {instance}", partial(changes[verb], instance), systemd.SystemdError)
        return ""

    def _stop(self, name: str) -> None:
        engine = self.engines.get(name)
        if engine and name == NAME:
            swap = self.swap()
            holds(self.port(name) in self.closed, "the engine is stopped in front of an open gate")
            holds(not engine.connections, "the engine is stopped while it has clients")
            holds(swap and swap.touched, "the engine is stopped before the stop is recorded")
        self.engines.pop(name, None)

    def _start(self, name: str) -> None:
        if not self.paths.unit(name).exists() or name in self.engines:
            return
        number = releases.active_number(self.paths, name)
        if number is not None and (name != NAME or number not in self.dead):
            self.engines[name] = Engine(number)

    def _show(self, units: Iterable[str], properties: Iterable[str]) -> dict[str, dict[str, str]]:
        running = {unit_name(name) for name in self.engines}
        started = {unit_name(name): engine.started for name, engine in self.engines.items()}
        return {
            unit: {
                **dict.fromkeys(properties, ""),
                "ActiveState": "active" if unit in running else "inactive",
                "InvocationID": "1",
                "InactiveExitTimestamp": f"@{started[unit]}" if unit in started else "",
            }
            for unit in units
        }

    def _wait_ready(self, _paths: Paths, names: Sequence[str], _seconds: float) -> list[wait.Outcome]:
        name = names[0]
        return [self.act(f"wait for {name}", lambda: wait.Outcome(name, self._state(name), last_words="no memory"))]

    def _state(self, name: str) -> str:
        return "ready" if name in self.engines else "failed"

    def _accept(self, _paths: Paths, name: str, number: int, *_given: object, **_more: object) -> Result:
        def judged() -> Result:
            engine = self.engines.get(name)
            if engine is None or engine.release != number or (name == NAME and number in self.unfit):
                raise proof.Unfit(f"release {number} is not fit to serve")
            engine.fit = True
            return Result(["one token"], 42.0)

        return self.act(f"probe {name}", judged, proof.Unfit)

    def _watch(self, _paths: Paths, name: str, *_given: object, **_more: object) -> str:
        def watched() -> str:
            engine = self.engines.get(name)
            if engine is None or (name == NAME and engine.release in self.failing):
                raise proof.Unfit(f"{name} stopped serving while it was watched")
            return "fast enough"

        return self.act(f"watch {name}", watched, proof.Unfit)

    # Invariants ------------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Check the invariants of a swap, which hold at all times."""
        swap, engine = self.swap(), self.engines.get(NAME)
        closed = self.port(NAME) in self.closed
        if closed or self.closed & {PORTS[NAME], self.moves_to}:
            holds(self.word(NAME) == "drain", "the gate is closed, and the agent would send clients there")
        if swap and swap.step in (swaps.STOP, swaps.START, swaps.PROBE) and engine:
            holds(closed, f"clients reach the engine in step {swap.step}")
        if swap and swap.step in (swaps.GATE, swaps.STOP, swaps.PROBE) and closed:
            holds(self.drain(NAME), "the gate is closed without a drain")
        if engine and not closed:
            holds(engine.fit, "clients reach an engine that has not passed its probe")
        if self._step:
            holds(swap and swap.step == self._step, f"the step {self._step} runs, but is not recorded")

    # Runs of a swap -------------------------------------------------------------------------------------------------

    def node(self, say: Callable[[str], None] | None = None) -> Node:
        """The node as the steps of a swap get it."""
        traffic = Traffic(self.paths, self.settings.gateways, lambda: self.clock, self.sleep, self._connected)
        return Node(self.paths, NAME, self.settings, traffic, say or self.said.append)

    def performance(self) -> perform.Performance:
        """A process of the swap, as the unit starts it."""
        steps = {name: self._watched_step(name, step) for name, step in STEPS.items()}
        self._dead = None
        return perform.Performance(self.paths, NAME, self.node, steps, _Silent(self.said))

    def _watched_step(
        self, name: str, step: Callable[[Node, Swap], dict[str, Any]]
    ) -> Callable[[Node, Swap], dict[str, Any]]:
        def taken(node: Node, swap: Swap) -> dict[str, Any]:
            self.steps.append(name)
            self._step = name
            self._known.clear()
            try:
                self.check()
                return step(node, swap)
            finally:
                self._step = ""

        return taken

    def run(self) -> Report | None:
        """Run a swap to its end. A process that dies is started again."""
        for _process in range(PATIENCE):
            try:
                # A swap that was killed after its end has left its report.
                return self.performance().run(self.unknown) or swaps.last(self.paths, NAME)
            except Restarted:
                self._forget()
                self.boot()
            except (Killed, OSError, ValueError):
                self._forget()
                # systemd starts the unit again.
                self.sleep(2)
        raise AssertionError(f"the swap never ends: {self.steps}")

    def _forget(self) -> None:
        if self.forgets:
            self.settings, self.unknown = UNKNOWN, "swap.json is damaged: run baremetal.inference.site"

    def boot(self) -> None:
        """The node restarts: all gates are open, and /run is empty. `resume-swaps` closes gates before the enabled
        engines start."""
        self.engines.clear()
        self.closed.clear()
        shutil.rmtree(self.paths.root / "run", ignore_errors=True)
        self._known.clear()
        for _process in range(PATIENCE):
            self._dead = None
            with contextlib.suppress(Killed):
                if cli._resume(argparse.Namespace(), self.paths) == 0:
                    break
            if isinstance(self._dead, Restarted):
                self.closed.clear()
        with self.resting():
            for name in sorted(self.enabled):
                self._start(name)
        proven = releases.current_number(self.paths, NAME)
        swap, engine = self.swap(), self.engines.get(NAME)
        if engine:
            # The release proved itself before the restart, and needs no new proof.
            passed = swap is None or swap.step in (swaps.PROVE, swaps.UNBRIDGE)
            engine.fit = passed or engine.release == proven
        self.check()

    @contextlib.contextmanager
    def resting(self) -> Iterator[None]:
        """No fault happens, and no invariant is checked, until the end of the block."""
        before, self._resting = self._resting, True
        try:
            yield
        finally:
            self._resting = before
            self._known.clear()

    def serve(self, number: int | None = ORIGIN) -> None:
        """Prepare the node: it keeps two releases, and the release `number` serves, or none."""
        with self.resting():
            for dtype, port in (("float32", PORTS[NAME]), ("float16", self.moves_to or PORTS[NAME])):
                stage(self.paths, NAME, port, dtype)
            files.write_json(self.paths.instance(NAME), {"schema": 1, "model": "tiny-a", "release": TARGET})
            if number is not None:
                releases.activate(self.paths, NAME, number)
                releases.commit(self.paths, NAME, number)
                self.enabled.add(NAME)
                self.engines[NAME] = Engine(number, fit=True, started=1)
                self._belief[NAME] = ("up", 2)

    def begin(self, origin: int | None = ORIGIN, target: int = TARGET, **more: Any) -> None:
        """Record a swap as request.begin does, with the lock of `inferctl swap`."""
        terms = more.pop("terms", Terms(drain_seconds=70, watch_seconds=5))
        with self.resting():
            swap = Swap(origin, target, RUN, SINCE, terms=terms, step=swaps.BEGUN, **more)
            swaps.begin(self.paths, NAME, swap)
            held = lock.Lock(RUN, "mira", "node1", lock.BY_HAND, SINCE, "2126-01-01T00:00:00Z")
            files.write_json(self.paths.lock, {"schema": lock.SCHEMA, **vars(held)})

    def check_end(self, report: Report | None) -> str:
        """Check the state after a swap. Returns the swap's outcome."""
        swap, engine = self.swap(), self.engines.get(NAME)
        if report is None:
            assert swap and swap.step == swaps.STUCK and swap.failure, f"it has no end: {swap}"
            assert self.word(NAME) == "drain", "an instance that is stuck gets no requests"
            self._check_lock()
            return swaps.STUCK
        assert swaps.last(self.paths, NAME) in (report, None), "a full disk may lose the report"
        left = {PORTS[BRIDGE]} if "open" in report.kept_bridge else set()
        assert swap is None and self.closed <= left and not self.drain(NAME)
        self._check_lock()
        expected = {swaps.DONE: TARGET}.get(report.outcome, report.origin)
        assert (engine.release if engine else None) == expected, "another release serves"
        if expected is not None:
            assert engine and engine.fit
            proven = releases.proven(self.paths, NAME, expected)
            assert proven or report.unproven == "the record of its swap was damaged" or self.full_from is not None
            assert proven or report.unproven
            assert releases.active_number(self.paths, NAME) == expected
        assert bool(report.failure) is (report.outcome != swaps.DONE)
        if not report.kept_bridge:
            assert BRIDGE not in self.engines and not bridges.left(self.paths, NAME), "the bridge stays behind"
        return report.outcome

    def _check_lock(self) -> None:
        forgotten = any("the node's lock: " in words for words in self.said)
        assert lock.read(self.paths) is None or forgotten, "the lock stays behind"


class _Silent(Journal):
    """A journal that only keeps its messages."""

    def __init__(self, said: list[str]) -> None:
        super().__init__()
        self._said = said

    def say(self, message: str, priority: int = 6, **_fields: str | int | None) -> None:
        self._said.append(message)


def scenario(node: FakeNode, changes: Mapping[str, Any]) -> None:
    """Bring a node into the state of a scenario, and begin the swap."""
    more = {key: value for key, value in changes.items() if key in ("origin", "target")}
    for key, value in changes.items():
        if key not in more:
            setattr(node, key, value)
    node.serve(more.get("origin", ORIGIN))
    node.begin(**more)
