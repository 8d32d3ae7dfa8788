# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A complete driver gives the role no reason for work, and each difference gives one reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.debian import apt_pins
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.driver import comparison, cuda

KERNEL = "6.1.0-70-amd64"
MODULE = {
    "name": "nvidia",
    "version": "580.95.05",
    "kernel": KERNEL,
    "arch": "x86_64",
    "state": "installed",
    "notes": [],
}
FACTS: dict[str, Any] = {
    "difference": None,
    "secure_boot": {"serial": None, "enabled": False, "key": None, "problem": None},
    "kernels": [{"release": KERNEL, "headers": True, "ready": True, "outdated_initrd": False, "signature": None}],
    "dkms": [MODULE],
}
PLAN: dict[str, Any] = {
    "uninstall_runfile": False,
    "install_runfile": False,
    "remove_first": [],
    "sign": False,
    "flavor": "open",
    "install": ["dkms", "libcuda1=580.95.05-*"],
    "optional": ["nvidia-driver-pinning-580.95.05"],
    "remove": ["nvidia-kernel-dkms"],
    "modules": ["nvidia", "nvidia-uvm"],
}
PINS = [
    {"name": "nvidia-driver", "packages": ["libcuda1", "nvidia-*"], "pinned": ["libcuda1"], "version": "580.95.05-*"}
]
UNITS = ["inference-nvidia-devices.service", "nvidia-persistenced.service"]
AT_BOOT = "inference-gpu-settings.service"


class Machine:
    """A machine with a complete driver and eight GPUs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.active = {**dict.fromkeys(UNITS, "active"), AT_BOOT: "inactive"}
        self.enabled = dict.fromkeys(self.active, "enabled")
        self.packages = {"dkms": "3.0", "libcuda1": "580.95.05-1"}
        self.offered: list[str] = []
        self.held = {"libcuda1"}
        self.cuda = cuda.Check(True, 0, "CUDA_SUCCESS", 8)
        self.asked = 0
        self.driver = FACTS
        self.waits = ""
        self.unregistered = False

    def command(self, words: list[str], **options: Any) -> tuple[int, str, str]:
        """Replaces the module's run_command."""
        if words[0] == "apt-cache":
            said = [f"{name}:\n  Installed: (none)\n  Candidate: 1\n" for name in words[2:] if name in self.offered]
            return 0, "".join(said), ""
        version = " ${Version}" in words[2]
        lines = [
            " ".join(["hold" if name in self.held else "install", "installed", name, *([number] if version else [])])
            for name, number in self.packages.items()
            if len(words) == 3 or name in words[3:]
        ]
        return 1, "".join(f"{line}\n" for line in lines), ""

    def check_cuda(self, library: str, timeout: float) -> cuda.Check:
        self.asked += 1
        return self.cuda

    def gather(self, *arguments: Any) -> dict[str, Any]:
        state = "In Progress" if self.unregistered else "Completed"
        return {"gpus": [{"pci_bus_id": "0000:1b:00.0", "uuid": None, "fabric": {"state": state, "status": "Success"}}]}

    def show(self, units: list[str], properties: list[str]) -> dict[str, dict[str, str]]:
        states = {"ActiveState": self.active, "UnitFileState": self.enabled}
        return {unit: {name: states[name][unit] for name in properties} for unit in units}

    def module(self, name: str) -> Path:
        """The directory of a loaded module."""
        return self.root / "sys/module" / name

    def reasons(
        self, devices: int | None = 8, version: str = "", kernels: Sequence[str] = (), **wanted: bool
    ) -> list[str]:
        """The reasons that the comparison finds."""
        given: dict[str, Any] = {
            "decision": {"plan": PLAN},
            "driver": self.driver,
            "own_key": False,
            "pins": PINS,
            "files": [{"path": "/etc/ours", "text": "ours\n"}],
            "units": UNITS,
            "boot_units": [AT_BOOT],
            "load": True,
            "ask_cuda": True,
            "fabric": False,
            **wanted,
        }
        asked = (given, version, list(kernels), devices, self.command, 5.0)
        compared = comparison.Comparison(*asked, root=self.root)
        self.waits = compared.reboot_reason()
        return compared.reasons()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    found = Machine(tmp_path)
    monkeypatch.setattr(systemd, "show", found.show)
    monkeypatch.setattr(cuda, "check", found.check_cuda)
    monkeypatch.setattr(comparison.gpu_facts, "gather", found.gather)
    monkeypatch.setattr(apt_pins, "ETC_APT", tmp_path / "apt")
    monkeypatch.setattr(apt_pins, "PREFERENCES", tmp_path / "apt/preferences.d")
    for path, text in apt_pins.Pins(found.command, {**PINS[0], "versions": {}}, check=True).texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name in ("nvidia", "nvidia_uvm"):
        found.module(name).mkdir(parents=True)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/ours").write_text("ours\n")
    (tmp_path / "etc/ours").chmod(0o644)
    return found


def test_packages_that_dpkg_query_cannot_read_are_an_error(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        machine, "command", lambda words, **options: (2, "", "dpkg-query: error: the status is damaged\n")
    )
    with pytest.raises(OSError, match=r"`dpkg-query --show dkms .*` failed \(2\): .* the status is damaged$"):
        machine.reasons()


