# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The main process of an engine's unit: starts the container, reports when it serves, and waits for its end.

Private to the collection. It watches the container's first process by a pidfd, and signals it through the pidfd. So
dockerd may stop, restart or be killed meanwhile: a healthy engine continues, and a death is seen at once. The leader of
a gang also obeys the gang: it starts its engine with all members, and ends the engine when a member is lost.
"""

# pylint: disable=ansible-bad-function  # a service, which prints to the journal
from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.docker_api import Docker, DockerError, DockerUnavailable
from ..core.sizes import human
from ..core.systemd import Notifier
from ..engine import listeners, task
from ..engine.probe import probe, warm_up
from ..engine.release import Release
from .events import Events, Job, open_pidfd
from .gang.alone import Alone
from .gang.orders import DRAIN, KILL, RUN, Order

DOCKER_TIMEOUT = 90.0
"""Seconds to wait for a Docker that stopped between the preparation and the start."""

PROBE_INTERVAL = 1.0
"""Seconds between the end of a failed probe and the next probe."""

STATUS_INTERVAL = 5.0
"""Seconds between two reports to systemd while the engine loads."""

EXTENSION = 60
"""Seconds by which each report extends systemd's start timeout. Only units of version 0.1.0 need this: their timeout is
two minutes."""

IDLE_TIMEOUT = 3.0
"""Seconds within which an engine must report whether it is idle. An engine that hangs does not report."""

KILL_TIMEOUT = 10.0
"""Seconds until a killed engine must be gone. A process that hangs in a driver may take longer."""

EXIT_CODE_TIMEOUT = 3.0
"""Seconds that dockerd may take to notice a death and to report the exit code."""


class EngineError(Exception):
    """The engine cannot be started, or ended before it was ready. `code` is this process's exit code."""

    def __init__(self, message: str, code: int = 1) -> None:
        self.code = code or 1
        super().__init__(message)


class GangEnded(EngineError):
    """The gang has ended, so the engine was killed. An end that was asked for is no failure."""

    def __init__(self, order: Order) -> None:
        super().__init__(f"the gang ended: {order.reason}")
        self.code = 0 if order.planned else 1


