# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs and driver, judged by what the tools print: own samples, and recordings replayed through the same code."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Settings, render
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.drains import format_time
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import xid_actions
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor import check, driver, gpus
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.check import FAIL, OK, UNKNOWN, WARN
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.host import Host
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery import state
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored import StoredModel

DATA = Path(__file__).parents[2] / "hardware/gpu/data"

GPU = {"vendor": "0x10de", "device": "0x2330", "class": "0x030200"}


class Machine:
    """A root with GPUs on its bus, whose tools answer from a table; what is not in it is not installed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.answers: dict[str, Outcome] = {}

    def plug(self, address: str) -> None:
        for name, text in GPU.items():
            self.write(f"sys/bus/pci/devices/{address}/{name}", text)

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def run(self, command: Sequence[str], _timeout: float) -> Outcome:
        missing = Outcome(None, failure="not_installed", message=f"{command[0]} is not installed")
        return self.answers.get(" ".join(command), missing)

    def says(self, text: str) -> None:
        self.answers["nvidia-smi -q -x"] = Outcome(0, text)

    def look(self) -> dict[str, check.Result]:
        found = check.run([*gpus.CHECKS, *driver.CHECKS], Host(Paths(self.root), self.run))
        return {result.name: result for result in found}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_sick_node_is_told_in_full(machine: Machine) -> None:
    """Two synthetic GPUs: one hot with a pending remap and half of its lanes, the other asks for a reset."""
    for address in ("0000:1b:00.0", "0000:9d:00.0"):
        machine.plug(address)
    machine.says((DATA / "report-580.xml").read_text())
    machine.write("var/log/kern.log", (DATA / "kern.log").read_text())
    found = machine.look()
    assert found["gpu-count"].status == OK
    assert found["gpu-state"].status == FAIL and "0000:9d:00.0" in found["gpu-state"].message
    assert found["gpu-memory"].status == FAIL and "waits to be remapped" in found["gpu-memory"].message
    assert found["gpu-throttle"].status == WARN and "too hot" in found["gpu-throttle"].message
    assert found["gpu-pcie"].status == WARN and "8 of 16" in found["gpu-pcie"].message
    assert found["gpu-fabric"].status == OK
    # XID 79 of this boot; 13, of the boot before, and 31, of an application, are none of the node's.
    assert found["gpu-xids"].status == FAIL and "XID 79" in found["gpu-xids"].message
    assert "XID 13" not in found["gpu-xids"].message
    assert all(found[name].action for name in ("gpu-state", "gpu-memory", "gpu-xids"))


def test_a_node_without_gpus_is_fine(machine: Machine) -> None:
    found = machine.look()
    assert {result.status for result in found.values()} == {OK}


def test_a_tool_that_hangs_condemns_nobody(machine: Machine) -> None:
    machine.plug("0000:1b:00.0")
    machine.write("sys/module/nvidia/version", "580.95.05\n")
    hangs = Outcome(None, failure="timeout", message="nvidia-smi did not end within 15 s")
    machine.answers["nvidia-smi -q -x"] = hangs
    found = machine.look()
    assert found["driver-loaded"].status == UNKNOWN
    assert found["gpu-count"].status == UNKNOWN and "did not end" in found["gpu-count"].message
    assert found["gpu-state"].status == UNKNOWN


def test_a_gpu_that_the_driver_lacks_fails(machine: Machine) -> None:
    machine.plug("0000:1b:00.0")
    found = machine.look()
    assert found["driver-loaded"].status == FAIL
    assert found["driver-nodes"].status == FAIL and "nvidia-uvm" in found["driver-nodes"].message


def test_a_library_of_another_version_fails(machine: Machine) -> None:
    machine.plug("0000:1b:00.0")
    machine.write("sys/module/nvidia/version", "580.95.05\n")
    machine.write("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.105.08", "")
    found = machine.look()
    assert found["driver-package"].status == FAIL and "580.105.08" in found["driver-package"].message


def test_a_kernel_without_the_module_warns_before_its_boot(machine: Machine) -> None:
    machine.plug("0000:1b:00.0")
    for release in ("6.1.0-40-amd64", "6.1.0-41-amd64"):
        machine.write(f"boot/vmlinuz-{release}", "")
        machine.write(f"lib/modules/{release}/build/Makefile", "")
    machine.answers["dkms status"] = Outcome(0, "nvidia/580.95.05, 6.1.0-40-amd64, x86_64: installed\n")
    found = machine.look()
    assert found["driver-kernels"].status == WARN and "6.1.0-41-amd64" in found["driver-kernels"].message


def test_xids_from_before_the_driver_was_loaded_again_are_settled(machine: Machine) -> None:
    machine.plug("0000:1b:00.0")
    machine.write(
        "var/log/kern.log",
        "[  10.0] NVRM: Xid (PCI:0000:1b:00): 95, pid=1, uncontained\n"
        "[  90.0] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n"
        "[  95.0] NVRM: Xid (PCI:0000:1b:00): 43, pid=2, reset channel\n",
    )
    found = machine.look()["gpu-xids"]
    assert found.status == OK and "1 of applications" in found.message


def test_xids_from_before_the_recovery_reset_the_gpu_are_settled(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for address in ("0000:1b:00.0", "0000:9d:00.0"):
        machine.plug(address)
    machine.says((DATA / "report-580.xml").read_text())
    machine.write("var/log/kern.log", "[  95.0] NVRM: Xid (PCI:0000:9d:00): 95, pid=1, uncontained\n")
    instance = Instance(name="main", model="tiny-a", port=5005, accelerator="nvidia", gpus=("1",))
    release = render(instance, [], StoredModel("/models/tiny-a", "r"), "image", Settings(), number=1).release
    host = Host(Paths(machine.root), machine.run)
    monkeypatch.setattr(host, "releases", lambda: {"main": release})
    monkeypatch.setattr(time, "clock_gettime", lambda _clock: 200.0)

    def told(ago: float) -> str:
        then = format_time(datetime.now(UTC) - timedelta(seconds=ago))
        state.write(host.paths, state.State("main", gpus_reset=then))
        return gpus.xids(host).status

    assert told(150) == FAIL
    assert told(50) == OK
    # Of another GPU it says nothing.
    machine.write("var/log/kern.log", "[  95.0] NVRM: Xid (PCI:0000:1b:00): 95, pid=1, uncontained\n")
    host = Host(Paths(machine.root), machine.run)
    monkeypatch.setattr(host, "releases", lambda: {"main": release})
    assert told(50) == FAIL


def test_a_burst_is_told_by_the_worst_of_it(machine: Machine) -> None:
    """One fault of NVLink on Blackwell: many numbers, of which XID 154 says what is wanted."""
    machine.plug("0000:1b:00.0")
    machine.write(
        "var/log/kern.log",
        "[  95.0] NVRM: Xid (PCI:0000:1b:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000)\n"
        "[  95.0] NVRM: Xid (PCI:0000:1b:00): 145, RLW_REMAP Nonfatal XC0 i0 Link -1 (0x00000004 0x80000000)\n"
        "[  95.1] NVRM: Xid (PCI:0000:1b:00): 45, pid=2, name=python3, channel 0x00000002\n"
        "[95.2] NVRM: Xid (PCI:0000:1b:00): 154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)",
    )
    found = machine.look()["gpu-xids"]
    assert found.status == FAIL and found.message.startswith("XID 154") and "(reset)" in found.message
    assert "XID 149" in found.message and "XID 145" in found.message and "XID 45" not in found.message


@pytest.mark.parametrize(
    ("words", "action"),
    [("Reset", "reset"), ("Reboot", "reboot"), ("Drain P2P", "watch"), ("Drain and Reset", "reset"), ("None", "none"),
     ("N/A", "none"), ("Pray", "watch")],
)  # fmt: skip
def test_what_a_gpu_asks_for_in_its_own_words(words: str, action: str) -> None:
    assert xid_actions.wanted(words) == action


@pytest.mark.parametrize(
    ("number", "text", "action"),
    [
        (79, "", xid_actions.REBOOT),
        (95, "", xid_actions.RESET),
        (31, "", xid_actions.APPLICATION),
        (999, "", xid_actions.WATCH),
        (154, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", xid_actions.RESET),
        (154, "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)", xid_actions.REBOOT),
        (154, "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", xid_actions.NONE),
    ],
)
def test_the_table_of_xids(number: int, text: str, action: str) -> None:
    assert xid_actions.meaning(number, text).action == action


CATALOGUE = {
    "RESTART_APP": "8 11 13 25 31 32 39 40 41 60 68 69 70 71 72 75 76 77 80 82 83 84 85 86 88 89 94 96 97 98 99 100 101"
    " 102 103 104 105 126 127 128 129 130 131 132 133 134 135 139",
    "RESET_GPU": "46 62 64 95 109 110 119 120 136 140 143 155 156 158",
    "RESTART_BM RESTART_VM": "79 151",
    "CHECK_MECHANICALS": "54",
    "IGNORE": "37 38 43 44 63 66 67 92 93 106 107 121 137 141 152 153 157 160 161",
    "WORKFLOW": "45 48 74 144 145 146 147 148 149 150 159",
    "CONTACT_SUPPORT": "1 2 12 33 47 56 57 58 59 61 65 73 81 87 90 91 111 118 122 138 142",
}
"""Immediate actions of NVIDIA's catalogue as of 2025-10-29."""


