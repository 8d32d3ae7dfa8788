# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that recovery inspects: with an instance that has a key, with two GPUs, or with a fake systemd."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, journal, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.core.docker_api import DockerUnavailable
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import health
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.drains import format_time
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.probe_state import ProbeState
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings import boot
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings.apply import Result
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery import actions, inspect, policy
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.ladder import Ladder, Report
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.policy import Situation
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.settings import Settings

from ..conftest import GPU_DATA, KEY, install, missing, plug

NOW = datetime(2026, 5, 4, 3, 0, tzinfo=UTC)

FIRST, SECOND = "0000:1b:00.0", "0000:9d:00.0"

XID_95 = "Xid (PCI:0000:9d:00): 95, pid=7, name=VLLM::EngineCore, Uncontained: FBHUB. RST: Yes, D-RST: No"

HEALTHY = (GPU_DATA / "report-580.xml").read_text().replace("<gpu_recovery_action>Reset<", "<gpu_recovery_action>None<")


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """A node with one proven instance, whose environment has a key."""
    paths = Paths(tmp_path)
    install(paths, environment={"VLLM_API_KEY": KEY})
    return paths


class FakeDocker:
    """Answers unless `alive` is false, and records the containers that were removed."""

    def __init__(self) -> None:
        self.alive = True
        self.removed: list[str] = []

    def ping(self) -> None:
        if not self.alive:
            raise DockerUnavailable("the Docker engine does not answer")

    def inspect(self, _container: str) -> None:
        self.ping()

    def remove(self, container: str) -> None:
        self.ping()
        self.removed.append(container)


class GpuMachine:
    """A node with two GPUs; instance `main` has the second, `side` the first. The agent's verdict of `main` is hung."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.paths = Paths(root)
        self.smi = Outcome(0, HEALTHY)
        self.reset = Outcome(0)
        self.asked: list[list[str]] = []
        self.done: list[str] = []
        monkeypatch.setattr(actions, "stop", lambda _name, _docker: self.done.append("stop"))
        monkeypatch.setattr(actions, "start", lambda _name: self.done.append("start"))
        monkeypatch.setattr(boot, "apply", self.apply)
        monkeypatch.setattr(systemd, "active_state", lambda _unit: "inactive")
        monkeypatch.setattr(journal.Journal, "say", lambda *_arguments, **_fields: None)
        for address in (FIRST, SECOND):
            plug(root, address)
        for name, gpu in (("main", "1"), ("side", "0")):
            install(self.paths, name, accelerator="nvidia", gpus=(gpu,))
        time = format_time(NOW)
        probe = ProbeState("main", health.HUNG, time, time, None, "no token within 10 s, and no counter moves", "first")
        files.write_json(self.paths.probe("main"), probe.to_json())
        unit = {"ActiveState": "active", "InvocationID": "first"}
        monkeypatch.setattr(systemd, "show", lambda units, _properties: dict.fromkeys(units, unit))

    def log(self, *lines: str) -> None:
        files.write(self.paths.root / "var/log/kern.log", "".join(f"[  95.0] NVRM: {line}\n" for line in lines))

    def run(self, command: Sequence[str], _timeout: float) -> Outcome:
        self.asked.append(list(command))
        if "--gpu-reset" in command:
            self.done.append("reset")
            return self.reset
        return self.smi if command[1:] == ["-q", "-x"] else Outcome(1)

    def apply(self, _paths: Paths) -> Result:
        self.done.append("settings")
        return Result(failures=["GPU 1: its power limit stays"])

    def recover(self) -> Report:
        docker: Any = FakeDocker()
        ladder = Ladder(self.paths, Settings(), journal.Journal(), docker=docker, run=self.run, now=lambda: NOW)
        return ladder.recover("main")

    def situation(self) -> Situation:
        docker: Any = FakeDocker()
        return inspect.inspect_instance(self.paths, "main", NOW, docker, self.run).situation

    def decide(self) -> policy.Decision:
        return policy.decide(self.situation(), Settings(), NOW)


@pytest.fixture
def gpu_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GpuMachine:
    return GpuMachine(tmp_path, monkeypatch)


class Machine:
    """A node with one proven instance. `is_seen` sets the agent's verdict and the state of the unit."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.paths = Paths(root)
        self.docker = FakeDocker()
        self.unit = "active"
        self.invocation = "first"
        self.calls: list[tuple[str, ...]] = []
        self.time = datetime.now(UTC).replace(microsecond=0)
        self.settings = Settings()
        self.entries: list[str] = []
        monkeypatch.setattr(systemd, "systemctl", self.systemctl)
        monkeypatch.setattr(actions, "PING_PAUSE", 0.0)
        monkeypatch.setattr(actions.time, "sleep", lambda _seconds: None)
        monkeypatch.setattr(journal.Journal, "say", lambda _journal, text, *_more, **_fields: self.entries.append(text))
        install(self.paths)

    def systemctl(self, *arguments: str) -> str:
        self.calls.append(arguments)
        if arguments[0] == "show":
            shown = f"ActiveState={self.unit}\nInvocationID={self.invocation}\n\n"
            return "".join(shown for name in arguments if name.endswith(".service"))
        if arguments[0] == "stop":
            self.unit = "inactive"
        if arguments[0] == "start":
            self.unit = "activating"
        if arguments[0] == "restart":
            self.docker.alive = True
        return ""

    @property
    def done(self) -> list[str]:
        """The commands to systemd that change something."""
        return [" ".join(call) for call in self.calls if call[0] != "show"]

    def run(self, command: Sequence[str], _timeout: float, **_more: str) -> Outcome:
        return missing(command[0])

    def is_seen(self, verdict: str, unit: str = "active") -> None:
        time = format_time(self.time)
        files.write_json(
            self.paths.probe("main"), ProbeState("main", verdict, time, time, None, "why", "first").to_json()
        )
        self.unit = unit
        self.calls.clear()

    def ladder(self) -> Ladder:
        docker: Any = self.docker
        return Ladder(self.paths, self.settings, journal.Journal(), docker=docker, run=self.run, now=lambda: self.time)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)
