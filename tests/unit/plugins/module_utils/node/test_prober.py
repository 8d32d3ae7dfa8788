# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The prober of one instance: its finding by the release, the unit and the answers of the engine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.docker_api import Docker
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import health, observation
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases
from ansible_collections.baremetal.inference.plugins.module_utils.node import prober
from ansible_collections.baremetal.inference.plugins.module_utils.node.prober import Prober

from ..conftest import FakeDocker, FakeProc, stage
from ..http_engine import Engine
from .gang.world import gang

ACTIVE = {"LoadState": "loaded", "ActiveState": "active", "SubState": "running", "NRestarts": "0", "Job": ""}
LIMIT = 2.0
"""Seconds until a probe gives up: an engine that answers must make it on a machine whose cores are all busy."""

HANG = 0.5
"""Seconds until a probe of an engine that hangs gives up. A test waits for this whole limit."""


class Unit:
    """A fake systemd with one unit."""

    def __init__(self) -> None:
        self.properties = {**ACTIVE, "InvocationID": "first", "StatusText": "", "Result": "success"}
        self.asked = 0

    def show(self, units: list[str], properties: tuple[str, ...]) -> Mapping[str, dict[str, str]]:
        assert set(self.properties) == set(properties)
        self.asked += 1
        return {name: dict(self.properties) for name in units}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observation, "SCRAPE_AFTER", 0.05)
    monkeypatch.setattr(observation, "SCRAPE_LIMIT", 1.0)


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine()
    yield engine
    engine.close()


@pytest.fixture
def paths(tmp_path: Path, engine: Engine) -> Paths:
    paths = Paths(tmp_path)
    stage(paths, "main", engine.port)
    releases.activate(paths, "main", 1)
    return paths


@pytest.fixture
def unit() -> Unit:
    return Unit()


@pytest.fixture
def one(paths: Paths, unit: Unit, docker: FakeDocker, proc: FakeProc) -> Prober:
    return Prober(paths, "main", Docker(docker.path), limit=LIMIT, show=unit.show, proc=proc.root)


def verdicts(one: Prober, rounds: int = 1, limit: float = LIMIT) -> list[str]:
    one._limit = limit

    async def run() -> list[str]:
        return [(await one.round()).verdict for _turn in range(rounds)]

    return asyncio.run(run())


def test_systemd_is_not_read_for_each_probe_of_a_healthy_engine(one: Prober, unit: Unit) -> None:
    assert verdicts(one, 5) == ["healthy"] * 5
    assert unit.asked == 1


def test_the_second_late_probe_makes_an_engine_hung_until_it_answers(one: Prober, engine: Engine) -> None:
    assert verdicts(one) == ["healthy"]
    engine.delay = 60
    assert verdicts(one, 3, HANG) == ["unknown", "hung", "hung"]
    engine.delay = 0
    assert verdicts(one) == ["healthy"]


def test_a_new_start_resets_the_history_of_a_hang(one: Prober, engine: Engine, unit: Unit) -> None:
    engine.delay = 60
    assert verdicts(one, 2, HANG) == ["unknown", "hung"]
    unit.properties.update(ActiveState="activating", SubState="start", InvocationID="second")
    assert verdicts(one) == ["starting"]
    unit.properties.update(ActiveState="active", SubState="running")
    assert verdicts(one, limit=HANG) == ["unknown"]
    assert one.invocation == "second"


def test_the_verdict_of_an_earlier_agent_counts_for_the_same_start(
    paths: Paths, unit: Unit, engine: Engine, docker: FakeDocker
) -> None:
    engine.delay, engine.metrics = 60, ""
    for invocation, verdict in (("first", "hung"), ("earlier", "unknown")):
        known = (invocation, health.HUNG)
        one = Prober(paths, "main", Docker(docker.path), show=unit.show, known=known)
        assert verdicts(one, limit=HANG) == [verdict]


def test_an_engine_that_is_stopped_while_it_is_probed_is_not_dead(one: Prober, engine: Engine, unit: Unit) -> None:
    assert verdicts(one) == ["healthy"]
    engine.close()
    unit.properties.update(ActiveState="inactive", SubState="dead")
    assert verdicts(one) == ["stopped"]
    unit.properties.update(ActiveState="active", SubState="running")
    assert verdicts(one) == ["dead"]


def test_a_stopped_engine_is_not_probed(one: Prober, engine: Engine, unit: Unit) -> None:
    unit.properties.update(ActiveState="inactive", SubState="dead")
    assert verdicts(one) == ["stopped"]
    assert engine.completions == []