@pytest.mark.parametrize(
    ("immediate", "actions"),
    [
        ("RESTART_APP", {xid_actions.APPLICATION}),
        ("RESET_GPU", {xid_actions.RESET}),
        ("RESTART_BM RESTART_VM", {xid_actions.REBOOT}),
        ("CHECK_MECHANICALS", {xid_actions.REPLACE}),
        # Never an act.
        ("IGNORE", {xid_actions.NONE, xid_actions.APPLICATION, xid_actions.WATCH}),
        ("WORKFLOW", {xid_actions.NONE, xid_actions.WATCH, xid_actions.RESET}),
        ("CONTACT_SUPPORT", {xid_actions.WATCH}),
    ],
)
def test_the_table_says_what_the_catalogue_says(immediate: str, actions: set[str]) -> None:
    numbers = [int(number) for number in CATALOGUE[immediate].split()]
    assert {number: found for number in numbers if (found := xid_actions.meaning(number).action) not in actions} == {}


def test_every_action_of_the_table_is_known() -> None:
    assert {action for action, _words in xid_actions.MEANINGS.values()} <= set(xid_actions.ORDER)


@pytest.mark.recordings("nvidia_smi_xml")
def test_reports_of_real_machines_are_judged(recording: Any, machine: Machine) -> None:
    machine.says(recording.text())
    found = machine.look()
    for name in ("gpu-state", "gpu-memory", "gpu-throttle", "gpu-pcie", "gpu-fabric"):
        assert "broken" not in found[name].message, found[name]
    gpus_told = recording.expected.get("gpus") or []
    pending = any(gpu.get("remapped_pending") is True for gpu in gpus_told)
    assert ("waits to be remapped" in found["gpu-memory"].message) >= pending
    wrong = [gpu for gpu in gpus_told if gpu.get("fabric_state") not in (None, "N/A", "Completed")]
    assert (found["gpu-fabric"].status == FAIL) == bool(wrong)


