# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node's agent: probes every instance, publishes the results, and answers gateways. Private to the collection.

One thread waits for all engines, so that an engine that hangs delays no other. Intervals use the monotonic clock; times
for people use the wall clock.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ..core import files, journal
from ..core.paths import Paths
from ..core.systemd import Notifier
from ..engine.instance_facts import Endpoint
from ..engine.probe import health
from ..engine.probe.health import Finding
from ..engine.state import drains, gangs, lock, probe_state, releases, swaps
from ..engine.state.drains import Drain, format_time, parse_time
from ..engine.state.gateway_answers import GatewayAnswers
from ..engine.state.probe_state import STALE, ProbeState
from . import agent_check, textfile
from .agent_check import Question
from .prober import Prober
from .recovery.requests import Requests
from .writer import Writer

INTERVAL = 10.0
"""Seconds from the start of a probe to the start of the next."""

STARTING_INTERVAL = 2.0
"""Seconds between two probes of an engine that loads, so that gateways soon learn that the engine serves."""

TICK = 5.0
"""Seconds between two rounds. A round finds new and removed instances, writes the metrics, and reports to systemd."""

LISTEN_INTERVAL = 2.0
"""Seconds between two attempts to listen, while the address is missing or the port is taken."""

LONGEST_ROUND = 60.0
"""Seconds that a probe takes at most, even if engine, systemd and Docker hang. A longer probe shows that the agent
or a disk hangs."""

ANSWERS_INTERVAL = 0.5
"""Least seconds between two writes of the last answers to gateways, unless an answer changes."""

FLUSH_TIMEOUT = 3.0
"""Seconds that the last writes may take when the agent stops."""


@dataclass
class _Watched:
    """An instance that the agent probes. Times use the monotonic clock."""

    prober: Prober
    state: ProbeState
    checked: float
    began: float
    task: asyncio.Task[None] | None = None
    answers: GatewayAnswers = field(default_factory=GatewayAnswers)
    answers_written: float = 0.0


