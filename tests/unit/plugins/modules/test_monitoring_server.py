# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module monitoring_server on a machine below a temporary root, with fakes of systemd, dpkg and the services."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.debian import service_files, tested
from ansible_collections.baremetal.inference.plugins.module_utils.debian.service_files import ServiceError
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring import passwords, removal
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.api import NoAnswer
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.places import HEADER
from ansible_collections.baremetal.inference.plugins.modules import monitoring_server as module

Call = Callable[..., dict[str, Any]]

PLAN: dict[str, Any] = {
    "problems": [],
    "files": {"rules/a.yml": "groups: []\n", "targets/node.json": "[]\n"},
    "secrets": {"prometheus.yml": f"{HEADER}\n", "alertmanager.yml": f"{HEADER}\nurl: https://hook/secret\n"},
    "web": f"{HEADER}\n",
    "units": {module.PROMETHEUS: "[Service]\nA=1\n", module.ALERTMANAGER: "[Service]\nA=2\n"},
    "url": "http://127.0.0.1:9090",
    "alertmanager_url": "http://127.0.0.1:9093",
    "dashboards": {"node.json": hashlib.sha256(b"{}").hexdigest()},
}
PARAMS: dict[str, Any] = {
    "packages": ["prometheus"],
    "users": {"op": "long-enough"},
    "replace": False,
}


def given(**changes: Any) -> dict[str, Any]:
    """The module's options. Changes of what the filter monitoring_plan makes go into the option `plan`."""
    plan = {name: changes.pop(name) for name in (*PLAN, "asked", "rules") if name in changes}
    return {**PARAMS, **changes, "plan": {**PLAN, **plan}}


class Machine:
    """systemd, dpkg, promtool, amtool and the two services."""

    def __init__(self) -> None:
        self.installed = True
        self.active: set[str] = set()
        self.enabled: set[str] = set()
        self.refused_by = ""
        self.comes_up = True
        self.conffiles = ""
        self.loaded = 0.0
        self.calls: list[str] = []
        self.judged: dict[str, int] = {}

    def run_command(self, argv: list[str], cwd: str = "") -> tuple[int, str, str]:
        if argv[:3] == ["dpkg-query", "--show", "--showformat=${Conffiles}"]:
            return 0, self.conffiles, ""
        if argv[0] == "dpkg-query":
            return (0, "install installed prometheus 2.42\n", "") if self.installed else (1, "", "")
        if argv[0] == "journalctl":
            return 0, "level=info hello\nlevel=error url: https://hook/secret is bad\n", ""
        if argv[0] == "setpriv":
            stage = Path(cwd)
            self.judged = {
                str(path.relative_to(stage)): path.stat().st_mode & 0o777 for path in stage.rglob("*") if path.is_file()
            }
            refused = self.refused_by and self.refused_by in argv
            return (1, "", f"{cwd}/alertmanager.yml: https://hook/secret is wrong") if refused else (0, "", "")
        words = argv[1:]
        if words[0] == "is-active":
            return int(words[-1] not in self.active), "", ""
        if words[0] == "is-enabled":
            return int(words[-1] not in self.enabled), "", ""
        if words[0] == "show":
            return 0, "0" if self.comes_up else "3", ""
        self.calls.append(
            " ".join(words).replace("prometheus-alertmanager.service", "A").replace(module.PROMETHEUS, "P")
        )
        if words[0] in ("start", "restart", "reload") and self.comes_up:
            self.active.add(words[-1])
            self.loaded = time.time()
        if words[0] == "enable":
            self.enabled.add(words[-1])
        return 0, "", ""

    def text(self, path: str) -> str:
        if not self.active:
            raise NoAnswer("nobody")
        return "".join(
            f"{name}_config_last_reload_successful {int(self.comes_up)}\n"
            f"{name}_config_last_reload_success_timestamp_seconds {self.loaded}\n"
            for name in ("prometheus", "alertmanager")
        )


