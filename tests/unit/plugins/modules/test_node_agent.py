# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module node_agent: agent and timers, when the agent restarts, what the module refuses, and what it removes."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import GATES_UNIT, METRICS_TIMERS, Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import swap_settings
from ansible_collections.baremetal.inference.plugins.module_utils.engine.swap_terms import Terms
from ansible_collections.baremetal.inference.plugins.modules import node_agent

from ..agent_harness import ABSENT, AgentSystemd

RunModule = Callable[..., dict[str, Any]]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> AgentSystemd:
    fake = AgentSystemd()
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
def run(
    paths: Paths, port: int, fake: AgentSystemd, monkeypatch: pytest.MonkeyPatch, run_module: RunModule
) -> RunModule:
    monkeypatch.setattr(node_agent, "Paths", lambda: paths)

    def call(check: bool = False, **arguments: Any) -> dict[str, Any]:
        fake.calls.clear()
        return run_module(node_agent, check, **{"port": port, **arguments})

    return call


def test_a_fresh_node_gets_an_agent_once(run: RunModule, fake: AgentSystemd, paths: Paths, port: int) -> None:
    predicted = run(check=True)
    assert (predicted["changed"], predicted["restarted"]) == (True, True)
    assert not paths.agent_unit.exists() and fake.calls == []
    result = run()
    assert (result["changed"], result["restarted"]) == (True, True)
    enabled = f"enable {GATES_UNIT}"
    assert fake.calls == ["daemon-reload", enabled, "restart", f"enable --now {' '.join(METRICS_TIMERS)}"]
    assert paths.state.is_dir(), "the sandbox refuses a directory that does not exist"
    written = [paths.agent_unit, *paths.metrics_units.values(), *paths.swap_units.values()]
    assert result["files"] == predicted["files"] == sorted(map(str, written))
    assert result["diff"] == predicted["diff"]
    assert result["diff"]["before"] == "".join(f"{path}:\n" for path in written)
    assert result["diff"]["after"] == "".join(f"{path}:\n{path.read_text()}" for path in written)
    lines = paths.agent_unit.read_text().splitlines()
    assert f"ExecStart=/usr/local/bin/inferctl agent --address 127.0.0.1 --port {port}" in lines
    assert "ReadWritePaths=/var/lib/inference -/var/lib/prometheus/node-exporter" in lines
    assert "CapabilityBoundingSet=CAP_SYS_PTRACE CAP_DAC_READ_SEARCH" in lines
    assert {"Type=notify", "Restart=always", "WatchdogSec=30", "WantedBy=multi-user.target"} <= set(lines)
    for check in (True, False):
        assert not run(check=check)["changed"]
    assert fake.calls == []


def test_a_new_tool_a_changed_unit_and_a_failure_restart_the_agent(
    run: RunModule, fake: AgentSystemd, paths: Paths
) -> None:
    run()
    assert run(check=True, tool_changed=True)["restarted"] is True
    # A run that installed the tool, and was cut off before the restart of the agent, leaves this state.
    now = time.time() + 0.001
    os.utime(paths.command, (now, now))
    time.sleep(0.01)
    assert run()["restarted"] is True and fake.calls == ["restart"]
    assert not run()["changed"]
    # A file from the future, as after the clock was set back, does not restart the agent.
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


SWAP = {"node": "node1", "gateways": [{"name": "gw1", "address": "10.0.0.9", "port": 8404}]}


def test_the_settings_of_swaps_are_written_once(run: RunModule, fake: AgentSystemd, paths: Paths) -> None:
    run()
    assert not paths.swap_settings.exists(), "without the option, the file stays as it is"
    foreseen = run(check=True, swap=SWAP)
    assert foreseen["changed"] and foreseen["files"] == [str(paths.swap_settings)] and not paths.swap_settings.exists()
    assert foreseen["diff"] == {
        "before": f"{paths.swap_settings}:\n",
        "after": f"{paths.swap_settings}:\n(not shown, changed)\n",
    }
    result = run(swap={**SWAP, "golden": {"main": [{"prompt": "1+1", "expect": "2"}]}, "terms": {"watch_seconds": 5}})
    assert result["changed"] and not result["restarted"] and fake.calls == []
    assert "1+1" not in str(result["diff"]) and result["diff"] == foreseen["diff"]
    found = swap_settings.read(paths)
    assert (found.node, found.gateways) == ("node1", (swap_settings.Gateway("gw1", "10.0.0.9", 8404),))
    assert found.golden == {"main": [{"prompt": "1+1", "expect": "2"}]}
    assert found.terms == Terms(watch_seconds=5) and paths.swap_settings.stat().st_mode & 0o777 == 0o600
    assert not run()["changed"] and run(swap=SWAP)["changed"] and not run(check=True, swap=SWAP)["changed"]