def test_a_deleted_unit_of_a_declared_instance_is_dead(one: Prober, unit: Unit, paths: Paths) -> None:
    """After the deletion, the engine ended with exit status 0, which systemd shows like a stop."""
    unit.properties.update(LoadState="not-found", ActiveState="inactive", SubState="dead")
    assert verdicts(one) == ["stopped"]
    paths.instance("main").parent.mkdir(parents=True)
    paths.instance("main").write_text("{}")
    assert verdicts(one) == ["dead"]
    paths.active("main").unlink()
    assert verdicts(one) == ["stopped"]


def test_another_process_on_the_port_makes_the_verdict_wrong(
    one: Prober, engine: Engine, docker: FakeDocker, proc: FakeProc
) -> None:
    """The process answers like the engine, but is not in the engine's container."""
    docker.create("vllm-main", never_listens=True, port=0)
    docker.answer("POST", "/containers/vllm-main/start")
    pid = docker.processes["vllm-main"].pid
    proc.process(pid, 4001, inode=77)
    proc.listen(engine.port, 77)
    assert verdicts(one, 2) == ["healthy", "healthy"]
    proc.process(999, 4002, inode=78)
    proc.listen(engine.port, 78)
    # The prober reads the port's owner only every OWNER_INTERVAL seconds while the engine serves.
    assert verdicts(one) == ["healthy"]
    one._owner_due -= prober.OWNER_INTERVAL
    finding = asyncio.run(one.round())
    assert finding.verdict == "wrong"
    assert finding.detail == f"port {engine.port} is taken by pid 999 (python3 -m server): stop it"
    # While another process has the port, the prober reads the owner at every probe.
    assert verdicts(one, 2) == ["wrong", "wrong"]
    (proc.root / "999/fd/1").unlink()
    proc.listen(engine.port, 77)
    assert proc.lines.pop(1) and proc.lines.pop()
    proc.listen(engine.port, 77)
    assert verdicts(one) == ["healthy"]


def test_without_docker_the_owner_of_the_port_does_not_matter(
    one: Prober, engine: Engine, docker: FakeDocker, proc: FakeProc
) -> None:
    proc.process(999, 4002, inode=78)
    proc.listen(engine.port, 78)
    docker.down()
    assert verdicts(one) == ["healthy"]


def test_without_a_process_table_the_owner_of_the_port_does_not_matter(one: Prober, proc: FakeProc) -> None:
    (proc.root / "net/tcp").mkdir()
    assert verdicts(one) == ["healthy"]


def test_a_systemd_that_does_not_answer_does_not_change_the_verdict(
    paths: Paths, docker: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prober, "SYSTEMD_TIMEOUT", 0.1)

    def fails(units: list[str], properties: tuple[str, ...]) -> Mapping[str, dict[str, str]]:
        raise systemd.SystemdError("Failed to connect to bus")

    def hangs(units: list[str], properties: tuple[str, ...]) -> Mapping[str, dict[str, str]]:
        time.sleep(0.3)
        return {}

    for show in (fails, hangs):
        assert verdicts(Prober(paths, "main", Docker(docker.path), limit=LIMIT, show=show)) == ["healthy"]


def test_an_instance_with_a_damaged_release_is_unknown(one: Prober, paths: Paths) -> None:
    (paths.release("main", 1) / "release.json").write_text("{")
    finding = asyncio.run(one.round())
    assert finding.verdict == "unknown" and "release.json cannot be used" in finding.detail
    paths.active("main").unlink()
    assert "does not name the active release" in asyncio.run(one.round()).detail


def test_a_follower_of_a_gang_is_not_probed(one: Prober, engine: Engine, paths: Paths) -> None:
    path = paths.release("main", 1) / releases.RELEASE_FILE
    files.write(path, replace(releases.load(paths, "main", 1), gang=gang(1)).to_json())
    found = asyncio.run(one.round())
    assert (found.verdict, found.detail) == ("unknown", "follows gpu-0, whose engine alone can be probed")
    assert not engine.completions


def test_the_key_is_sent_and_never_reported(one: Prober, engine: Engine, paths: Paths) -> None:
    engine.key = "secret-key-1"
    paths.env("main").write_text("VLLM_API_KEY=secret-key-1\n")
    assert verdicts(one) == ["healthy"]
    engine.raw = b"HTTP/1.1 500 No\r\nContent-Length: 12\r\n\r\nsecret-key-1"
    finding = asyncio.run(one.round())
    assert finding.verdict == "unknown" and "HTTP 500: ***" in finding.detail
    finding = asyncio.run(one.round())
    assert finding.verdict == "wrong" and "HTTP 500: ***" in finding.detail
