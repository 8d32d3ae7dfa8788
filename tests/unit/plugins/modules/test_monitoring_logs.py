# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module monitoring_logs: what it installs, refuses, restores and removes."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring import logs, places
from ansible_collections.baremetal.inference.plugins.modules import monitoring_logs as module

Call = Callable[..., dict[str, Any]]

BOTH = [logs.UNIT, logs.CHECK_TIMER]


class Machine:
    """systemd, and an rsyslogd that refuses a configuration with the word `refused`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.running: set[str] = set()
        self.enabled: set[str] = set()
        self.starts = True
        self.packages = ["rsyslog"]
        self.calls: list[str] = []
        program = root / "rsyslogd"
        program.write_text("#!/bin/sh\n! grep -q refused \"$3\" || { echo 'it is wrong' >&2; exit 1; }\n")
        program.chmod(0o755)

    def show(self, units: Iterable[str], properties: Iterable[str]) -> dict[str, dict[str, str]]:
        return {
            unit: {
                "ActiveState": "active" if unit in self.running else "inactive",
                "UnitFileState": "enabled" if unit in self.enabled else "",
                "NeedDaemonReload": "no",
            }
            for unit in units
        }

    def systemctl(self, verb: str, *units: str) -> str:
        self.calls.append(" ".join([verb, *units]))
        named = {unit for unit in units if not unit.startswith("-")}
        if verb in ("restart", "start"):
            if not self.starts:
                self.starts = True
                raise systemd.SystemdError("it failed")
            self.running |= named
        elif verb == "enable":
            self.enabled |= named
        elif verb in ("disable", "stop"):
            self.running -= named
            self.enabled -= named if verb == "disable" else set()
        return ""

    def files(self) -> dict[str, str]:
        places = [self.root / "etc", self.root / "var"]
        found = [path for place in places for path in place.rglob("*") if path.is_file()]
        return {str(path.relative_to(self.root)): path.read_text() for path in found}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(tmp_path)
    run_command = AnsibleModule.run_command

    def run(self: AnsibleModule, argv: list[str], **options: Any) -> Any:
        if argv[0] == "dpkg-query":
            return 1, "".join(f"install installed {name} 1.0\n" for name in machine.packages), ""
        if argv[0] == "journalctl":
            return 0, "it failed\n", ""
        if argv[0] == "systemctl":
            verb, unit = argv[1], argv[-1]
            if verb.startswith("is-"):
                return int(unit not in (machine.running if verb == "is-active" else machine.enabled)), "", ""
            try:
                return 0, machine.systemctl(*argv[1:]), ""
            except systemd.SystemdError as error:
                return 1, "", str(error)
        return run_command(self, argv, **options)

    monkeypatch.setattr(AnsibleModule, "run_command", run)
    monkeypatch.setattr(systemd, "show", machine.show)
    monkeypatch.setattr(systemd, "systemctl", machine.systemctl)
    monkeypatch.setattr(module, "Paths", lambda: Paths(tmp_path))
    monkeypatch.setattr(places, "LOG_STATES", (tmp_path / "var/lib/private", tmp_path / "var/lib"))
    monkeypatch.setattr(logs, "CONFIG", Paths(tmp_path).etc / "logs.conf")
    monkeypatch.setattr(logs, "PROGRAM", str(tmp_path / "rsyslogd"))
    monkeypatch.setattr(socket, "create_connection", lambda *_args, **_options: socket.socket())
    Paths(tmp_path).units.mkdir(parents=True)
    return machine


@pytest.fixture
def wanted() -> dict[str, Any]:
    return {"server": "logs.example.com", "protocol": "tcp", "host": "gpu7", "units": ["docker"]}


def test_log_shipping_is_installed_once_and_removed(run_module: Call, machine: Machine, wanted: dict[str, Any]) -> None:
    predicted = run_module(module, True, **wanted)
    assert predicted["changed"] and predicted["restarted"] and len(predicted["diff"]) == 4
    assert machine.calls == [] and machine.files() == {}
    done = run_module(module, **wanted)
    assert done["changed"] and not done["masked"] and done["diff"] == predicted["diff"]
    started = [f"{verb} {unit}" for unit in BOTH for verb in ("reset-failed", "start")]
    assert machine.calls == ["daemon-reload", *started, *(f"enable {unit}" for unit in BOTH)]
    machine.calls.clear()
    assert not run_module(module, **wanted)["changed"] and machine.calls == []
    # Another port restarts the service, but not the timer.
    assert run_module(module, **wanted, port=9000)["restarted"]
    assert machine.calls == [f"reset-failed {logs.UNIT}", f"restart {logs.UNIT}"]

    state = machine.root / "var/lib/private" / logs.STATE
    state.mkdir(parents=True)
    (state / "position").write_text("x")
    (machine.root / "var/lib" / logs.STATE).symlink_to(state)
    (Paths(machine.root).units / "rsyslog.service").symlink_to(os.devnull)
    assert run_module(module, True)["changed"] and state.exists()
    gone = run_module(module)
    assert gone["changed"] and gone["masked"] and machine.files() == {}
    assert machine.running == machine.enabled == set() and not state.exists()
    assert not os.path.lexists(machine.root / "var/lib" / logs.STATE)
    machine.calls.clear()
    assert not run_module(module)["changed"] and machine.calls == []


def test_a_service_whose_file_is_gone_is_stopped(run_module: Call, machine: Machine) -> None:
    machine.running = {logs.UNIT}
    assert run_module(module)["changed"] and machine.running == set()
    # systemctl refuses to disable a unit without a file.
    assert not any(call.startswith("disable") for call in machine.calls)
    assert not run_module(module)["changed"]


@pytest.mark.parametrize(
    "broken",
    [
        lambda machine: machine.running.discard(logs.UNIT),
        lambda machine: machine.running.discard(logs.CHECK_TIMER),
        lambda machine: machine.enabled.discard(logs.UNIT),
        lambda machine: logs.CONFIG.write_text("theirs"),
        lambda machine: (Paths(machine.root).units / logs.CHECK_UNIT).unlink(),
        lambda machine: machine.packages.remove("rsyslog"),
    ],
    ids=["stopped", "no check", "disabled", "config", "unit", "package"],
)
def test_each_difference_is_due(
    run_module: Call, machine: Machine, wanted: dict[str, Any], broken: Callable[[Machine], Any]
) -> None:
    run_module(module, **wanted)
    compared = {**wanted, "packages": ["rsyslog"]}
    assert not run_module(module, True, **compared)["due"]
    broken(machine)
    found = run_module(module, True, **compared)
    assert found["due"] and found["missing"] == ([] if machine.packages else ["rsyslog"])
    # If no logs are shipped, no package is missing.
    assert run_module(module, True, packages=["rsyslog"])["missing"] == []


def test_the_sites_own_logging_is_not_replaced(run_module: Call, machine: Machine, wanted: dict[str, Any]) -> None:
    rivals = ["syslog-ng-core", "socklog-run"]
    assert not run_module(module, True, **wanted, rivals=rivals).get("failed")
    machine.packages.append("syslog-ng-core")
    said = run_module(module, True, **wanted, rivals=rivals)["msg"]
    assert "conflicts with the installed syslog-ng-core" in said and "Nothing was changed" in said
    assert not run_module(module, True, rivals=rivals).get("failed"), "no logs are shipped"


def test_all_mistakes_are_named_at_once(run_module: Call, machine: Machine, wanted: dict[str, Any]) -> None:
    wrong = {**wanted, "port": 0, "protocol": "tls", "ca": str(machine.root / "none.pem"), "units": ["a|b"]}
    said = run_module(module, **wrong)["msg"]
    assert all(
        word in said for word in ("_port: 0", "_units: 'a|b'", "none.pem", "must be a file", "Nothing was changed")
    )
    assert machine.files() == {}


def test_certificates_must_be_readable_by_the_service(
    run_module: Call, machine: Machine, wanted: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Other users cannot read the directories of a test.
    monkeypatch.setattr(Path, "parents", property(lambda path: [machine.root]))
    machine.root.chmod(0o755)
    path = machine.root / "ca.pem"
    wanted |= {"protocol": "tls", "ca": str(path)}
    for text, mode, words in (("x", 0o644, "must contain a certificate"), ("x", 0o640, "chmod a+r")):
        path.write_text(text)
        path.chmod(mode)
        assert words in run_module(module, **wanted)["msg"]
    path.write_text("-----BEGIN CERTIFICATE-----\n")
    path.chmod(0o644)
    assert run_module(module, True, **wanted)["changed"]
    machine.root.chmod(0o700)
    assert f"chmod a+x {machine.root}" in run_module(module, True, **wanted)["msg"]


def test_a_configuration_that_rsyslog_refuses_is_not_written(
    run_module: Call, machine: Machine, wanted: dict[str, Any]
) -> None:
    run_module(module, **wanted)
    before = machine.files()
    for check in (True, False):
        failed = run_module(module, check, **{**wanted, "host": "refused"})
        assert "it is wrong" in failed["msg"] and "Nothing was changed" in failed["msg"]
    assert machine.files() == before


def test_without_rsyslog_check_mode_predicts_and_a_run_is_an_error(
    run_module: Call, machine: Machine, wanted: dict[str, Any]
) -> None:
    Path(logs.PROGRAM).unlink()
    assert run_module(module, True, **wanted)["changed"]
    assert "install the package rsyslog" in run_module(module, **wanted)["msg"]
    assert machine.files() == {}


def test_a_service_that_does_not_start_gets_its_old_files_back(
    run_module: Call, machine: Machine, wanted: dict[str, Any]
) -> None:
    machine.starts = False
    assert "did not start. Its last log lines:\nit failed" in run_module(module, **wanted)["msg"]
    assert machine.files() == {} and machine.running == set()
    run_module(module, **wanted)
    before = machine.files()
    machine.starts = False
    said = run_module(module, **wanted, port=9000)["msg"]
    assert "old files are back" in said and f"{logs.UNIT} runs with them" in said and logs.CHECK_TIMER not in said
    assert machine.files() == before and logs.UNIT in machine.running


def test_a_server_that_does_not_answer_is_a_warning(
    run_module: Call, machine: Machine, wanted: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: Any, **_options: Any) -> None:
        raise ConnectionRefusedError("Connection refused")

    monkeypatch.setattr(socket, "create_connection", refuse)
    done = run_module(module, **wanted)
    assert done["changed"] and "stays in the journal" in str(done["warnings"])
