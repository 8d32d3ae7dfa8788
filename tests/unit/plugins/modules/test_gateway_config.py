# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module gateway_config on a machine below a temporary root, with a HAProxy that does what the test says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.gateway.config import HEADER
from ansible_collections.baremetal.inference.plugins.modules import gateway_config as module

PARAMS: dict[str, Any] = {
    "config": f"{HEADER}\nglobal\n",
    "maps": {"keys.map": "abc alice\n"},
    "files": {"models.json": "{}"},
    "certificate": "",
    "certificate_key": "",
    "memory_max": "50%",
    "settings": {"port": 8000},
    "replace": False,
}


class Machine:
    """systemd, dpkg and HAProxy."""

    def __init__(self) -> None:
        self.installed = True
        self.active = False
        self.enabled = False
        self.pid = 100
        self.waiting = 0
        self.config_is_good = True
        self.comes_up = True
        self.takes_maps = True
        self.conffiles = ""
        self.calls: list[str] = []
        self.judged: set[str] = set()
        self.committed: list[str] = []

    def run_command(self, argv: list[str]) -> tuple[int, str, str]:
        if argv[0] == "dpkg-query":
            return 0, self.conffiles, ""
        if argv[0] == "journalctl":
            return 0, '{"status":200}\n[ALERT] cannot bind\n', ""
        if argv[0] == "haproxy":
            stage = Path(argv[-1]).parent
            self.judged = {path.name for path in stage.iterdir()}
            return (0, "", "") if self.config_is_good else (1, "", f"[ALERT] {stage}/haproxy.cfg:2: unknown keyword")
        words = " ".join(argv[1:])
        if words.startswith("is-active"):
            return int(not self.active), "", ""
        if words.startswith("is-enabled"):
            return int(not self.enabled), "", ""
        self.calls.append(words.removesuffix(" haproxy.service"))
        if words.startswith(("start", "reload")) and self.comes_up:
            self.active, self.pid = True, self.pid + 1
        if words.startswith("enable"):
            self.enabled = True
        return 0, "", ""

    def ask(self, command: str) -> str:
        if not self.active:
            raise ConnectionRefusedError
        if command == "show info":
            return f"Pid: {self.pid}"
        if command == "show stat":
            self.waiting -= 1
            return f"# pxname,svname,scur,status\nset_main,BACKEND,{max(0, self.waiting + 1)},DOWN"
        if command.startswith("prepare"):
            return "New version created: 1" if self.takes_maps else "Unknown map"
        self.calls.append(command.split(" ")[0])
        if command.startswith("commit"):
            self.committed.append(command.split(" ")[-1])
        return ""


class Module:
    """What the manager needs of an AnsibleModule."""

    def __init__(self, machine: Machine, params: dict[str, Any], check_mode: bool) -> None:
        self.machine, self.params, self.check_mode = machine, params, check_mode
        self.run_command = machine.run_command
        self.warnings: list[str] = []

    def get_bin_path(self, name: str, opt_dirs: list[str]) -> str | None:
        return name if self.machine.installed else None

    def backup_local(self, path: str) -> str:
        return f"{path}.backup"

    def warn(self, text: str) -> None:
        self.warnings.append(text)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    found = Machine()
    monkeypatch.setattr(module, "DIRECTORY", tmp_path / "haproxy")
    monkeypatch.setattr(module, "DROP_IN", tmp_path / "units/inference.conf")
    monkeypatch.setattr(module, "STATE", tmp_path / "gateway.json")
    monkeypatch.setattr(module, "RELOAD_SECONDS", 0.3)
    monkeypatch.setattr(module, "HELD_SECONDS", 0.2)
    monkeypatch.setattr(module, "HELD_POLL_SECONDS", 0.01)
    monkeypatch.setattr(module.runtime, "ask", lambda _path: found.ask)
    return found


def run(machine: Machine, *, check_mode: Any = False, **changes: Any) -> dict[str, Any]:
    """One run of the module; check mode, asked before, must have said the same."""
    params = {**PARAMS, **changes}
    results = []
    for mode in dict.fromkeys((True, check_mode)):
        manager = module.Manager(Module(machine, params, mode))
        manager.look()
        results.append(manager.decide())
        if not mode:
            machine.calls.clear()
            if results[-1]["changed"]:
                manager.act(results[-1])
            manager.record()
    assert results[0]["changed"] == results[-1]["changed"]
    return results[-1]


def test_a_fresh_machine_starts_and_a_second_run_changes_nothing(machine: Machine) -> None:
    result = run(machine)
    assert (result["action"], machine.calls) == ("start", ["daemon-reload", "reset-failed", "start", "enable"])
    assert machine.judged == {"haproxy.cfg", "keys.map", "models.json"}
    assert (module.DIRECTORY / "keys.map").stat().st_mode & 0o777 == 0o600
    assert run(machine)["changed"] is False


def test_the_settings_behind_it_are_kept_though_no_file_differs(machine: Machine) -> None:
    run(machine)
    assert run(machine, settings={"port": 8001})["changed"] is False
    assert json.loads(module.STATE.read_text())["settings"] == {"port": 8001}


def test_before_haproxy_is_there_only_check_mode_goes_on(machine: Machine) -> None:
    machine.installed = False
    result = run(machine, check_mode=True)
    assert (result["changed"], result["validated"]) == (True, False)
    with pytest.raises(module.GatewayError, match="not installed"):
        run(machine)


def test_maps_change_in_the_running_process(machine: Machine) -> None:
    run(machine)
    result = run(machine, maps={"keys.map": "def bob\n"})
    assert (result["action"], machine.calls) == ("maps", ["add", "commit"])
    assert (module.DIRECTORY / "keys.map").read_text() == "def bob\n"
    assert not any("bob" in str(part) for part in result["diff"])
    assert run(machine, maps={"keys.map": "def bob\n"})["changed"] is False