@dataclass(frozen=True)
class Engine:
    """A running container's first process."""

    pid: int
    pidfd: int

    def send(self, number: signal.Signals) -> None:
        """Send a signal. It is no error if the process is gone."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, number)


@dataclass(frozen=True)
class Exit:
    """How a container ended, as far as dockerd knows."""

    code: int | None
    out_of_memory: bool = False
    limit: int = 0
    """The memory limit of the container in bytes; 0 if it has none."""

    def __str__(self) -> str:
        if self.code is None:
            return "exit code unknown: dockerd does not report it"
        if not self.out_of_memory:
            return f"exit code {self.code}"
        limit = f"the container's limit is {human(self.limit)}" if self.limit else "the container has no limit"
        return f"exit code {self.code}: killed by the kernel because memory ran out; {limit}"


def attach(docker: Docker, container: str, give_up_after: float = DOCKER_TIMEOUT) -> Engine:
    """Start a created container, and open its first process.

    The pid is read again after the process is open: in between, another process may have got the pid. Raises
    EngineError.
    """
    deadline = time.monotonic() + give_up_after
    while True:
        try:
            docker.start(container)
            state = _state(docker, container)
            pidfd = open_pidfd(state["Pid"]) if state.get("Pid") else None
            if pidfd is None:
                # The container ended before its pid could be opened. dockerd will soon have its exit code.
                ended = exit_of(docker, container)
                raise EngineError(f"the engine ended at once ({ended})", ended.code or 1)
            if _state(docker, container).get("Pid") == state["Pid"]:
                return Engine(state["Pid"], pidfd)
            os.close(pidfd)
        except DockerError as error:
            raise EngineError(f"Docker cannot start the container {container}: {error}") from error
        except DockerUnavailable as error:
            if time.monotonic() >= deadline:
                raise EngineError(f"{error} for {give_up_after:.0f} s: systemctl status docker") from error
        time.sleep(0.5)


def _inspected(docker: Docker, container: str) -> dict[str, Any]:
    found = docker.inspect(container)
    if found is None:
        raise DockerError(404, "it is gone: something else removed it")
    return found


def _state(docker: Docker, container: str) -> dict[str, Any]:
    state: dict[str, Any] = _inspected(docker, container)["State"]
    return state


def exit_of(docker: Docker, container: str, limit: float | None = None) -> Exit:
    """The exit of a container that has ended. Takes about `limit` seconds (EXIT_CODE_TIMEOUT) if dockerd does not
    report the exit."""
    limit = EXIT_CODE_TIMEOUT if limit is None else limit
    asker = Docker(docker.path, timeout=limit)
    deadline = time.monotonic() + limit
    while True:
        try:
            found = _inspected(asker, container)
            state = found["State"]
            if not state.get("Running"):
                memory = int((found.get("HostConfig") or {}).get("Memory") or 0)
                return Exit(int(state.get("ExitCode", 1)), bool(state.get("OOMKilled")), memory)
        except (DockerUnavailable, DockerError):
            pass
        if time.monotonic() >= deadline:
            return Exit(None)
        time.sleep(0.1)


class Supervisor:
    """Runs one release until it ends or a signal stops it. `run` returns the process's exit code.

    `is_idle` returns at a stop whether the instance is drained and has no requests. `on_ready` and `is_idle` must raise
    nothing: an exception would end an engine that serves. `gang`: the leader's side of a gang.
    """

    def __init__(
        self,
        release: Release,
        docker: Docker,
        notifier: Notifier,
        api_key: str = "",
        *,
        on_ready: Callable[[], None] = lambda: None,
        is_idle: Callable[[], bool] = lambda: False,
        proc: Path = listeners.PROC,
        gang: Alone | None = None,
    ) -> None:
        self.release = release
        self.docker = docker
        self.notifier = notifier
        self.target = probe.Target(
            release.address,
            release.port,
            release.served_names,
            api_key,
            release.adapter,
            task.of(release),
            tuple(release.lora),
        )
        self.stop = release.adapter.stop
        self.on_ready = on_ready
        self.is_idle = is_idle
        self.proc = proc
        self.gang = gang or Alone()
        self.name = f"{release.instance} ({release.model}, release {release.number})"
        self.warming = ""
        """The warm-up prompt that is under way; empty before and after."""
        self.warmed = ""
        """How long the warm-up took, in words; empty without one."""

    def say(self, message: str) -> None:
        """Print one line for the journal."""
        print(f"{self.name}: {message}", file=sys.stderr, flush=True)

    def run(self) -> int:
        """Start the engine, wait for it, serve, and drain it at a stop."""
        with Events() as events, self.gang.over(events):
            try:
                engine = self._start(events) if self.gang.gather() else None
                if engine is None or not self._await_ready(events, engine):
                    self.say("stopped before it was ready")
                    return 0
            except EngineError as error:
                self.gang.engine_ended(str(error))
                self.say(str(error))
                self.notifier.send(STATUS=str(error))
                return error.code
            return self._serve(events, engine)

    def _start(self, events: Events) -> Engine | None:
        """The started engine; None if a stop came first. Raises EngineError."""
        self._obey()
        self.began = time.monotonic()
        self._report("starting the container")
        job = Job(events, lambda: attach(self.docker, self.release.container))
        while not job.done and not self._unwanted(events):
            events.wait(STATUS_INTERVAL)
            self._report("waiting for dockerd to start the container")
        if not job.done:
            if events.stop:
                self.gang.stop()
            # The container may start at any moment. Wait briefly for dockerd;
            # the unit's ExecStopPost removes the container.
            deadline = time.monotonic() + 1
            while not job.done and time.monotonic() < deadline:
                events.wait(0.1)
            if not job.done:
                if not events.stop:
                    self._obey()
                return None
        engine = job.result()
        events.watch(engine.pidfd)
        return engine

    def _unwanted(self, events: Events) -> bool:
        """Whether the engine must not go on: the unit is being stopped, or the gang has ended."""
        return events.stop or self.gang.order().engine != RUN

    def _obey(self) -> None:
        """Raise GangEnded if the gang has ended."""
        order = self.gang.order()
        if order.engine != RUN:
            raise GangEnded(order)

    def _await_ready(self, events: Events, engine: Engine) -> bool:
        """Whether the engine became ready; False if a stop came first. Raises EngineError."""
        limit = self.release.start_timeout
        deadline = self.began + limit
        waiting_for = "the first probe"
        job: Job[probe.Verdict] | None = None
        next_probe = next_report = time.monotonic()
        while True:
            if self._unwanted(events):
                if events.stop:
                    self.gang.stop()
                self._kill(events, engine)
                if not events.stop:
                    self._obey()
                return False
            if events.died:
                self.gang.engine_ended("before it was ready")
                ended = exit_of(self.docker, self.release.container)
                after = time.monotonic() - self.began
                what = f"the engine ended before it was ready, after {after:.0f} s ({self._meaning(ended)})"
                raise EngineError(f"{what}; last probe: {waiting_for}", ended.code or 1)
            if job is not None and job.done:
                verdict = job.result()
                if verdict.ready:
                    return True
                if verdict.final:
                    self._kill(events, engine)
                    raise EngineError(f"killed, because a further probe would fail as well: {verdict.message}")
                if verdict.message != waiting_for:
                    self.say(verdict.message)
                    next_report = time.monotonic()
                waiting_for, job, next_probe = verdict.message, None, time.monotonic() + PROBE_INTERVAL
            now = time.monotonic()
            if now >= deadline:
                self._kill(events, engine)
                raise EngineError(f"not ready after {limit} s (vllm_start_timeout): killed; last probe: {waiting_for}")
            if job is None and now >= next_probe:
                job = Job(events, lambda: self._probe(engine))
            if now >= next_report:
                self._report(self.warming or waiting_for)
                next_report = now + STATUS_INTERVAL
            times = [deadline, next_report] + ([next_probe] if job is None else [])
            events.wait(min(times) - now)

    def _probe(self, engine: Engine) -> probe.Verdict:
        """Probe the engine; once it answers, send the warm-up prompts. Runs in a thread."""
        verdict = probe.check(self.target, engine.pid, self.proc)
        prompts = self.release.warm_up
        if not verdict.ready or not prompts:
            return verdict

        def progress(what: str) -> None:
            self.warming = what

        verdict, seconds = warm_up.run(self.target, prompts, progress)
        self.warming = ""
        if verdict.ready:
            self.warmed = f", {verdict.message} in {seconds:.1f} s"
        return verdict

    def _report(self, what: str) -> None:
        """Report to systemd what the engine waits for, and extend the start timeout."""
        spent = time.monotonic() - self.began
        status = f"loading {self.release.model}: {what} ({spent:.0f} of {self.release.start_timeout} s)"
        self.notifier.send(STATUS=status, EXTEND_TIMEOUT_USEC=EXTENSION * 1_000_000)

    def _serve(self, events: Events, engine: Engine) -> int:
        took = time.monotonic() - self.began
        self.say(f"ready after {took:.0f} s: answered {self.target.request.noun} on {self.target}{self.warmed}")
        self.on_ready()
        self.gang.engine_ready()
        self.notifier.send(READY=1, STATUS=f"serving {self.release.model} on {self.target}{self.warmed}")
        since = time.monotonic()
        while not events.died and not self._unwanted(events):
            events.wait(self.gang.poll)
        if events.died:
            self.gang.engine_ended("by itself")
            ended = exit_of(self.docker, self.release.container)
            served = time.monotonic() - since
            message = f"the engine ended by itself after serving for {served:.0f} s ({self._meaning(ended)})"
            self.say(message)
            self.notifier.send(STATUS=message)
            return 1 if ended.code is None else ended.code
        began = time.monotonic()
        if events.stop:
            self.gang.stop()
        elif self.gang.order().engine == DRAIN:
            self.say(f"{self.gang.order().reason}: drains the gang")
            self.gang.empty(self.release.drain_timeout)
        return self._drain(events, engine, time.monotonic() - began)

    def _meaning(self, ended: Exit) -> str:
        """How the engine ended. Some exit codes of an engine do not mean what they seem to mean."""
        known = "" if ended.code is None else self.release.adapter.exits.get(ended.code, "")
        return f"{ended}: {known}" if known else str(ended)

    def _drain(self, events: Events, engine: Engine, spent: float) -> int:
        """Send SIGTERM, so that the engine finishes its requests. Send SIGKILL if it hangs, or has no requests, or if
        its gang has ended. `spent`: seconds that requests have already had. Returns the process's exit code.
        """
        limit = max(0.0, self.release.drain_timeout + self.stop.kill_grace - spent)
        idle = self._idle(events)
        what = "it is drained and has no requests" if idle else f"requests in flight may take up to {limit:.0f} s"
        if self.gang.order().engine != KILL:
            self.notifier.send(STOPPING=1, STATUS=f"draining: {what}")
            self.say(f"stopping; {what}")
            engine.send(signal.SIGTERM)
        deadline = time.monotonic() + limit
        pause = self.stop.idle_grace if idle else self.gang.poll or limit
        while not events.died and self.gang.order().engine != KILL and (left := deadline - time.monotonic()) > 0:
            events.wait(min(left, pause), signals=False)
            # The engine counts a request only after it has begun to work on it, and a drain only asks gateways to stay
            # away: while a client is connected, an engine that reports no request is not killed.
            if idle and not listeners.connections(self.release.port, self.proc):
                break
        else:
            if not events.died and self.gang.order().engine != KILL:
                self.say(f"still there {limit:.0f} s after SIGTERM: killed")
        order = self.gang.order()
        if not events.died:
            self._kill(events, engine)
        if order.engine == KILL:
            self.say(f"killed, since the gang ended: {order.reason}")
            self.notifier.send(STATUS=f"the gang ended: {order.reason}")
            return 0 if order.planned else 1
        if events.died:
            self.say("stopped")
        return 0

    def _idle(self, events: Events) -> bool:
        """Whether the engine is drained and has no requests. False if it does not report in time."""
        asked = Job(events, self.is_idle)
        deadline = time.monotonic() + IDLE_TIMEOUT
        while not asked.done and not events.died and time.monotonic() < deadline:
            if self.gang.order().engine == KILL:
                return False
            events.wait(deadline - time.monotonic())
        return asked.done and asked.result()

    def _kill(self, events: Events, engine: Engine) -> None:
        """Send SIGKILL to the first process, which ends all processes of the container's PID namespace."""
        engine.send(signal.SIGKILL)
        deadline = time.monotonic() + KILL_TIMEOUT
        while not events.died and time.monotonic() < deadline:
            events.wait(deadline - time.monotonic(), signals=False)
        if events.died:
            self.gang.engine_ended("killed")
        else:
            self.say(f"pid {engine.pid} survives SIGKILL: it hangs in the kernel, see dmesg")
