# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's installer, on a machine of fakes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import installer, runfile
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.facts import Reader
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.installer import (
    Installer,
    InstallerError,
)
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver.runfile import Installed
from ansible_collections.baremetal.inference.plugins.modules import nvidia_driver_runfile

RUNNING, NEXT, BARE = "6.1.0-70-amd64", "6.1.0-77-amd64", "6.1.0-79-amd64"
VERSION = "580.7.01"
HELP = "  -z, --no-nouveau-check\n      Text.\n\n  --rebuild-initramfs, --no-rebuild-initramfs\n"


class Machine:
    """A machine with a fake installer, which builds for the running kernel and leaves the files of the real one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.modules: dict[tuple[str, str], str] = {}
        """The state of each version and kernel in DKMS."""
        self.commands: list[str] = []
        self.code = 0
        self.log = "ERROR: The build broke.\n"
        self.forgets = False
        """Whether the uninstaller leaves its driver in DKMS."""
        self.flavor = "open"
        for release in (RUNNING, NEXT, BARE):
            (root / f"lib/modules/{release}/build").mkdir(parents=True)
            (root / "boot").mkdir(exist_ok=True)
            (root / f"boot/vmlinuz-{release}").touch()
            if release != BARE:
                (root / f"lib/modules/{release}/build/Makefile").touch()
        for directory in ("usr/bin", "var/log", "var/lib/nvidia", "srv"):
            (root / directory).mkdir(parents=True)
        self.file = root / "srv/NVIDIA-Linux-x86_64.run"
        self.write(VERSION)

    def write(self, version: str) -> None:
        self.file.write_text(f'#!/bin/sh\ntargetdir="NVIDIA-Linux-x86_64-{version}"\n', encoding="utf-8")

    @property
    def host(self) -> Installer:
        return Installer(Reader(self.root, self, 7), 77)

    def apply(self, state: str = "present", check_mode: bool = False, **more: Any) -> dict[str, Any]:
        digest = hashlib.sha256(self.file.read_bytes()).hexdigest()
        params = {
            "state": state,
            "path": str(self.file),
            "checksum": f"sha256:{digest}",
            "version": VERSION,
            "flavor": "open",
            "arguments": ["--silent", "--dkms"],
            "options": ["--no-nouveau-check", "--no-rebuild-initramfs", "--skip-module-load"],
            "kernels": [],
            **more,
        }
        return nvidia_driver_runfile.apply(params, self.host, check_mode, RUNNING, "x86_64")

    def put(self, version: str) -> None:
        """Make the traces of a driver that the installer has installed."""
        (self.root / runfile.UNINSTALLERS[0]).touch()
        (self.root / runfile.BACKUP_LOG).write_text(f"{version}\nNVIDIA driver\n", encoding="utf-8")
        self.modules[version, RUNNING] = "installed"

    def __call__(self, command: Sequence[str], timeout: float) -> Outcome:
        if command[:2] == ["dkms", "status"] or tuple(command[:2]) == ("dkms", "status"):
            lines = [f"nvidia/{one}, {kernel}, x86_64: {state}\n" for (one, kernel), state in self.modules.items()]
            return Outcome(0, "".join(lines))
        if command[0] == "modinfo":
            there = next((one for one, kernel in self.modules if kernel == command[2]), None)
            license_text = "Dual MIT/GPL" if self.flavor == "open" else "NVIDIA"
            return Outcome(0, f"version: {there}\nlicense: {license_text}\n") if there else Outcome(1)
        words = " ".join(command).replace(str(self.root), "")
        self.commands.append(words)
        if words.endswith("--advanced-options"):
            return Outcome(0, HELP)
        if "nvidia-uninstall" in words:
            return self.uninstaller()
        if command[0] == "dkms":
            version = command[2].partition("/")[2]
            if command[1] == "remove":
                self.modules = {key: state for key, state in self.modules.items() if key[0] != version}
            else:
                self.modules[version, command[4]] = "installed"
            return Outcome(0)
        if command[0] == "systemctl":
            return Outcome(5)
        return self.installer()

    def uninstaller(self) -> Outcome:
        if self.code:
            (self.root / runfile.LOGS[1]).write_text(self.log, encoding="utf-8")
            return Outcome(self.code)
        (self.root / runfile.UNINSTALLERS[0]).unlink()
        (self.root / runfile.BACKUP_LOG).unlink()
        self.modules = self.modules if self.forgets else {}
        return Outcome(0)

    def installer(self) -> Outcome:
        if self.code:
            (self.root / runfile.LOGS[0]).write_text(self.log, encoding="utf-8")
            return Outcome(self.code, stderr="ERROR: see the log")
        self.put(VERSION)
        return Outcome(0)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_fresh_machine_gets_the_driver(machine: Machine) -> None:
    result = machine.apply()
    assert result == {"changed": True, "before": None, "kernels": [NEXT]}
    run = "env TMPDIR=/srv sh /srv/NVIDIA-Linux-x86_64.run --silent --dkms --no-nouveau-check --no-rebuild-initramfs"
    assert run in machine.commands
    assert machine.apply() == {
        "changed": False,
        "before": {"version": VERSION, "flavor": "open", "registered": True},
        "kernels": [],
    }


def test_check_mode_runs_nothing(machine: Machine) -> None:
    machine.file.unlink()
    params = {"checksum": "sha256:0", "path": "/srv/to-come"}
    host = machine.host
    wish = {"state": "present", "version": VERSION, "flavor": "open", **params}
    assert nvidia_driver_runfile.apply(wish, host, True, RUNNING, "x86_64") == {"changed": True, "before": None}
    assert machine.commands == []


@pytest.mark.parametrize("flavor", ["open", "proprietary"])
def test_another_version_or_flavour_is_uninstalled_first(machine: Machine, flavor: str) -> None:
    machine.put("570.7.01" if flavor == "open" else VERSION)
    machine.flavor = "open"
    machine.apply(flavor=flavor)
    assert "systemctl stop nvidia-persistenced.service" in machine.commands
    uninstall = next(number for number, words in enumerate(machine.commands) if "nvidia-uninstall" in words)
    install = next(number for number, words in enumerate(machine.commands) if "--dkms" in words)
    assert uninstall < install
    assert {version for version, _kernel in machine.modules} == {VERSION}


def test_the_old_driver_stays_if_the_file_is_wrong(machine: Machine) -> None:
    machine.put("570.7.01")
    machine.write("580.9.01")
    with pytest.raises(InstallerError, match=r"installs the driver 580\.9\.01, not 580\.7\.01"):
        machine.apply()
    assert machine.commands == []


def test_all_differences_of_a_file_are_found_at_once(machine: Machine) -> None:
    found = installer.check(machine.file)
    assert installer.problems(machine.file, found, f"SHA256:{found.sha256}".lower(), VERSION, "x86_64") == []
    problems = " ".join(installer.problems(machine.file, found, f"sha256:{'0' * 64}", "580.9", "aarch64"))
    for words in (f"has the checksum sha256:{found.sha256}", "not 580.9", "for x86_64, but this machine is aarch64"):
        assert words in problems
    assert found.size == machine.file.stat().st_size


def test_a_large_file_is_read_to_its_end(machine: Machine) -> None:
    data = machine.file.read_bytes() + os.urandom(3 << 20)
    machine.file.write_bytes(data)
    assert installer.check(machine.file).sha256 == hashlib.sha256(data).hexdigest()


def test_a_failure_quotes_the_log_of_this_run(machine: Machine) -> None:
    old = machine.root / runfile.LOGS[1]
    old.write_text("ERROR: of another day\n", encoding="utf-8")
    os.utime(old, (0, 0))
    machine.code = 1
    with pytest.raises(InstallerError) as error:
        machine.apply()
    assert "/var/log/nvidia-installer.log says:\nERROR: The build broke." in str(error.value)
    assert "another day" not in str(error.value)


def test_a_success_without_a_driver_is_an_error(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "installer", lambda: Outcome(0))
    with pytest.raises(InstallerError, match="reports success, but has installed no driver"):
        machine.apply()


def test_an_uninstall_also_removes_the_driver_from_dkms(machine: Machine) -> None:
    machine.put(VERSION)
    machine.modules[VERSION, NEXT] = "installed"
    machine.forgets = True
    assert machine.apply("absent")["changed"] is True
    assert machine.modules == {}
    assert machine.apply("absent") == {"changed": False, "before": None}


def test_the_error_of_the_uninstaller_quotes_its_log(machine: Machine) -> None:
    machine.put(VERSION)
    machine.code = 1
    with pytest.raises(InstallerError, match=r"did not remove the driver \(exit status 1\)(.|\n)*The build broke"):
        machine.apply("absent")


def test_without_a_record_the_library_shows_the_version(machine: Machine) -> None:
    machine.put(VERSION)
    (machine.root / runfile.BACKUP_LOG).unlink()
    library = machine.root / f"usr/lib/x86_64-linux-gnu/libnvidia-ml.so.{VERSION}"
    library.parent.mkdir(parents=True)
    library.touch()
    assert machine.host.installed(RUNNING) == Installed(VERSION, "open", registered=True)
    library.unlink()
    assert machine.host.installed(RUNNING) == Installed(None, None, registered=False)