def test_a_new_key_has_its_rights_before_it_is_known(machine: Machine) -> None:
    maps = {"keys.map": "abc alice\n", "rights.map": "alice|set_main 1\n", "concurrency.map": "alice 4\n"}
    run(machine, maps=maps)
    run(machine, maps={name: text.replace("alice", "bob") for name, text in maps.items()})
    assert machine.committed == ["concurrency.map", "rights.map", "keys.map"]


def test_maps_that_the_process_does_not_take_are_reloaded(machine: Machine) -> None:
    run(machine)
    machine.takes_maps = False
    assert run(machine, maps={"keys.map": "def bob\n"})["action"] == "reload"
    assert machine.calls == ["reset-failed", "reload"]


@pytest.mark.parametrize("changes", [{"config": f"{HEADER}\nglobal\n  maxconn 1\n"}, {"files": {"models.json": "[]"}}])
def test_anything_else_is_reloaded(machine: Machine, changes: dict[str, Any]) -> None:
    run(machine)
    assert run(machine, **changes)["action"] == "reload"
    assert machine.calls == ["reset-failed", "reload"]


@pytest.mark.parametrize(("waiting", "warned"), [(3, False), (10**6, True)])
def test_a_reload_waits_a_while_for_requests_that_are_held(machine: Machine, waiting: int, warned: bool) -> None:
    run(machine)
    manager = module.Manager(Module(machine, {**PARAMS, "files": {"models.json": "[]"}}, False))
    manager.look()
    machine.waiting = waiting
    manager.act(manager.decide())
    assert machine.waiting < waiting - 2
    assert any("will fail" in text for text in manager.module.warnings) is warned
    assert machine.calls[-1] == "reload"


def test_a_run_that_was_cut_off_is_finished(machine: Machine) -> None:
    """The files are new, the process is not."""
    run(machine)
    changed = {"files": {"models.json": "[]"}}
    (module.DIRECTORY / "models.json").write_text("[]")
    assert run(machine, **changed)["action"] == "reload"
    assert run(machine, **changed)["changed"] is False


def test_what_haproxy_refuses_changes_nothing(machine: Machine) -> None:
    run(machine)
    machine.config_is_good = False
    with pytest.raises(module.GatewayError, match=r"haproxy/haproxy.cfg:2: unknown keyword"):
        run(machine, config=f"{HEADER}\nnonsense\n")
    assert (module.DIRECTORY / "haproxy.cfg").read_text() == PARAMS["config"]


def test_a_process_that_does_not_come_up_leaves_the_old_files(machine: Machine) -> None:
    run(machine)
    machine.comes_up = False
    with pytest.raises(module.GatewayError, match=r"did not reload(.|\n)*cannot bind(.|\n)*serves on"):
        run(machine, config=f"{HEADER}\nglobal\n  maxconn 1\n", files={"models.json": "{}", "new.json": "{}"})
    assert (module.DIRECTORY / "haproxy.cfg").read_text() == PARAMS["config"]
    assert not (module.DIRECTORY / "new.json").exists()
    assert machine.calls[-1] == "reload"
    machine.comes_up = True
    assert run(machine)["changed"] is False


def test_somebody_elses_configuration_is_kept(machine: Machine) -> None:
    module.DIRECTORY.mkdir()
    path = module.DIRECTORY / "haproxy.cfg"
    path.write_text("global\n")
    with pytest.raises(module.GatewayError, match="gateway_replace"):
        run(machine)
    machine.conffiles = f" {path} 27a8e6ee16d2f8c6c7c0dc3c2a7dcd0d\n"
    with pytest.raises(module.GatewayError, match="gateway_replace"):
        run(machine)
    assert run(machine, replace=True)["backup_file"]


def test_the_packages_own_configuration_is_replaced(machine: Machine) -> None:
    module.DIRECTORY.mkdir()
    path = module.DIRECTORY / "haproxy.cfg"
    path.write_text("global\n")
    digest = module.hashlib.md5(b"global\n", usedforsecurity=False).hexdigest()
    machine.conffiles = f" {path} {digest}\n"
    assert "backup_file" not in run(machine)


def test_a_certificate_is_linked_and_goes_again(machine: Machine, tmp_path: Path) -> None:
    for name in ("chain.pem", "key.pem"):
        (tmp_path / name).write_text("x")
    given = {"certificate": str(tmp_path / "chain.pem"), "certificate_key": str(tmp_path / "key.pem")}
    run(machine)
    assert run(machine, **given)["action"] == "reload"
    assert {"tls.pem", "tls.pem.key"} <= machine.judged
    assert (module.DIRECTORY / "tls.pem.key").resolve() == tmp_path / "key.pem"
    assert run(machine, **given)["changed"] is False
    assert run(machine)["action"] == "reload"
    assert not (module.DIRECTORY / "tls.pem").is_symlink()
    with pytest.raises(module.GatewayError, match=r"none\.pem: there is no such file"):
        run(machine, certificate="/etc/none.pem")


def test_a_file_that_is_no_longer_wanted_goes(machine: Machine) -> None:
    run(machine, files={"models.json": "{}", "clients.acl": "192.0.2.1\n"})
    assert run(machine)["action"] == "reload"
    assert not (module.DIRECTORY / "clients.acl").exists()
    assert json.loads(module.STATE.read_text())["files"] == ["haproxy.cfg", "keys.map", "models.json"]


def test_a_map_that_others_can_read_is_closed(machine: Machine) -> None:
    run(machine)
    (module.DIRECTORY / "keys.map").chmod(0o644)
    assert run(machine)["changed"] is True
    assert (module.DIRECTORY / "keys.map").stat().st_mode & 0o777 == 0o600
