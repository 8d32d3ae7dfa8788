# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module node_recovery: what it installs, refuses and removes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import (
    RECOVERY_DISPATCH,
    RECOVERY_PATH,
    RECOVERY_TEMPLATE,
    Paths,
    recovery_unit,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.units import recovery_units
from ansible_collections.baremetal.inference.plugins.module_utils.node.calls import node_recovery

Call = Callable[..., dict[str, Any]]


class Systemd:
    """A fake systemd in which all units have the state of the path unit."""

    def __init__(self) -> None:
        self.unit = {"ActiveState": "inactive", "UnitFileState": ""}
        self.calls: list[str] = []

    def show(self, units: Iterable[str], properties: Iterable[str]) -> dict[str, dict[str, str]]:
        return {name: {key: self.unit.get(key, "") for key in properties} for name in units}

    def systemctl(self, *arguments: str) -> str:
        self.calls.append(" ".join(arguments))
        if arguments[0] == "enable":
            self.unit = {"ActiveState": "active", "UnitFileState": "enabled"}
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
    paths.command.parent.mkdir(parents=True)
    paths.command.write_text("")
    return paths


@pytest.fixture
def call(paths: Paths, monkeypatch: pytest.MonkeyPatch, run_module: Call) -> Call:
    def run(module: ModuleType, check: bool = False, **arguments: Any) -> dict[str, Any]:
        monkeypatch.setattr(module, "Paths", lambda: paths)
        return run_module(module, check, **arguments)

    return run


def test_recovery_is_installed_once_and_removed(call: Call, fake: Systemd, paths: Paths) -> None:
    predicted = call(node_recovery, check=True, budget=5, webhook="https://example.org/secret")
    assert predicted["changed"] is predicted["due"] is True and fake.calls == [] and not paths.etc.exists()
    done = call(node_recovery, budget=5, webhook="https://example.org/secret")
    assert done["files"] == predicted["files"] and len(done["files"]) == 5
    assert fake.calls == ["daemon-reload", f"enable --now {RECOVERY_PATH}"]
    assert paths.recovery_settings.stat().st_mode & 0o777 == 0o600
    assert json.loads(paths.recovery_settings.read_text())["budget"] == 5
    assert "secret" not in json.dumps(done)
    assert call(node_recovery, budget=5, webhook="https://example.org/secret")["changed"] is False
    fake.unit["ActiveState"] = "inactive"
    assert call(node_recovery, check=True, budget=5, webhook="https://example.org/secret")["due"] is True
    fake.unit["ActiveState"] = "active"
    assert call(node_recovery, check=True, budget=5, webhook="https://example.org/secret")["due"] is False
    # A change of the settings alone needs no call of systemd.
    fake.calls.clear()
    assert call(node_recovery, budget=4)["changed"] is True
    assert fake.calls == []
    assert call(node_recovery, state="absent", check=True)["changed"] is True
    assert call(node_recovery, state="absent")["changed"] is True
    stopped = [f"{verb} {unit}" for unit in (RECOVERY_PATH, RECOVERY_DISPATCH) for verb in ("stop", "disable")]
    assert fake.calls == [*stopped, "daemon-reload"]
    assert not any(path.exists() for path in paths.recovery_units.values()) and not paths.doctor_settings.exists()
    assert not paths.recovery_settings.exists()
    fake.unit = {"ActiveState": "inactive", "UnitFileState": ""}
    assert call(node_recovery, state="absent")["changed"] is False


def test_all_mistakes_are_in_one_message(call: Call, fake: Systemd, paths: Paths) -> None:
    result = call(node_recovery, budget=-1, doctor_off=["gpu-xid"], webhook="ftp://x", mail_to="a\nb", free_percent=99)
    assert result["failed"] is True
    names = ("budget is -1", "doctor_off", "webhook", "mail_to", "doctor_free_percent is 99")
    for words in ("gpu-xids", *(f"- recovery_{name}" for name in names)):
        assert words in result["msg"], result["msg"]
    assert fake.calls == [] and not paths.etc.exists()


@pytest.mark.parametrize("address", ["https://ops:s3cret@example.org/", "http://example.org:s3cret/", "http://[s3cret"])
def test_an_address_with_a_password_is_refused_and_not_repeated(call: Call, fake: Systemd, address: str) -> None:
    result = call(node_recovery, alertmanager=address)
    assert result["failed"] is True and "alertmanager" in result["msg"] and "s3cret" not in result["msg"]


def test_a_placeholder_is_refused_and_not_repeated(call: Call, fake: Systemd, paths: Paths) -> None:
    result = call(node_recovery, webhook="https://hooks.example.org/change-me", alertmanager="<alertmanager>")
    assert "recovery_webhook is a placeholder" in result["msg"] and "alertmanager" in result["msg"]
    assert "change-me" not in result["msg"] and not paths.etc.exists()


def test_without_the_node_tool_recovery_is_not_installed(call: Call, fake: Systemd, paths: Paths) -> None:
    paths.command.unlink()
    assert "baremetal.inference.site" in call(node_recovery)["msg"]
    # Check mode succeeds on a fresh node, which has no node tool yet.
    assert call(node_recovery, check=True)["changed"] is True
    assert fake.calls == []


def test_systemd_accepts_the_units(tmp_path: Path, systemd_analyze: str) -> None:
    assert recovery_unit("main") == "inference-recovery@main.service"
    for name, text in recovery_units.render().items():
        # inferctl is not on this machine. systemd-analyze checks an instance of a template, not the template.
        (tmp_path / name).write_text(text.replace("/usr/local/bin/inferctl", "/bin/true"))
    names = [name.replace("@", "@main") if name == RECOVERY_TEMPLATE else name for name in recovery_units.render()]
    (tmp_path / recovery_unit("main")).symlink_to(tmp_path / RECOVERY_TEMPLATE)
    command = [systemd_analyze, "verify", "--man=no", *(str(tmp_path / name) for name in names)]
    verified = subprocess.run(command, capture_output=True, text=True, check=False)
    complaints = [line for line in verified.stderr.splitlines() if "inference-recovery" in line]
    assert complaints == []