@pytest.mark.parametrize(
    ("swap", "words"),
    [
        ({"gateways": []}, "node"),
        ({"node": "node1"}, "gateways"),
        ({"node": "node1", "gateways": [{"name": "gw1"}]}, "swap cannot be understood: KeyError('address')"),
        ({**SWAP, "terms": {"drain_seconds": "soon"}}, "swap cannot be understood: "),
    ],
)
def test_settings_that_no_swap_could_use_are_refused(
    run: RunModule, paths: Paths, swap: dict[str, Any], words: str
) -> None:
    result = run(swap=swap)
    assert result["failed"] and words in result["msg"]
    assert not paths.swap_settings.exists() and not paths.agent_unit.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"address": "node1"}, "'node1' must be an IP address of the node"),
        ({"address": "192.0.2.1"}, "192.0.2.1 is no address of this node"),
        ({"port": 0}, "port 0 must be between 1 and 65535"),
        ({"port": 70000}, "port 70000 must be between"),
    ],
)
def test_an_address_or_port_that_the_agent_cannot_use_is_refused(
    run: RunModule, paths: Paths, arguments: dict[str, Any], words: str
) -> None:
    result = run(**arguments)
    assert result["failed"] and words in result["msg"] and "Nothing was changed" in result["msg"]
    assert not paths.agent_unit.exists()


def test_a_port_that_another_process_uses_is_refused(run: RunModule, fake: AgentSystemd, port: int) -> None:
    with socket.create_server(("127.0.0.1", port)):
        assert f"port {port} is taken by pid {os.getpid()} " in run(check=True)["msg"]
        fake.unit["MainPID"] = str(os.getpid())
        assert "msg" not in run(check=True), "that is the agent itself"


def test_a_start_that_fails_is_an_error_with_the_agents_last_status(run: RunModule, fake: AgentSystemd) -> None:
    fake.refusal = "cannot listen on 127.0.0.1 port 5004: Address already in use"
    message = run()["msg"]
    assert message.startswith(
        "systemctl restart: Job failed\nThe agent's last status: cannot listen on 127.0.0.1 port 5004"
    )
    assert message.endswith("journalctl -u inference-agent.service")


def test_the_state_absent_removes_the_agent_once(run: RunModule, fake: AgentSystemd, paths: Paths) -> None:
    run()
    paths.textfiles.mkdir(parents=True)
    paths.probe_metrics.write_text("")
    assert run(check=True, state="absent")["changed"] is True
    assert paths.agent_unit.exists() and fake.calls == []
    assert run(state="absent")["changed"] is True
    timers = [f"{verb} {name}" for name in METRICS_TIMERS for verb in ("stop", "disable")]
    gates = [f"{verb} {GATES_UNIT}" for verb in ("stop", "disable")]
    assert fake.calls == [*timers, "stop", "disable", *gates, "daemon-reload"]
    assert not paths.agent_unit.exists() and not paths.probe_metrics.exists()
    assert not run(state="absent")["changed"]


def test_a_changed_timer_is_restarted_and_a_stopped_timer_is_started(
    run: RunModule, fake: AgentSystemd, paths: Paths
) -> None:
    run()
    paths.metrics_units[METRICS_TIMERS[0]].write_text("")
    fake.timers[METRICS_TIMERS[1]] = ABSENT
    result = run()
    assert result["changed"] and not result["restarted"], "the agent keeps running"
    assert result["files"] == [str(paths.metrics_units[METRICS_TIMERS[0]])]
    assert fake.calls == ["daemon-reload", f"enable --now {METRICS_TIMERS[1]}", f"restart {METRICS_TIMERS[0]}"]
    assert not run()["changed"]


def test_the_state_absent_removes_only_the_metrics_of_the_agent_and_its_timers(
    run: RunModule, fake: AgentSystemd, paths: Paths
) -> None:
    run()
    paths.textfiles.mkdir(parents=True)
    for name in ("inference-gpus.prom", "inference-probe.prom", "inference-backup.prom"):
        (paths.textfiles / name).write_text("")
    gone = run(state="absent")
    units = [paths.agent_unit, *paths.metrics_units.values(), *paths.swap_units.values()]
    metrics = [paths.metrics("gpus"), paths.probe_metrics]
    assert gone["files"] == sorted(map(str, [*units, *metrics]))
    # Metrics of other programs stay.
    assert [path.name for path in paths.textfiles.iterdir()] == ["inference-backup.prom"]
    assert not any(paths.units.iterdir())


def test_metrics_without_a_unit_are_removed(run: RunModule, fake: AgentSystemd, paths: Paths) -> None:
    paths.textfiles.mkdir(parents=True)
    left = paths.metrics("gpus")
    left.write_text("")
    gone = run(state="absent")
    assert gone["changed"] and gone["files"] == [str(left)] and fake.calls == [] and not left.exists()


def test_without_the_command_inferctl_nothing_is_changed(run: RunModule, fake: AgentSystemd, paths: Paths) -> None:
    paths.command.unlink()
    refused = run()
    assert refused["failed"] and "run baremetal.inference.site, which installs" in refused["msg"] and fake.calls == []
    # Check mode works on a bare machine.
    assert run(check=True)["changed"] is True