class Agent:
    """Probes the instances and answers gateways."""

    def __init__(
        self,
        paths: Paths,
        make_prober: Callable[[str, ProbeState | None], Prober],
        notifier: Notifier,
        entries: journal.Journal,
        *,
        interval: float = INTERVAL,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._paths = paths
        self._make_prober = make_prober
        self._notifier = notifier
        self._entries = entries
        self._interval = interval
        self._now = now
        self._writer = Writer(lambda text: entries.say(text, journal.WARNING))
        self._requests = Requests(paths)
        self._watched: dict[str, _Watched] = {}
        self._stop = asyncio.Event()
        self._without_textfiles = False
        self._problem = ""

    async def run(self, address: str, port: int) -> None:
        """Probe, and answer gateways on this address and port, until SIGTERM or SIGINT, or until the
        directory of node_exporter appears."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        listener = asyncio.create_task(self._listen(address, port))
        try:
            while not self._stop.is_set():
                self._tick(alive=not listener.done())
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(TICK):
                        await self._stop.wait()
        finally:
            self._notifier.send(STOPPING=1)
            tasks = [listener, *(watched.task for watched in self._watched.values() if watched.task)]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.to_thread(self._writer.flush, FLUSH_TIMEOUT)

    def answer(self, question: Question) -> str:
        """The answer to a question about an instance."""
        name = question.instance
        watched = self._watched.get(name)
        if watched is None:
            return agent_check.reply(health.STOPPED, "no instance of this name on this node", None, stale=False)
        listens = self._listens(name) if question.endpoints else ""
        if listens and listens not in question.endpoints:
            # Not recorded: only the answers about the server of the running release count.
            return agent_check.ELSEWHERE
        drain = drains.read(self._paths, name, self._now()) or self._behind_gate(name)
        text = agent_check.reply(watched.state.verdict, watched.state.detail, drain, stale=_stale(watched))
        if question.gateway:
            self._remember(name, watched, question.gateway, text)
        return text

    def _listens(self, name: str) -> str:
        """Where the active release of an instance listens, in the form of questions; empty if unknown.

        If unknown, both servers of the engine get the same answer: a damaged release must not stop requests.
        """
        number = releases.active_number(self._paths, name)
        try:
            release = releases.load(self._paths, name, number) if number is not None else None
        except releases.ReleaseError:
            return ""
        return Endpoint(release.address, release.port).words if release else ""

    def _behind_gate(self, name: str) -> Drain | None:
        """A drain with the owner `update` if the gate is closed, else None. It counts even after an undrain, because
        the gate refuses connections."""
        swap = swaps.read(self._paths, name)
        return Drain(drains.UPDATE, f"the gate is closed ({swap.step})", swap.since) if swap and swap.gated else None

    def _remember(self, name: str, watched: _Watched, gateway: str, text: str) -> None:
        now = time.monotonic()
        if watched.answers.record(gateway, text, now) or now - watched.answers_written >= ANSWERS_INTERVAL:
            watched.answers_written = now
            self._writer.put(self._paths.gateway_answers(name), files.to_json(watched.answers.to_json()))

    async def _listen(self, address: str, port: int) -> None:
        reported = ""
        while True:
            try:
                server = await agent_check.serve(self.answer, address, port)
                break
            except OSError as error:
                problem = f"cannot listen on {address} port {port}: {error.strerror or error}"
                self._notifier.send(STATUS=problem)
                if problem != reported:
                    self._entries.say(problem, journal.WARNING)
                reported = problem
                await asyncio.sleep(LISTEN_INTERVAL)
        async with server:
            self._entries.say(f"answers gateways on {address} port {port}")
            self._notifier.send(READY=1)
            await server.serve_forever()

    def _tick(self, *, alive: bool) -> None:
        """One round. A failure does not stop the agent, and is logged once."""
        try:
            self._follow()
            self._publish()
            problem = ""
        except Exception as error:
            problem = f"the agent's own round failed: {error!r}"
        if problem and problem != self._problem:
            self._entries.say(problem, journal.WARNING)
        self._problem = problem
        # If a probe never ends, or the agent no longer listens, no WATCHDOG is sent: systemd then restarts the agent.
        longest = LONGEST_ROUND + self._interval
        if alive and all(time.monotonic() - watched.began < longest for watched in self._watched.values()):
            count = Counter(watched.state.verdict for watched in self._watched.values())
            summary = ", ".join(f"{number} {verdict}" for verdict, number in sorted(count.items()))
            self._notifier.send(WATCHDOG=1, STATUS=problem or summary or "no instance")

    def _follow(self) -> None:
        """Start to watch new instances, and stop to watch removed ones. Raises OSError."""
        # A follower of a gang has no API. The leader's agent probes the gang.
        names = {name for name in releases.names(self._paths) if not gangs.follows(self._paths, name)}
        for name in self._watched.keys() - names:
            watched = self._watched.pop(name)
            if watched.task:
                watched.task.cancel()
            self._writer.put(self._paths.probe(name), None)
            self._writer.put(self._paths.gateway_answers(name), None)
            self._entries.say(f"{name}: is not on this node any more", journal.NOTICE, instance=name)
        for name in sorted(names - self._watched.keys()):
            watched = self._begin(name)
            self._watched[name] = watched
            watched.task = asyncio.create_task(self._watch(name, watched))

    def _begin(self, name: str) -> _Watched:
        """A new instance to watch. A recent verdict of an earlier agent still counts: a restart of the agent must send
        no requests to an engine that hangs."""
        now = self._now()
        known = probe_state.read(self._paths, name)
        if known is not None and probe_state.stale(known, now):
            known = None
        time_now = format_time(now)
        state = known or ProbeState(name, health.UNKNOWN, time_now, time_now, None, "has not been probed yet")
        return _Watched(self._make_prober(name, known), state, checked=time.monotonic(), began=time.monotonic())

    async def _watch(self, name: str, watched: _Watched) -> None:
        while True:
            watched.began = time.monotonic()
            try:
                finding = await watched.prober.round()
            except Exception as error:
                # A mistake in our code condemns no engine, and a failure of one instance affects no other.
                finding = Finding(health.UNKNOWN, f"the probe itself failed: {error!r}")
            self._record(name, watched, finding)
            pause = STARTING_INTERVAL if finding.verdict == health.STARTING else self._interval
            await asyncio.sleep(max(0.1, watched.began + pause - time.monotonic()))

    def _record(self, name: str, watched: _Watched, finding: Finding) -> None:
        before, now = watched.state, format_time(self._now())
        changed = finding.verdict != before.verdict
        watched.checked = time.monotonic()
        watched.state = ProbeState(
            instance=name,
            verdict=finding.verdict,
            since=now if changed else before.since,
            checked=now,
            latency_ms=finding.latency_ms,
            detail=finding.detail,
            invocation=watched.prober.invocation,
        )
        self._writer.put(self._paths.probe(name), files.to_json(watched.state.to_json()))
        self._ask_for_recovery(name, finding.verdict)
        if changed:
            self._entries.say(
                f"{name}: {finding.verdict}, was {before.verdict} since {before.since}: {finding.detail}",
                journal.WARNING if finding.verdict in health.CONDEMNED else journal.NOTICE,
                event="verdict",
                instance=name,
                verdict=finding.verdict,
                was=before.verdict,
                latency_ms=finding.latency_ms,
            )

    def _ask_for_recovery(self, name: str, verdict: str) -> None:
        """Request recovery if the verdict needs it. An engine that loads counts, because it may wait for Docker."""
        if verdict in health.CONDEMNED or verdict == health.STARTING:
            self._requests.ask(name)
        elif verdict in health.SERVING:
            self._requests.forget(name)

    def _publish(self) -> None:
        """Write the metrics, if the directory of node_exporter exists."""
        if not self._paths.textfiles.is_dir():
            if not self._without_textfiles:
                self._entries.say(f"no metrics: there is no {self._paths.textfiles}, which node_exporter brings")
            self._without_textfiles = True
            return
        if self._without_textfiles:
            self._entries.say(f"restarts: {self._paths.textfiles} has appeared, and the sandbox must include it")
            self._stop.set()
            return
        now = self._now()
        instances = [self._metrics(name, now) for name in sorted(self._watched)]
        text = textfile.render(instances, now.timestamp(), _lock(self._paths, now))
        self._writer.put(self._paths.probe_metrics, text)

    def _metrics(self, name: str, now: datetime) -> textfile.InstanceMetrics:
        watched = self._watched[name]
        state = watched.state
        drain, swap = drains.read(self._paths, name, now), swaps.read(self._paths, name)
        return textfile.InstanceMetrics(
            name=name,
            verdict=state.verdict,
            stale=_stale(watched),
            drained=drain is not None,
            drained_since=_seconds(drain.since) if drain else None,
            since=parse_time(state.since).timestamp(),
            checked=parse_time(state.checked).timestamp(),
            latency=None if state.latency_ms is None else state.latency_ms / 1000,
            # A record that is damaged needs an operator as well.
            swap="" if swap is None else swaps.STUCK if swap.step == swaps.DAMAGED else swap.step,
            swap_since=_seconds(swap.since) if swap else None,
        )


def _lock(paths: Paths, now: datetime) -> textfile.LockMetrics:
    """The holder of the node's lock. A damaged lock counts as no lock."""
    try:
        found = lock.read(paths)
    except (OSError, ValueError):
        found = None
    return textfile.UNLOCKED if found is None else textfile.LockMetrics(found.playbook, found.stale(now))


def _seconds(time: str) -> float | None:
    """A time of a state file, in seconds since 1970; None if it is no time, as in a damaged drain."""
    try:
        return parse_time(time).timestamp()
    except ValueError:
        return None


def _stale(watched: _Watched) -> bool:
    return time.monotonic() - watched.checked > STALE
