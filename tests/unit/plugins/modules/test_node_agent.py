# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module node_agent: the unit, when it restarts, what it refuses, and what it takes away."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import AGENT_UNIT, Paths
from ansible_collections.baremetal.inference.plugins.modules import node_agent

RunModule = Callable[..., dict[str, Any]]


class Systemd:
    """A systemd that knows one unit."""

    def __init__(self) -> None:
        self.unit = {
            "ActiveState": "inactive",
            "UnitFileState": "",
            "NeedDaemonReload": "no",
            "MainPID": "0",
            "StatusText": "",
            "ExecMainStartTimestampMonotonic": "0",
        }
        self.calls: list[str] = []
        self.refusal = ""

    def show(self, units: Iterable[str], properties: Iterable[str]) -> dict[str, dict[str, str]]:
        return {name: {key: self.unit[key] for key in properties} for name in units}

    def systemctl(self, *arguments: str) -> str:
        self.calls.append(" ".join(arguments).replace(f" {AGENT_UNIT}", ""))
        if arguments[0] == "enable":
            self.unit["UnitFileState"] = "enabled"
        if arguments[0] == "restart":
            if self.refusal:
                self.unit["StatusText"] = self.refusal
                raise systemd.SystemdError("systemctl restart: Job failed")
            self.unit["ActiveState"] = "active"
            self.unit["ExecMainStartTimestampMonotonic"] = str(int(time.monotonic() * 1e6))
        if arguments[0] in ("disable", "stop"):
            self.unit["ActiveState"] = "inactive"
        return ""


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Systemd:
    fake = Systemd()
    monkeypatch.setattr(systemd, "show", fake.show)
    monkeypatch.setattr(systemd, "systemctl", fake.systemctl)
    return fake


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    paths = Paths(tmp_path)
    for part in (paths.library / "node/agent.py", paths.command):
        part.parent.mkdir(parents=True)
        part.write_text("")
        os.utime(part, (1e9, 1e9))
    return paths


@pytest.fixture
def run(paths: Paths, port: int, fake: Systemd, monkeypatch: pytest.MonkeyPatch, run_module: RunModule) -> RunModule:
    monkeypatch.setattr(node_agent, "Paths", lambda: paths)

    def call(check: bool = False, **arguments: Any) -> dict[str, Any]:
        fake.calls.clear()
        return run_module(node_agent, check, **{"port": port, **arguments})

    return call


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number


def test_a_fresh_node_gets_an_agent_once(run: RunModule, fake: Systemd, paths: Paths, port: int) -> None:
    predicted = run(check=True)
    assert (predicted["changed"], predicted["restarted"]) == (True, True)
    assert not paths.agent_unit.exists() and fake.calls == []
    result = run()
    assert (result["changed"], result["restarted"]) == (True, True)
    assert fake.calls == ["daemon-reload", "enable", "restart"]
    assert paths.state.is_dir(), "the sandbox refuses a place that is not there"
    unit = paths.agent_unit.read_text()
    assert result["diff"] == predicted["diff"] == {"before": "", "after": unit}
    lines = unit.splitlines()
    assert f"ExecStart=/usr/local/bin/inferctl agent --address 127.0.0.1 --port {port}" in lines
    assert "ReadWritePaths=/var/lib/inference -/var/lib/prometheus/node-exporter" in lines
    assert "CapabilityBoundingSet=CAP_SYS_PTRACE CAP_DAC_READ_SEARCH" in lines
    assert {"Type=notify", "Restart=always", "WatchdogSec=30", "WantedBy=multi-user.target"} <= set(lines)
    for check in (True, False):
        assert not run(check=check)["changed"]
    assert fake.calls == []


def test_what_restarts_it(run: RunModule, fake: Systemd, paths: Paths) -> None:
    run()
    assert run(check=True, tool_changed=True)["restarted"] is True
    # A run that was cut off between the tool and the agent.
    now = time.time() + 0.001
    os.utime(paths.command, (now, now))
    time.sleep(0.01)
    assert run()["restarted"] is True and fake.calls == ["restart"]
    assert not run()["changed"]
    # A clock that was set back says nothing of the files' age.
    os.utime(paths.command, (now + 3600, now + 3600))
    assert not run()["changed"]
    paths.agent_unit.write_text("# edited\n")
    assert run(check=True)["restarted"] is True
    assert run()["restarted"] is True and fake.calls == ["daemon-reload", "restart"]
    fake.unit["ActiveState"] = "failed"
    assert run()["restarted"] is True and fake.calls == ["restart"]
    fake.unit["NeedDaemonReload"] = "yes"
    assert run()["changed"] is True and fake.calls == ["daemon-reload"]
    fake.unit.update(NeedDaemonReload="no", UnitFileState="disabled")
    assert run()["changed"] is True and fake.calls == ["enable"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"address": "node1"}, "'node1' must be an IP address of the node"),
        ({"address": "192.0.2.1"}, "192.0.2.1 is no address of this node"),
        ({"port": 0}, "port 0 must be between 1 and 65535"),
        ({"port": 70000}, "port 70000 must be between"),
    ],
)
def test_where_it_cannot_listen(run: RunModule, paths: Paths, arguments: dict[str, Any], words: str) -> None:
    result = run(**arguments)
    assert result["failed"] and words in result["msg"] and "Nothing was changed" in result["msg"]
    assert not paths.agent_unit.exists()


def test_a_port_that_is_taken_by_somebody_else(run: RunModule, fake: Systemd, port: int) -> None:
    with socket.create_server(("127.0.0.1", port)):
        assert f"port {port} is taken by pid {os.getpid()} " in run(check=True)["msg"]
        fake.unit["MainPID"] = str(os.getpid())
        assert "msg" not in run(check=True), "that is the agent itself"


def test_a_start_that_fails_tells_the_agents_own_words(run: RunModule, fake: Systemd) -> None:
    fake.refusal = "cannot listen on 127.0.0.1 port 5004: Address already in use"
    message = run()["msg"]
    assert message.startswith("systemctl restart: Job failed\nIt said last: cannot listen on 127.0.0.1 port 5004")
    assert message.endswith("journalctl -u inference-agent.service")


def test_absent_leaves_nothing(run: RunModule, fake: Systemd, paths: Paths) -> None:
    run()
    paths.textfiles.mkdir(parents=True)
    paths.probe_metrics.write_text("")
    assert run(check=True, state="absent")["changed"] is True
    assert paths.agent_unit.exists() and fake.calls == []
    assert run(state="absent")["changed"] is True
    assert fake.calls == ["disable --now", "daemon-reload"]
    assert not paths.agent_unit.exists() and not paths.probe_metrics.exists()
    assert not run(state="absent")["changed"]