class Module:
    """What MonitoringServer needs of an AnsibleModule."""

    def __init__(self, machine: Machine, params: dict[str, Any], check_mode: bool) -> None:
        self.machine, self.params, self.check_mode = machine, params, check_mode
        self.run_command = machine.run_command

    def get_bin_path(self, name: str) -> str | None:
        return name if self.machine.installed else None

    def backup_local(self, path: str) -> str:
        return f"{path}.backup"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    found = Machine()
    # The fewest rounds: a hash takes 0.001 s instead of 0.06 s.
    monkeypatch.setattr(passwords, "PREFIX", "$2b$04$")
    monkeypatch.setattr(module, "DIRECTORY", tmp_path / "prometheus")
    monkeypatch.setattr(module, "UNITS", tmp_path / "units")
    monkeypatch.setattr(module, "STATE", tmp_path / "monitoring.json")
    monkeypatch.setattr(module, "RELOAD_SECONDS", 0.3)
    monkeypatch.setattr(module, "START_SECONDS", 0.3)
    monkeypatch.setattr(service_files, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(module, "USER", "root")
    monkeypatch.setattr(module.MonitoringServer, "group", os.getgid())
    monkeypatch.setattr(module.shutil, "chown", lambda *_args, **_more: None)
    monkeypatch.setattr(module, "Server", lambda _url, _password: found)
    monkeypatch.setattr(tested, "refusal", lambda _what, _package: "")
    monkeypatch.setitem(PARAMS, "dashboards_path", str(tmp_path / "dashboards"))
    (tmp_path / "dashboards").mkdir()
    (tmp_path / "dashboards/node.json").write_text("{}")
    return found


def run(machine: Machine, *, check_mode: Any = False, **changes: Any) -> dict[str, Any]:
    """One run of the module, after a run in check mode that must predict whether it changes anything."""
    params = given(**changes)
    results = []
    for mode in dict.fromkeys((True, check_mode)):
        if not mode:
            machine.calls.clear()
        ansible: Any = Module(machine, params, mode)
        results.append(module.present(ansible))
    assert results[0]["changed"] == results[-1]["changed"] == results[0]["due"]
    return results[-1]


def test_a_fresh_machine_starts_and_a_second_run_changes_nothing(machine: Machine) -> None:
    result = run(machine)
    assert set(result["actions"].values()) == {"start"}
    assert machine.calls == [
        "daemon-reload",
        "reset-failed A",
        "start A",
        "reset-failed P",
        "start P",
        "enable A",
        "enable P",
    ]
    assert machine.judged["prometheus.yml"] == machine.judged["web.yml"] == machine.judged["password"] == 0o640
    assert machine.judged["rules/a.yml"] == 0o644
    assert (module.DIRECTORY / "web.yml").stat().st_mode & 0o777 == 0o640
    assert run(machine)["changed"] is False


def test_without_prometheus_check_mode_predicts_and_a_run_is_an_error(machine: Machine) -> None:
    machine.installed = False
    result = run(machine, check_mode=True)
    assert (result["changed"], result["validated"]) == (True, False)
    with pytest.raises(ServiceError, match="not installed"):
        run(machine)


def test_targets_need_no_reload_and_rules_do(machine: Machine) -> None:
    run(machine)
    result = run(machine, files={**PLAN["files"], "targets/node.json": "[1]\n"})
    assert result["written"] == ["targets/node.json"] and machine.calls == []
    result = run(machine, files={"rules/b.yml": "groups: []\n", "targets/node.json": "[1]\n"})
    assert result["actions"] == {module.PROMETHEUS: "reload", module.ALERTMANAGER: "none"}
    assert not (module.DIRECTORY / "rules/a.yml").exists()
    assert run(machine, files={"rules/b.yml": "groups: []\n", "targets/node.json": "[1]\n"})["changed"] is False


@pytest.mark.parametrize("tool", ["promtool", "amtool"])
def test_files_refused_by_promtool_or_amtool_change_nothing(machine: Machine, tool: str) -> None:
    run(machine)
    before = {path: path.read_bytes() for path in module.DIRECTORY.rglob("*") if path.is_file()}
    machine.calls.clear()
    machine.refused_by = tool
    with pytest.raises(ServiceError, match="refused") as caught:
        run(machine, files={"rules/b.yml": "nonsense"})
    assert tool in str(caught.value) and "hook/secret" not in str(caught.value)
    assert {path: path.read_bytes() for path in module.DIRECTORY.rglob("*") if path.is_file()} == before
    assert machine.calls == []


def test_a_service_that_does_not_reload_gets_its_old_files_back(machine: Machine) -> None:
    run(machine)
    before = (module.DIRECTORY / "alertmanager.yml").read_text()
    machine.comes_up = False
    with pytest.raises(ServiceError, match="did not reload") as caught:
        run(machine, secrets={**PLAN["secrets"], "alertmanager.yml": f"{HEADER}\nother\n"})
    assert "back in place" in str(caught.value) and "hook/secret" not in str(caught.value)
    assert (module.DIRECTORY / "alertmanager.yml").read_text() == before
    machine.comes_up = True
    assert run(machine)["changed"] is False


def test_a_service_with_other_options_is_restarted(machine: Machine) -> None:
    run(machine)
    units = {**PLAN["units"], module.PROMETHEUS: "[Service]\nA=3\n"}
    assert run(machine, units=units)["actions"] == {module.PROMETHEUS: "restart", module.ALERTMANAGER: "none"}


def test_a_run_that_was_cut_off_is_finished(machine: Machine) -> None:
    run(machine)
    (module.DIRECTORY / "rules/a.yml").write_text("groups: [x]\n")
    result = run(machine, files={**PLAN["files"], "rules/a.yml": "groups: [x]\n"})
    assert (result["written"], result["actions"][module.PROMETHEUS]) == ([], "reload")


def test_a_file_that_was_edited_by_hand_is_restored_and_loaded(machine: Machine) -> None:
    run(machine)
    for name, actions in (
        ("rules/a.yml", {module.PROMETHEUS: "reload", module.ALERTMANAGER: "none"}),
        ("alertmanager.yml", {module.PROMETHEUS: "none", module.ALERTMANAGER: "reload"}),
    ):
        (module.DIRECTORY / name).write_text(f"{HEADER}\naltered\n")
        result = run(machine)
        assert (result["written"], result["actions"]) == ([name], actions)
    assert run(machine)["changed"] is False


def test_another_password_is_written_without_a_reload(machine: Machine) -> None:
    run(machine)
    before = (module.DIRECTORY / "web.yml").read_text()
    assert "long-enough" not in before
    result = run(machine, users={"op": "another-one"})
    assert (result["written"], machine.calls) == (["web.yml"], [])
    assert (module.DIRECTORY / "web.yml").read_text() != before
    assert not any("$2b$" in str(part) for part in result["diff"])
    run(machine, users={})
    assert not (module.DIRECTORY / "password").exists()


def test_a_foreign_configuration_is_kept(machine: Machine) -> None:
    module.DIRECTORY.mkdir()
    (module.DIRECTORY / "prometheus.yml").write_text("mine: true\n")
    with pytest.raises(ServiceError, match="did not write"):
        run(machine)
    result = run(machine, replace=True)
    assert result["backup_files"] == [f"{module.DIRECTORY}/prometheus.yml.backup"]


def test_the_packages_own_configuration_is_replaced(machine: Machine) -> None:
    module.DIRECTORY.mkdir()
    path = module.DIRECTORY / "prometheus.yml"
    path.write_text("package\n")
    machine.conffiles = f" {path} efb8bcb1ae9ff9ecd2eb7a10a3fbfd58\n"
    with pytest.raises(ServiceError, match="did not write"):
        run(machine)
    machine.conffiles = f" {path} {hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()}\n"
    assert run(machine)["changed"]


# --- due


def due(machine: Machine, **changes: Any) -> Any:
    """Whether check mode finds work, as in the preflight."""
    ansible: Any = Module(machine, given(**changes), True)
    machine.calls.clear()
    found = module.present(ansible)
    assert machine.calls == []
    return found["due"]


@pytest.mark.parametrize(
    "broken",
    [
        lambda machine: machine.active.discard(module.PROMETHEUS),
        lambda machine: machine.enabled.discard(module.ALERTMANAGER),
        lambda machine: (module.DIRECTORY / "prometheus.yml").write_text("global:\n"),
        lambda machine: (module.DIRECTORY / "rules/a.yml").unlink(),
        lambda machine: (module.UNITS / "prometheus.service.d/inference.conf").unlink(),
        lambda machine: Path(PARAMS["dashboards_path"], "node.json").write_text("[]"),
        lambda machine: Path(PARAMS["dashboards_path"], "node.json").chmod(0o600),
        lambda machine: Path(PARAMS["dashboards_path"], "node.json").unlink(),
    ],
    ids=["stopped", "disabled", "config", "rules", "unit", "dashboard", "hidden dashboard", "no dashboard"],
)
def test_each_difference_is_due(machine: Machine, broken: Callable[[Machine], Any]) -> None:
    assert due(machine)
    run(machine)
    assert not due(machine)
    broken(machine)
    assert due(machine, replace=True)


def test_without_a_directory_dashboards_are_not_compared(machine: Machine) -> None:
    run(machine)
    Path(PARAMS["dashboards_path"], "node.json").unlink()
    assert due(machine)
    assert not due(machine, dashboards_path=None)


def test_a_package_that_is_missing_is_due_and_named(machine: Machine) -> None:
    run(machine)
    machine.installed = False
    ansible: Any = Module(machine, given(), True)
    found = module.present(ansible)
    assert found["due"] and found["missing"] == ["prometheus"]


def test_every_mistake_of_the_input_is_reported_at_once(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tested, "refusal", lambda what, package: f"{what} needs {package}")
    with pytest.raises(ServiceError) as caught:
        run(machine, problems=["monitoring_port: 0", "monitoring_users: is empty"])
    for words in ("Nothing was changed", "needs Prometheus", "monitoring_port: 0", "monitoring_users: is empty"):
        assert words in str(caught.value)
    assert not module.DIRECTORY.exists()


# --- state: absent


@pytest.fixture
def fake(services: Callable[[Iterable[str]], Any]) -> Any:
    """Prometheus and Alertmanager, as on a monitoring host."""
    return services(removal.STOPPED_IN_ORDER)


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine that never was a monitoring host."""
    for name, path, home in (
        ("DIRECTORY", "etc", removal),
        ("UNITS", "units", removal),
        ("SAMPLES", "samples", module),
        ("SILENCES", "silences", module),
    ):
        monkeypatch.setattr(home, name, tmp_path / path)
        (tmp_path / path).mkdir()
    monkeypatch.setattr(removal, "STATE", tmp_path / "lib/monitoring.json")
    (tmp_path / "lib").mkdir()
    return tmp_path


def watches(root: Path) -> set[Path]:
    """Write the files of a monitoring host. Returns the paths that the module owns."""
    names = ["alertmanager.yml", "prometheus.yml", "password", "rules/a.yml", "targets/node.json"]
    found = {root / "etc" / name for name in names}
    found |= {root / f"units/{unit}.d/inference.conf" for unit in removal.STOPPED_IN_ORDER}
    for path in found:
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{HEADER}\n")
    removal.STATE.write_text(json.dumps({"schema": 1, "files": names, "loaded": {}}))
    return found | {removal.STATE}


def there(root: Path) -> set[Path]:
    return {path for path in root.rglob("*") if path.is_file()}


def test_the_modules_files_are_removed_and_samples_and_silences_stay(run_module: Call, fake: Any, root: Path) -> None:
    (root / "samples/block").write_text("x")
    (root / "etc/consoles").mkdir()
    foreign = {root / "samples/block", root / "etc/web.example", root / "units/prometheus.service.d/own.conf"}
    ours = watches(root)
    for path in foreign:
        path.write_text("x")
    predicted = run_module(module, check=True, state="absent")
    assert predicted["changed"] and fake.calls == [] and there(root) == ours | foreign
    done = run_module(module, state="absent")
    assert done == predicted
    assert set(done["removed"]) == {str(path) for path in ours}
    assert (done["stopped"], done["kept"]) == (
        list(removal.STOPPED_IN_ORDER),
        [str(root / "samples"), str(root / "silences")],
    )
    assert fake.calls == [
        *(f"{verb} {unit}" for unit in removal.STOPPED_IN_ORDER for verb in ("stop", "disable")),
        "daemon-reload",
    ]
    assert there(root) == foreign
    directories = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_dir()}
    assert directories == {"etc", "etc/consoles", "units", "units/prometheus.service.d", "samples", "silences", "lib"}
    assert run_module(module, state="absent")["changed"] is False


def test_on_a_machine_that_never_was_a_monitoring_host_no_service_is_changed(
    run_module: Call, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(systemd, "systemctl", lambda *_arguments: pytest.fail("asked"))
    assert run_module(module, state="absent")["changed"] is False


@pytest.mark.parametrize("name", ["prometheus.yml", "alertmanager.yml"])
def test_a_host_with_a_foreign_configuration_is_left_alone(run_module: Call, fake: Any, root: Path, name: str) -> None:
    ours = watches(root)
    (root / "etc" / name).write_text("mine: true\n")
    done = run_module(module, state="absent")
    assert done["changed"] is False and done["foreign"] == [str(root / "etc" / name)]
    assert there(root) == ours and fake.calls == []


def test_a_removal_that_was_cut_off_is_continued(
    run_module: Call, fake: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watches(root)
    unlink = Path.unlink

    def cut_off(path: Path, missing_ok: bool = False) -> None:
        if path == root / "etc/password":
            raise OSError("the power is gone")
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", cut_off)
    assert "the removal continues" in run_module(module, state="absent")["msg"]
    monkeypatch.setattr(Path, "unlink", unlink)
    done = run_module(module, state="absent")
    assert done["changed"] and done["stopped"] == [] and there(root) == set()


def test_services_that_were_removed_with_their_packages_are_not_stopped(
    run_module: Call, fake: Any, root: Path
) -> None:
    watches(root)
    for known, value in ((fake.active, "inactive"), (fake.enabled, ""), (fake.loaded, "not-found")):
        known.update(dict.fromkeys(removal.STOPPED_IN_ORDER, value))
    assert run_module(module, state="absent")["stopped"] == [] and fake.calls == ["daemon-reload"]
    assert there(root) == set()


# --- verify_seconds


@pytest.mark.parametrize("missing", [[], ["Prometheus has no Alertmanager"]])
def test_monitoring_that_differs_from_the_inventory_is_an_error(
    machine: Machine, run_module: Call, monkeypatch: pytest.MonkeyPatch, missing: list[str]
) -> None:
    machine.active = {module.PROMETHEUS, module.ALERTMANAGER}
    asked: list[Any] = []

    def watch(_prometheus: Any, _alertmanager: Any, *wanted: Any) -> tuple[dict[str, Any], list[str]]:
        asked.append(wanted)
        return {"up": 1, "down": ["gpu2"], "rules": 3}, missing

    done = {"changed": True, "actions": {}}
    monkeypatch.setattr(module.MonitoringServer, "run", lambda _self: dict(done))
    monkeypatch.setattr(module, "watch", watch)
    wanted = given(asked={"node": ["a:9100"]}, rules=["a.yml"])
    said = run_module(module, **wanted, verify_seconds=7)
    assert asked == [({"node": ["a:9100"]}, ["a.yml"], 7)]
    assert (said["up"], said["down"], said["rules"], said["changed"]) == (1, ["gpu2"], 3, True)
    assert said.get("failed", False) is bool(missing)
    assert all(text in said["msg"] for text in missing)
    assert "up" not in run_module(module, **wanted) and "up" not in run_module(
        module, check=True, **wanted, verify_seconds=7
    )
    assert len(asked) == 1


def test_a_password_that_cannot_be_read_ends_the_verification_with_a_message(
    machine: Machine, run_module: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> str:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(module.MonitoringServer, "run", lambda _self: {"changed": True, "actions": {}})
    monkeypatch.setattr(module, "internal_password", broken)
    said = run_module(module, **{**given(), "users": {"ops": "pass-word-1"}}, verify_seconds=7)
    assert said["failed"] and said["changed"]
    assert said["msg"].endswith("cannot be verified: [Errno 5] Input/output error")
