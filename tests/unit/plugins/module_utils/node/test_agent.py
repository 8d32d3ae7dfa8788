# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent with several engines: verdicts, answers to gateways, files, journal, and its reaction to faults."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, journal
from ansible_collections.baremetal.inference.plugins.module_utils.core.docker_api import Docker
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.core.systemd import Notifier
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import health, observation
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import (
    drains,
    gateway_answers,
    probe_state,
    releases,
    swaps,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.probe_state import ProbeState
from ansible_collections.baremetal.inference.plugins.module_utils.node import agent, agent_check
from ansible_collections.baremetal.inference.plugins.module_utils.node.agent import Agent
from ansible_collections.baremetal.inference.plugins.module_utils.node.prober import Prober

from ..conftest import stage
from ..http_engine import Engine
from .gang.world import gang
from .test_prober import Unit

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
WHOLE = ProbeState("main", "hung", "2026-05-01T11:00:00Z", "2026-05-01T11:59:50Z", None, "no token", "first")


class Entries(journal.Journal):
    """A journal that keeps its entries."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[tuple[str, dict[str, Any]]] = []

    def say(self, message: str, priority: int = journal.INFO, **fields: str | int | None) -> None:
        self.messages.append((message, {"priority": priority, **fields}))

    @property
    def text(self) -> str:
        return "\n".join(message for message, _fields in self.messages)


class Messages(Notifier):
    """A notifier that keeps its messages to systemd."""

    def __init__(self) -> None:
        super().__init__({})
        self.sent: list[dict[str, str | int]] = []

    def send(self, **variables: str | int) -> None:
        self.sent.append(variables)

    def has(self, name: str) -> bool:
        return any(name in variables for variables in self.sent)


class Bench:
    """A node with engines, and an agent that watches them."""

    def __init__(self, root: Path, port: int) -> None:
        self.paths = Paths(root)
        self.paths.textfiles.mkdir(parents=True)
        self.port = port
        self.unit = Unit()
        self.entries, self.systemd = Entries(), Messages()
        self.now = NOW
        self.engines: dict[str, Engine] = {}
        self.broken: set[str] = set()
        self.stuck: set[str] = set()

    def add(self, name: str) -> Engine:
        engine = self.engines[name] = Engine(name)
        stage(self.paths, name, engine.port)
        releases.activate(self.paths, name, 1)
        return engine

    def make_prober(self, name: str, state: ProbeState | None) -> Prober:
        known = (state.invocation, state.verdict) if state else ("", health.UNKNOWN)
        docker = Docker(self.paths.root / "no.sock", timeout=0.1)
        one = Prober(self.paths, name, docker, limit=0.5, show=self.unit.show, known=known)
        if name in self.broken:
            one.round = None  # type: ignore[assignment, method-assign]
        if name in self.stuck:
            one.round = lambda: asyncio.sleep(60)  # type: ignore[assignment, method-assign, return-value]
        return one

    def run(self, story: Callable[[Bench], Awaitable[None]]) -> None:
        """Run the agent while the story goes on; then SIGTERM ends the agent."""

        async def both() -> None:
            made = Agent(self.paths, self.make_prober, self.systemd, self.entries, interval=0.1, now=lambda: self.now)
            running = asyncio.create_task(made.run("127.0.0.1", self.port))
            try:
                await story(self)
            finally:
                os.kill(os.getpid(), signal.SIGTERM)
                await running

        asyncio.run(both())

    async def ask(self, name: str) -> str:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return ""
        writer.write(f"{name}\n".encode())
        answer = await reader.read()
        writer.close()
        return answer.decode().strip()

    async def until(self, condition: Callable[[], Any]) -> None:
        async with asyncio.timeout(30):
            while not condition():
                await asyncio.sleep(0.02)

    async def until_answer(self, name: str, begin: str) -> None:
        async with asyncio.timeout(30):
            while not (await self.ask(name)).startswith(begin):
                await asyncio.sleep(0.02)

    def metrics(self) -> str:
        """What was written for node_exporter; nothing until the agent's first round has ended."""
        return self.paths.probe_metrics.read_text() if self.paths.probe_metrics.exists() else ""

    def state(self, name: str) -> dict[str, Any]:
        return dict(files.read_json(self.paths.probe(name)) or {})


@pytest.fixture
def bench(tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(observation, "SCRAPE_AFTER", 0.05)
    monkeypatch.setattr(observation, "SCRAPE_LIMIT", 1.0)
    monkeypatch.setattr(agent, "TICK", 0.05)
    monkeypatch.setattr(agent, "LISTEN_INTERVAL", 0.05)
    bench = Bench(tmp_path, port)
    yield bench
    for engine in bench.engines.values():
        engine.close()


def test_a_hung_engine_is_down_until_it_answers_and_delays_no_other_engine(bench: Bench) -> None:
    engine, other = bench.add("main"), bench.add("side")

    async def story(bench: Bench) -> None:
        await bench.until_answer("main", "up ready")
        engine.delay = 60
        await bench.until_answer("main", "down #hung: no token within 0.5 s, 2 times in a row")
        count = len(other.completions)
        await bench.until(lambda: len(other.completions) > count + 3)
        assert await bench.ask("side") == "up ready"
        engine.delay = 0
        await bench.until_answer("main", "up ready")

    bench.run(story)
    changes = [fields for _message, fields in bench.entries.messages if fields.get("instance") == "main"]
    steps = [(fields["was"], fields["verdict"]) for fields in changes]
    # On a busy machine, other probes may have been late, so further verdicts may be in the list.
    assert ("unknown", "hung") in steps and steps[-1] == ("hung", "healthy")
    assert "main: hung, was unknown since 2026-05-01T12:00:00Z: no token" in bench.entries.text


def test_the_agent_records_its_answers_to_each_gateway(bench: Bench) -> None:
    """A question without a gateway's name is not recorded."""
    bench.add("main")

    async def story(bench: Bench) -> None:
        await bench.until_answer("main", "up ready")
        await bench.ask("main\ngw1")
        drains.drain(bench.paths, ["main"], drains.Drain("alice", "new disk", "2026-05-01T12:00:00Z"))
        for question in ("main\ngw1", "main", "main\ngw2"):
            assert await bench.ask(question) == "drain"
        # Within the interval, only a changed answer is written at once.
        await asyncio.sleep(agent.ANSWERS_INTERVAL)
        assert await bench.ask("main\ngw1") == "drain"
        await bench.until(lambda: len(gateway_answers.read(bench.paths, "main")) == 2)
        await bench.until(lambda: gateway_answers.read(bench.paths, "main")[0].times == 2)
        assert await bench.ask("other\ngw1") == "down #stopped: no instance of this name on this node"

    bench.run(story)
    found = gateway_answers.read(bench.paths, "main")
    assert [(each.gateway, each.word, each.times) for each in found] == [("gw1", "drain", 2), ("gw2", "drain", 1)]
    assert all(0 <= time.monotonic() - each.asked < 60 for each in found)
    assert gateway_answers.read(bench.paths, "other") == []


def test_the_agent_requests_recovery_of_a_hung_engine_and_not_of_healthy_ones(bench: Bench) -> None:
    """Recovery is installed. A request is a file for which a path unit of systemd waits."""
    engine = bench.add("main")
    bench.add("side")
    files.write_json(bench.paths.recovery_settings, {"schema": 1})

    def asked() -> list[str]:
        there = bench.paths.recovery_requests
        return sorted(path.name for path in there.iterdir()) if there.is_dir() else []

    async def story(bench: Bench) -> None:
        await bench.until_answer("main", "up ready")
        await bench.until_answer("side", "up ready")
        assert asked() == []
        engine.delay = 60
        await bench.until_answer("main", "down #hung")
        await bench.until(asked)

    bench.run(story)
    assert asked() == ["main"]


def test_a_verdict_reaches_state_file_metrics_and_systemd(bench: Bench) -> None:
    bench.add("main")

    async def story(bench: Bench) -> None:
        await bench.until(lambda: bench.state("main").get("verdict") == "healthy")
        bench.now = NOW + timedelta(seconds=30)
        await bench.until(lambda: bench.state("main")["checked"] == "2026-05-01T12:00:30Z")
        await bench.until(lambda: f"_timestamp_seconds {bench.now.timestamp():.0f}" in bench.metrics())

    bench.run(story)
    state = bench.state("main")
    assert isinstance(state.pop("latency_ms"), int)
    assert state == {
        "schema": 1,
        "instance": "main",
        "verdict": "healthy",
        "since": "2026-05-01T12:00:00Z",
        "checked": "2026-05-01T12:00:30Z",
        "detail": "answered a completion",
        "invocation": "first",
    }
    assert 'inference_probe_verdict{name="main",verdict="healthy"} 1\n' in bench.metrics()
    assert 'inference_probe_verdict{name="main",verdict="hung"} 0\n' in bench.metrics()
    assert bench.systemd.has("READY") and bench.systemd.has("WATCHDOG") and bench.systemd.has("STOPPING")
    assert {"WATCHDOG": 1, "STATUS": "1 healthy"} in bench.systemd.sent


def test_the_answer_is_drain_until_the_drain_ends(bench: Bench) -> None:
    engine = bench.add("main")

    async def story(bench: Bench) -> None:
        await bench.until_answer("main", "up ready")
        until = drains.format_time(NOW + timedelta(minutes=30))
        drains.drain(bench.paths, ["main"], drains.Drain("alice", "disk", drains.format_time(NOW), until))
        assert await bench.ask("main") == "drain"
        # A drained engine is probed, too.
        engine.delay = 60
        await bench.until(lambda: bench.state("main").get("verdict") == "hung")
        assert await bench.ask("main") == "drain"
        bench.now += timedelta(minutes=30)
        assert (await bench.ask("main")).startswith("down #hung")

    bench.run(story)


def test_the_answer_is_drain_while_the_gate_is_closed_even_without_a_drain(bench: Bench) -> None:
    """The gate would refuse requests. The metrics show the swap until its end."""
    bench.add("main")
    swap = swaps.Swap(1, 2, "run", "2026-05-01T11:00:00Z", step=swaps.GATE, closed_port=5005)

    async def story(bench: Bench) -> None:
        await bench.until_answer("main", "up ready")
        swaps.write(bench.paths, "main", swap)
        assert await bench.ask("main") == "drain"
        await bench.until(lambda: 'inference_swap{name="main",step="gate"} 1' in bench.metrics())
        text = bench.metrics()
        assert f'inference_swap_since_timestamp_seconds{{name="main"}} {NOW.timestamp() - 3600:.0f}' in text
        assert 'inference_drained{name="main"} 0' in text
        swaps.write(bench.paths, "main", replace(swap, step=swaps.WATCH))
        assert await bench.ask("main") == "up ready"
        # A damaged record needs an operator: the alert SwapStuck.
        files.write(bench.paths.swap("main"), "{")
        await bench.until(lambda: 'inference_swap{name="main",step="stuck"} 1' in bench.metrics())
        swaps.end(bench.paths, "main")
        await bench.until(lambda: "inference_swap{" not in bench.metrics())

    bench.run(story)


def test_the_answer_stays_up_if_the_release_of_a_serving_engine_is_damaged(bench: Bench) -> None:
    runs = f"127.0.0.1/{bench.add('main').port}"

    async def story(bench: Bench) -> None:
        await bench.until_answer(f"main\ngw1\n{runs}", "up ready")
        files.write(bench.paths.release("main", 1) / releases.RELEASE_FILE, "{")
        assert await bench.ask(f"main\ngw1\n{runs}") == "up ready"

    bench.run(story)


def test_of_two_servers_only_the_server_of_the_running_release_is_up(bench: Bench) -> None:
    """Only answers about this server are recorded, since swaps wait until gateways have the recorded answers."""
    runs = f"127.0.0.1/{bench.add('main').port}"

    async def story(bench: Bench) -> None:
        await bench.until_answer(f"main\ngw1\n{runs}", "up ready")
        assert await bench.ask(f"main\n\n0.0.0.0/1 {runs}") == "up ready"
        assert await bench.ask("main\ngw1\n127.0.0.1/1") == agent_check.ELSEWHERE
        drains.drain(bench.paths, ["main"], drains.Drain("alice", "disk", drains.format_time(NOW)))
        assert await bench.ask(f"main\ngw1\n{runs}") == "drain"
        assert await bench.ask("main\ngw1\n127.0.0.1/1") == agent_check.ELSEWHERE
        await bench.until(lambda: [each.word for each in gateway_answers.read(bench.paths, "main")] == ["drain"])

    bench.run(story)


def test_a_new_instance_is_probed_and_a_removed_instance_is_forgotten(bench: Bench) -> None:
    async def story(bench: Bench) -> None:
        await bench.until_answer("main", "down #stopped: no instance of this name")
        bench.add("main")
        await bench.until_answer("main", "up ready")
        await bench.until(bench.paths.probe("main").exists)
        for path in (bench.paths.releases("main"), bench.paths.instance("main")):
            if path.exists():
                path.rename(bench.paths.root / "gone")
        await bench.until_answer("main", "down #stopped: no instance of this name")
        await bench.until(lambda: not bench.paths.probe("main").exists())

    bench.run(story)
    assert "main: is not on this node any more" in bench.entries.text


def test_a_follower_of_a_gang_is_not_probed(bench: Bench) -> None:
    async def story(bench: Bench) -> None:
        await bench.until_answer("main", "up ready")
        assert await bench.ask("big") == "down #stopped: no instance of this name on this node"
        assert probe_state.read(bench.paths, "big") is None

    bench.add("main")
    bench.add("big")
    path = bench.paths.release("big", 1) / releases.RELEASE_FILE
    files.write(path, replace(releases.load(bench.paths, "big", 1), gang=gang(1)).to_json())
    bench.run(story)


def test_a_probe_that_raises_gives_unknown_and_affects_no_other_instance(bench: Bench) -> None:
    """A mistake in the collection's own code may be the reason."""
    bench.add("main"), bench.add("side")
    bench.broken.add("main")

    async def story(bench: Bench) -> None:
        await bench.until(lambda: "the probe itself failed" in bench.state("main").get("detail", ""))
        await bench.until_answer("side", "up ready")
        assert await bench.ask("main") == "up ready"
        assert bench.state("main")["verdict"] == "unknown"

    bench.run(story)


def test_a_new_agent_keeps_a_recent_verdict(bench: Bench) -> None:
    """Before its first probe, a new agent must not let gateways send requests to a hung engine. An old verdict does not
    count."""
    engine = bench.add("main")
    engine.delay, engine.metrics = 60, ""
    files.write_json(bench.paths.probe("main"), WHOLE.to_json())

    async def story(bench: Bench) -> None:
        await bench.until_answer("main", "down #hung")
        await bench.until(lambda: bench.state("main")["checked"] == "2026-05-01T12:00:00Z")
        assert (await bench.ask("main")).startswith("down #hung")
        assert bench.state("main")["since"] == "2026-05-01T11:00:00Z"

    bench.run(story)
    files.write_json(bench.paths.probe("main"), {**WHOLE.to_json(), "checked": "2026-05-01T11:50:00Z"})

    async def later(bench: Bench) -> None:
        await bench.until_answer("main", "up ready")

    bench.run(later)


def test_a_stale_verdict_does_not_stop_requests(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = bench.add("main")
    engine.close()

    async def story(bench: Bench) -> None:
        await bench.until_answer("main", "down #dead")
        monkeypatch.setattr(agent, "STALE", -1.0)
        assert await bench.ask("main") == "up ready"
        await bench.until(lambda: 'inference_probe_stale{name="main"} 1' in bench.metrics())

    bench.run(story)


def test_a_clock_that_jumps_disturbs_no_probe(bench: Bench) -> None:
    engine = bench.add("main")

    async def story(bench: Bench) -> None:
        for jump in (timedelta(hours=-1), timedelta(hours=2)):
            bench.now += jump
            count = len(engine.completions)
            await bench.until(lambda count=count: len(engine.completions) > count + 2)  # type: ignore[misc]
            assert await bench.ask("main") == "up ready"

    bench.run(story)


def test_an_agent_that_is_stuck_sends_no_watchdog_message(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe that takes longer than LONGEST_ROUND is a fault of the agent."""
    bench.add("main")
    bench.stuck.add("main")
    monkeypatch.setattr(agent, "LONGEST_ROUND", 0.5)

    async def story(bench: Bench) -> None:
        await bench.until(lambda: bench.systemd.has("WATCHDOG"))
        await asyncio.sleep(1)
        count = len(bench.systemd.sent)
        await asyncio.sleep(0.5)
        assert not any("WATCHDOG" in variables for variables in bench.systemd.sent[count:])

    bench.run(story)


def test_a_taken_port_is_logged_once_and_tried_again(bench: Bench) -> None:
    bench.add("main")

    async def story(bench: Bench) -> None:
        with socket.create_server(("127.0.0.1", bench.port)):
            await bench.until(lambda: "cannot listen on 127.0.0.1 port" in bench.entries.text)
            # The agent probes meanwhile, but is not ready.
            await bench.until(lambda: bench.state("main").get("verdict") == "healthy")
            assert not bench.systemd.has("READY")
        await bench.until_answer("main", "up ready")
        assert bench.systemd.has("READY")

    bench.run(story)
    assert bench.entries.text.count("cannot listen") == 1


def test_the_agent_logs_a_missing_metrics_directory_once_and_ends_when_the_directory_appears(bench: Bench) -> None:
    """systemd then restarts the agent, with a sandbox that includes the directory."""
    bench.paths.textfiles.rmdir()
    bench.add("main")

    async def story(bench: Bench) -> None:
        await bench.until_answer("main", "up ready")
        await asyncio.sleep(0.2)
        assert bench.entries.text.count("no metrics") == 1
        bench.paths.textfiles.mkdir()
        await bench.until(lambda: bench.systemd.has("STOPPING"))

    bench.run(story)
    assert "has appeared" in bench.entries.text


def test_the_agent_answers_although_its_probe_state_cannot_be_written(bench: Bench) -> None:
    bench.add("main")
    bench.paths.state.mkdir(parents=True, exist_ok=True)
    bench.paths.probes.write_text("in the way")

    async def story(bench: Bench) -> None:
        await bench.until_answer("main", "up ready")
        await bench.until(lambda: "cannot be written" in bench.entries.text)
        await asyncio.sleep(0.3)

    bench.run(story)
    assert bench.entries.text.count("cannot be written") == 1


def test_a_verdict_is_stale_more_than_60_s_after_or_before_its_time() -> None:
    """A clock that was set back makes the verdict's time a future one."""
    assert not probe_state.stale(WHOLE, NOW)
    assert not probe_state.stale(WHOLE, NOW + timedelta(seconds=50))
    assert probe_state.stale(WHOLE, NOW + timedelta(seconds=51))
    assert probe_state.stale(WHOLE, NOW - timedelta(seconds=71))


DAMAGES = ({"verdict": "fine"}, {"since": "yesterday"}, {"checked": None}, {"latency_ms": "5"}, {"schema": 2})
DAMAGED = [json.dumps({**WHOLE.to_json(), **damage}) for damage in DAMAGES]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 1, "verdict": "hung"}', *DAMAGED])
def test_a_damaged_probe_state_counts_as_none(bench: Bench, text: str) -> None:
    bench.paths.probes.mkdir(parents=True)
    bench.paths.probe("main").write_text(text)
    assert probe_state.read(bench.paths, "main") is None
    bench.add("main")

    async def story(bench: Bench) -> None:
        await bench.until(lambda: "healthy" in bench.paths.probe("main").read_text())

    bench.run(story)
    assert json.loads(bench.paths.probe("main").read_text())["verdict"] == "healthy"