def test_a_complete_driver_does_not_make_the_role_due(machine: Machine) -> None:
    assert machine.reasons() == []
    assert machine.asked == 1, "CUDA is asked on each run"
    assert machine.waits == ""


def unload(machine: Machine) -> None:
    machine.module("nvidia_uvm").rmdir()


def stop(machine: Machine) -> None:
    machine.active[UNITS[1]] = "inactive"


def disable(machine: Machine) -> None:
    machine.enabled[UNITS[0]] = "disabled"


def disable_at_boot(machine: Machine) -> None:
    machine.enabled[AT_BOOT] = "disabled"


def edit(machine: Machine) -> None:
    (machine.root / "etc/ours").write_text("others\n")


def unhold(machine: Machine) -> None:
    machine.held.clear()


def unpin(machine: Machine) -> None:
    (machine.root / "apt/preferences.d/52-nvidia-driver").unlink()


def upgrade(machine: Machine) -> None:
    machine.packages["libcuda1"] = "590.1-1"


def uninstall(machine: Machine) -> None:
    del machine.packages["dkms"]


def install(machine: Machine) -> None:
    machine.packages["nvidia-kernel-dkms"] = "1"
    machine.held.add("nvidia-kernel-dkms")


def offer(machine: Machine) -> None:
    machine.offered = PLAN["optional"]


def own_key(machine: Machine) -> None:
    path = machine.root / "etc/dkms/inference-mok.key"
    path.parent.mkdir()
    path.touch()


def lose_gpu(machine: Machine) -> None:
    machine.cuda = cuda.Check(True, 0, "CUDA_SUCCESS", 7)


def break_cuda(machine: Machine) -> None:
    machine.cuda = cuda.Check(False, 999, message="CUDA says no")


HARMS = [
    unload,
    stop,
    disable,
    disable_at_boot,
    edit,
    unhold,
    unpin,
    upgrade,
    uninstall,
    install,
    offer,
    own_key,
]


@pytest.mark.parametrize("harm", [*HARMS, lose_gpu, break_cuda])
def test_each_difference_makes_the_role_due(machine: Machine, harm: Callable[[Machine], None]) -> None:
    harm(machine)
    assert len(machine.reasons()) == 1


@pytest.mark.parametrize("harm", HARMS)
def test_cuda_is_not_tried_if_something_else_differs(machine: Machine, harm: Callable[[Machine], None]) -> None:
    """CUDA may load a module that nothing would load at the next boot."""
    harm(machine)
    machine.reasons()
    assert machine.asked == 0


def nouveau(machine: Machine) -> None:
    machine.module("nouveau").mkdir()


def refuse_the_key(machine: Machine) -> None:
    firmware = {"serial": "0A7F", "enabled": True, "key": "pending", "problem": "the key waits to be enrolled"}
    machine.driver = {**FACTS, "secure_boot": firmware}


def load_an_older_one(machine: Machine) -> None:
    machine.driver = {**FACTS, "difference": "the loaded module is 575.1, the installed one 580.95.05"}


@pytest.mark.parametrize(
    ("wait", "words"),
    [
        (nouveau, "nouveau, the kernel's own"),
        (refuse_the_key, "waits to be enrolled"),
        (load_an_older_one, "is 575.1"),
    ],
)
def test_before_a_reboot_unloaded_modules_stopped_units_and_cuda_do_not_make_the_role_due(
    machine: Machine, wait: Callable[[Machine], None], words: str
) -> None:
    wait(machine)
    break_cuda(machine)
    unload(machine)
    stop(machine)
    assert machine.reasons() == [] and words in machine.waits
    assert machine.asked == 0, "CUDA cannot work before the reboot"
    assert machine.reasons(load=False, ask_cuda=False) == [] and machine.waits == "", "without GPUs, no reboot is due"


@pytest.mark.parametrize("harm", [harm for harm in HARMS if harm not in (unload, stop)])
def test_a_further_difference_makes_the_role_due_before_the_reboot(
    machine: Machine, harm: Callable[[Machine], None]
) -> None:
    nouveau(machine)
    harm(machine)
    assert len(machine.reasons()) == 1


def test_a_kernel_without_the_module_or_another_version_makes_the_role_due(machine: Machine) -> None:
    assert machine.reasons(kernels=["9.9.1"])
    assert machine.reasons(version="575.1")


def test_without_gpus_unloaded_modules_and_stopped_units_do_not_make_the_role_due(machine: Machine) -> None:
    unload(machine)
    stop(machine)
    assert machine.reasons(load=False, ask_cuda=False) == []
    assert machine.asked == 0


def test_without_an_expected_number_of_gpus_cuda_may_find_any_number(machine: Machine) -> None:
    lose_gpu(machine)
    assert machine.reasons() == ["CUDA finds 7 GPUs of 8"]
    assert machine.reasons(devices=None) == []
    break_cuda(machine)
    assert machine.reasons(devices=None) == ["CUDA says no"]


def test_a_gpu_that_is_not_registered_with_the_fabric_makes_the_role_due(machine: Machine) -> None:
    assert machine.reasons(fabric=True) == []
    machine.unregistered = True
    assert machine.reasons() == []
    assert "not every GPU is registered" in machine.reasons(fabric=True)[0]