@pytest.mark.recordings("kernel_xid")
def test_kernel_logs_of_real_machines_are_judged(recording: Any, machine: Machine) -> None:
    machine.plug("0000:1b:00.0")
    machine.write("var/log/kern.log", recording.text())
    found = machine.look()["gpu-xids"]
    assert "broken" not in found.message
    condemned = {
        int(number)
        for number in recording.expected["by_xid"]
        if xid_actions.meaning(int(number)).action in (xid_actions.RESET, xid_actions.REBOOT, xid_actions.REPLACE)
    }
    for number in condemned:
        assert f"XID {number} " in found.message
    if condemned or recording.expected["fallen_off_bus"] or recording.expected["rm_init_failed"]:
        assert found.status == FAIL


@pytest.mark.recordings("errors")
def test_a_tool_that_fails_is_told_in_its_own_words(recording: Any, machine: Machine) -> None:
    machine.plug("0000:1b:00.0")
    machine.write("sys/module/nvidia/version", "580.95.05\n")
    machine.answers["nvidia-smi -q -x"] = Outcome(9, recording.text())
    found = machine.look()
    assert not [result for result in found.values() if "broken" in result.message]
    assert FAIL in {found["driver-loaded"].status, found["gpu-count"].status} or found["gpu-count"].status == UNKNOWN
