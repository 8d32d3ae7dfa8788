# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The services of agent, metrics and swaps: due changes, how they are made, and where the agent cannot listen."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import GATES_UNIT, METRICS_TIMERS, Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import agent_service

from ...agent_harness import ABSENT, AgentSystemd

PORT = 5004


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> AgentSystemd:
    fake = AgentSystemd()
    monkeypatch.setattr(systemd, "show", fake.show)
    monkeypatch.setattr(systemd, "systemctl", fake.systemctl)
    return fake


@pytest.fixture
def node(tmp_path: Path, fake: AgentSystemd) -> Paths:
    """A node whose agent and timers run as they must."""
    paths = Paths(tmp_path)
    for part in (paths.library / "node/agent.py", paths.command):
        part.parent.mkdir(parents=True)
        part.write_text("")
        os.utime(part, (1e9, 1e9))
    agent_service.Units(paths, "127.0.0.1", PORT).install()
    fake.calls.clear()
    return paths


def units(
    paths: Paths, address: str = "127.0.0.1", port: int = PORT, tool_changed: bool = False
) -> agent_service.Units:
    return agent_service.Units(paths, address, port, tool_changed=tool_changed)


def test_a_node_without_differences_has_nothing_due(node: Paths, fake: AgentSystemd) -> None:
    found = units(node)
    assert not found.changed and found.written == [] and found.diff() == {"before": "", "after": ""}
    found.install()
    assert fake.calls == []


@pytest.mark.parametrize(
    ("state", "done"),
    [
        ({"ActiveState": "failed"}, "restart"),
        ({"UnitFileState": "disabled"}, "enable"),
        ({"NeedDaemonReload": "yes"}, "daemon-reload"),
    ],
)
def test_a_wrong_state_of_the_agents_unit_is_corrected(
    node: Paths, fake: AgentSystemd, state: dict[str, str], done: str
) -> None:
    fake.unit.update(state)
    found = units(node)
    assert found.changed
    found.install()
    assert fake.calls == [done]


@pytest.mark.parametrize("damage", ["edited", "removed"])
def test_a_damaged_or_missing_unit_is_written_anew(node: Paths, fake: AgentSystemd, damage: str) -> None:
    sound = node.agent_unit.read_text()
    node.agent_unit.unlink() if damage == "removed" else node.agent_unit.write_text(damage)
    found = units(node)
    assert found.changed and found.restart and found.written == [node.agent_unit]
    found.install()
    assert node.agent_unit.read_text() == sound and fake.calls == ["daemon-reload", "restart"]


def test_the_first_reload_already_uses_the_renewed_units_of_engines(node: Paths, fake: AgentSystemd) -> None:
    """A reload would end the start of an engine whose unit has the timeout of version 0.1.0."""
    kept = node.release("main", 1) / "vllm@main.service"
    files.write_json(kept.with_name("release.json"), {"start_timeout": 600})
    for path in (kept, node.unit("main")):
        files.write(path, "[Service]\nTimeoutStartSec=120\n")
    found = units(node)
    assert found.changed and not found.restart and found.written == [kept, node.unit("main")]
    assert "TimeoutStartSec=120" in found.diff()["before"] and "TimeoutStartSec=750" in found.diff()["after"]
    found.install()
    assert node.unit("main").read_text() == "[Service]\nTimeoutStartSec=750\n" and fake.calls == ["daemon-reload"]
    assert not units(node).changed


def test_the_unit_that_closes_gates_at_boot_is_enabled(node: Paths, fake: AgentSystemd) -> None:
    """Without the unit, the old engine would serve after a restart of the node in the middle of a swap."""
    fake.gates = ABSENT
    found = units(node)
    assert found.changed and not found.restart
    found.install()
    assert fake.calls == [f"enable {GATES_UNIT}"] and not units(node).changed


@pytest.mark.parametrize("number", [0, 1])
def test_units_of_swaps_are_written_anew_and_the_agent_keeps_running(
    node: Paths, fake: AgentSystemd, number: int
) -> None:
    path = list(node.swap_units.values())[number]
    sound = path.read_text()
    path.write_text("edited")
    found = units(node)
    assert found.changed and not found.restart and found.written == [path]
    found.install()
    assert path.read_text() == sound and fake.calls == ["daemon-reload"]


