# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module nvidia_driver_runfile: the order of its steps, what it refuses, and what it returns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import installer
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.runfile import Installed
from ansible_collections.baremetal.inference.plugins.modules import nvidia_driver_runfile

from .conftest import RunModule


def test_the_installers_result_is_documented() -> None:
    documented = yaml.safe_load(nvidia_driver_runfile.RETURN)
    assert set(documented["file"]["contains"]) == set(vars(installer.Checked("", None, None, 0)))
    assert set(documented["before"]["contains"]) == set(vars(Installed(None, None, registered=False)))


OLD = Installed("570.1", "open", registered=True)
NEW = Installed("580.7.01", "open", registered=True)
WANTED: dict[str, Any] = {"path": "/x.run", "checksum": "sha256:1", "version": "580.7.01", "flavor": "open"}


class Host:
    """A node with a driver of NVIDIA's installer, or none, and the steps of the module on this node."""

    def __init__(self, found: Installed | None) -> None:
        self.found = found
        self.leaves: Installed | None = NEW
        self.lacking = ["6.1.0-77-amd64"]
        self.done: list[str] = []
        self.problems: list[str] = []

    def __call__(self, _reader: object, _timeout: float) -> Host:
        return self

    def installed(self, _running: str) -> Installed | None:
        return self.found

    def uninstall(self) -> None:
        self.done.append("uninstall")
        self.found = None

    def install(self, _path: Path, _arguments: list[str], _options: list[str]) -> None:
        self.done.append("install")
        self.found = self.leaves

    def waiting(self, _version: str, _kernels: list[str]) -> list[str]:
        return self.lacking

    def build(self, _version: str, _kernels: list[str]) -> list[str]:
        self.done.append("build")
        lacking, self.lacking = self.lacking, []
        return lacking

    def check(self, _path: Path) -> installer.Checked:
        self.done.append("check")
        return installer.Checked("1", "580.7.01", "x86_64", 7)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    found = Host(OLD)
    monkeypatch.setattr(nvidia_driver_runfile.installer, "Installer", found)
    monkeypatch.setattr(nvidia_driver_runfile.installer, "check", found.check)
    monkeypatch.setattr(nvidia_driver_runfile.installer, "problems", lambda *_given: found.problems)
    return found


def test_check_mode_predicts_the_changes_and_the_second_run_changes_nothing(host: Host, run_module: RunModule) -> None:
    assert run_module(nvidia_driver_runfile, check=True, **WANTED)["changed"] and host.done == []
    found = run_module(nvidia_driver_runfile, **WANTED)
    assert (found["changed"], found["kernels"]) == (True, ["6.1.0-77-amd64"])
    assert found["before"] == {"version": "570.1", "flavor": "open", "registered": True}
    assert host.done == ["check", "uninstall", "install", "build"]
    again = run_module(nvidia_driver_runfile, **WANTED)
    assert (again["changed"], host.done[4:]) == (False, ["build"])


def test_a_new_kernel_gets_the_kernel_module(host: Host, run_module: RunModule) -> None:
    host.found = NEW
    assert run_module(nvidia_driver_runfile, check=True, **WANTED)["changed"] and host.done == []
    assert run_module(nvidia_driver_runfile, **WANTED)["changed"] and host.done == ["build"]
    assert run_module(nvidia_driver_runfile, check=True, **WANTED)["changed"] is False


def test_a_bad_file_leaves_the_old_driver(host: Host, run_module: RunModule) -> None:
    host.problems = ["its checksum is another one", "it is for aarch64"]
    for state in ("present", "verified"):
        found = run_module(nvidia_driver_runfile, state=state, **WANTED)
        assert found["msg"] == "its checksum is another one; it is for aarch64"
    assert set(host.done) == {"check"}


def test_an_installer_that_leaves_no_driver_is_an_error(host: Host, run_module: RunModule) -> None:
    host.leaves = None
    assert "has installed no driver instead of 580.7.01" in run_module(nvidia_driver_runfile, **WANTED)["msg"]


def test_the_state_absent_removes_the_driver_once(host: Host, run_module: RunModule) -> None:
    assert run_module(nvidia_driver_runfile, check=True, state="absent")["changed"] and host.done == []
    assert run_module(nvidia_driver_runfile, state="absent")["changed"] and host.done == ["uninstall"]
    host.done.clear()
    assert run_module(nvidia_driver_runfile, state="absent")["changed"] is False


def test_a_verified_file_is_reported(host: Host, run_module: RunModule) -> None:
    found = run_module(nvidia_driver_runfile, state="verified", **WANTED)
    assert (found["changed"], found["file"]["version"]) == (False, "580.7.01")