def test_the_settings_of_swaps_are_written_for_root_alone(node: Paths, fake: AgentSystemd) -> None:
    def with_settings(text: str | None) -> agent_service.Units:
        return agent_service.Units(node, "127.0.0.1", PORT, swap_settings=text)

    found = with_settings("1\n")
    assert found.changed and found.settings_due and not found.restart and not node.swap_settings.exists()
    found.install()
    assert node.swap_settings.read_text() == "1\n" and node.swap_settings.stat().st_mode & 0o777 == 0o600
    assert fake.calls == []
    # None leaves the file as it is.
    assert not with_settings("1\n").changed and not with_settings(None).changed and with_settings("2\n").changed
    node.swap_settings.chmod(0o644)
    assert with_settings("1\n").settings_due, "only root may read golden prompts"


def test_a_changed_address_or_port_restarts_the_agent(node: Paths) -> None:
    assert units(node, address="127.0.0.2").restart and units(node, port=5014).restart


def test_a_new_library_restarts_the_agent(node: Paths) -> None:
    assert units(node, tool_changed=True).restart
    os.utime(node.agent_unit, (1e9, 1e9))
    started, now = int((time.monotonic() - 60) * 1e6), time.time()
    assert not agent_service.outdated(node, started)
    os.utime(node.library / "node/agent.py", (now - 1, now - 1))
    assert agent_service.outdated(node, started)
    # A file from the future does not count: the clock was set back.
    os.utime(node.library / "node/agent.py", (now + 3600, now + 3600))
    assert not agent_service.outdated(node, started)


@pytest.mark.parametrize("name", METRICS_TIMERS)
def test_a_timer_that_was_stopped_is_started(node: Paths, fake: AgentSystemd, name: str) -> None:
    fake.timers[name] = ABSENT
    found = units(node)
    assert found.changed and not found.restart
    found.install()
    assert fake.calls == [f"enable --now {name}"]


def test_a_timer_that_changed_is_restarted(node: Paths, fake: AgentSystemd) -> None:
    node.metrics_units[METRICS_TIMERS[0]].write_text("")
    found = units(node)
    assert found.changed
    found.install()
    assert fake.calls == ["daemon-reload", f"restart {METRICS_TIMERS[0]}"]


@pytest.mark.parametrize(
    ("address", "port", "words"),
    [
        ("node1", PORT, "'node1' must be an IP address of the node"),
        ("192.0.2.1", PORT, "192.0.2.1 is no address of this node"),
        ("127.0.0.1", 70000, "port 70000 must be between 1 and 65535"),
    ],
)
def test_an_address_or_port_that_the_agent_cannot_use_is_named(address: str, port: int, words: str) -> None:
    assert words in agent_service.problem_with(address, port, 0)


def test_a_port_that_another_process_has_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert f"port {port} is taken by pid {os.getpid()} " in agent_service.problem_with("127.0.0.1", port, 0)
        assert agent_service.problem_with("127.0.0.1", port, os.getpid()) == "", "that is the agent itself"


def test_a_port_whose_process_is_unknown_counts_as_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = agent_service.listeners.Ownership(ours=False, strangers=[], unknown=1)
    monkeypatch.setattr(agent_service.listeners, "ownership", lambda *_where: unknown)
    words = f"port {PORT} is taken by a process that cannot be found in /proc"
    assert words in agent_service.problem_with("127.0.0.1", PORT, os.getpid())


def test_the_last_status_of_the_agent_is_read(fake: AgentSystemd) -> None:
    fake.unit["StatusText"] = "cannot listen"
    assert agent_service.last_status() == "cannot listen"


def test_removal_leaves_no_file_of_the_agent(node: Paths, fake: AgentSystemd) -> None:
    node.textfiles.mkdir(parents=True)
    for name in ("inference-gpus.prom", "inference-probe.prom", "inference-backup.prom"):
        (node.textfiles / name).write_text("")
    foreseen = agent_service.remove(node, check=True)
    assert node.agent_unit.exists() and fake.calls == []
    changed, gone, before = agent_service.remove(node, check=False)
    assert (changed, gone, before) == foreseen and f"{node.agent_unit}:\n" in before
    units = [node.agent_unit, *node.metrics_units.values(), *node.swap_units.values()]
    expected = [*units, node.metrics("gpus"), node.probe_metrics]
    assert sorted(gone) == sorted(expected) and not any(path.exists() for path in gone)
    assert "stop" in fake.calls and f"disable {GATES_UNIT}" in fake.calls
    assert [path.name for path in node.textfiles.iterdir()] == ["inference-backup.prom"]
    assert agent_service.remove(node, check=False) == (False, [], "")
