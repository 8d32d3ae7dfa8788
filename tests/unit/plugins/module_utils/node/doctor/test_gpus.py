# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs and driver, judged by what the tools print: own samples, and recordings replayed through the same code."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Settings, render
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.drains import format_time
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import xid_actions
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor import gpus
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.check import FAIL, OK, UNKNOWN, WARN
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery import state
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored_model import StoredModel

from ..conftest import GPU_DATA
from .conftest import Machine


def test_all_faults_of_a_node_are_reported(machine: Machine) -> None:
    """Two synthetic GPUs: one hot with a pending remap and half of its lanes, the other asks for a reset."""
    for address in ("0000:1b:00.0", "0000:9d:00.0"):
        machine.plug(address)
    machine.says((GPU_DATA / "report-580.xml").read_text())
    machine.write("var/log/kern.log", (GPU_DATA / "kern.log").read_text())
    found = machine.check()
    assert found["gpu-count"].status == OK
    assert found["gpu-state"].status == FAIL and "0000:9d:00.0" in found["gpu-state"].message
    assert found["gpu-memory"].status == FAIL and "waits to be remapped" in found["gpu-memory"].message
    assert found["gpu-throttle"].status == WARN and "too hot" in found["gpu-throttle"].message
    assert found["gpu-pcie"].status == WARN and "8 of 16" in found["gpu-pcie"].message
    assert found["gpu-fabric"].status == OK
    # XID 79 is a fault of this boot. XID 13 is of the boot before, and XID 31 is a fault of an application.
    assert found["gpu-xids"].status == FAIL and "XID 79" in found["gpu-xids"].message
    assert "XID 13" not in found["gpu-xids"].message
    assert all(found[name].action for name in ("gpu-state", "gpu-memory", "gpu-xids"))


def test_a_node_without_gpus_is_fine(machine: Machine) -> None:
    found = machine.check()
    assert {result.status for result in found.values()} == {OK}


def test_gpus_that_an_operator_has_excluded_are_no_fault(machine: Machine) -> None:
    machine.plug("0000:1b:00.0")
    machine.write("proc/driver/nvidia/gpus/0000:1b:00.0/information", "GPU Excluded: Yes\n")
    assert {result.status for result in machine.check().values()} == {OK}
    machine.plug("0000:9d:00.0")
    assert machine.check()["driver-loaded"].status == FAIL


def test_checks_of_a_tool_that_hangs_are_unknown(machine: Machine) -> None:
    machine.plug("0000:1b:00.0")
    machine.write("sys/module/nvidia/version", "580.95.05\n")
    hangs = Outcome(None, failure="timeout", message="nvidia-smi did not end within 15 s")
    machine.answers["nvidia-smi -q -x"] = hangs
    found = machine.check()
    assert found["driver-loaded"].status == UNKNOWN
    assert found["gpu-count"].status == UNKNOWN and "did not end" in found["gpu-count"].message
    assert found["gpu-state"].status == UNKNOWN


def test_xids_from_before_the_driver_was_loaded_again_are_settled(machine: Machine) -> None:
    machine.plug("0000:1b:00.0")
    machine.write(
        "var/log/kern.log",
        "[  10.0] NVRM: Xid (PCI:0000:1b:00): 95, pid=1, uncontained\n"
        "[  90.0] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n"
        "[  95.0] NVRM: Xid (PCI:0000:1b:00): 43, pid=2, reset channel\n",
    )
    found = machine.check()["gpu-xids"]
    assert found.status == OK and "none that matters (1 harmless)" in found.message


def test_xids_from_before_a_reset_of_the_gpu_by_recovery_are_settled(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for address in ("0000:1b:00.0", "0000:9d:00.0"):
        machine.plug(address)
    machine.says((GPU_DATA / "report-580.xml").read_text())
    machine.write("var/log/kern.log", "[  95.0] NVRM: Xid (PCI:0000:9d:00): 95, pid=1, uncontained\n")
    instance = Instance(name="main", model="tiny-a", port=5005, accelerator="nvidia", gpus=("1",))
    release = render(instance, [], StoredModel("/models/tiny-a", "r"), "image", Settings(), number=1).release
    host = machine.host()
    monkeypatch.setattr(host, "releases", lambda: {"main": release})
    monkeypatch.setattr(time, "clock_gettime", lambda _clock: 200.0)

    def status(ago: float) -> str:
        then = format_time(datetime.now(UTC) - timedelta(seconds=ago))
        state.write(host.paths, state.State("main", gpus_reset=then))
        return gpus.xids(host).status

    assert status(150) == FAIL
    assert status(50) == OK
    # The reset does not settle the XIDs of another GPU.
    machine.write("var/log/kern.log", "[  95.0] NVRM: Xid (PCI:0000:1b:00): 95, pid=1, uncontained\n")
    host = machine.host()
    monkeypatch.setattr(host, "releases", lambda: {"main": release})
    assert status(50) == FAIL


def test_a_burst_of_xids_is_reported_from_the_worst(machine: Machine) -> None:
    """One fault of NVLink on Blackwell has many XIDs, and XID 154 names the action."""
    machine.plug("0000:1b:00.0")
    machine.write(
        "var/log/kern.log",
        "[  95.0] NVRM: Xid (PCI:0000:1b:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000)\n"
        "[  95.0] NVRM: Xid (PCI:0000:1b:00): 145, RLW_REMAP Nonfatal XC0 i0 Link -1 (0x00000004 0x80000000)\n"
        "[  95.1] NVRM: Xid (PCI:0000:1b:00): 45, pid=2, name=python3, channel 0x00000002\n"
        "[95.2] NVRM: Xid (PCI:0000:1b:00): 154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)",
    )
    found = machine.check()["gpu-xids"]
    assert found.status == FAIL and found.message.startswith("XID 154") and "(reset)" in found.message
    assert "XID 149" in found.message and "XID 145" in found.message and "XID 45" not in found.message


def silent(text: str) -> str:
    """The report of nvidia-smi without values of throttle reasons and PCIe lanes."""
    text = re.sub(r"(<clocks_(?:event|throttle)_reason_[^>]*>)[^<]*", r"\1N/A", text)
    return re.sub(r"(<(?:max|current)_link_width>)[^<]*", r"\1N/A", text)


def test_unknown_values_make_the_check_unknown(machine: Machine) -> None:
    machine.plug("0000:1b:00.0")
    text = (GPU_DATA / "report-580.xml").read_text()
    machine.says(silent(text[: text.index('<gpu id="00000000:9D')] + "</nvidia_smi_log>"))
    found = machine.check()
    for name in ("gpu-throttle", "gpu-pcie", "gpu-nvlink"):
        assert found[name].status == UNKNOWN and found[name].action, found[name]
        assert found[name].message.endswith(" of GPU 0000:1b:00.0 are unknown"), found[name]


def test_an_unknown_value_of_one_gpu_hides_no_fault_of_another(machine: Machine) -> None:
    for address in ("0000:1b:00.0", "0000:9d:00.0"):
        machine.plug(address)
    first, second = (GPU_DATA / "report-580.xml").read_text().split('<gpu id="00000000:9D', 1)
    machine.says(f'{first}<gpu id="00000000:9D{silent(second)}')
    found = machine.check()
    assert found["gpu-throttle"].status == WARN and found["gpu-pcie"].status == WARN


def test_a_gpu_whose_links_are_all_down_is_reported(machine: Machine) -> None:
    for address in ("0000:1b:00.0", "0000:9d:00.0"):
        machine.plug(address)
    machine.says((GPU_DATA / "report-580.xml").read_text())
    links = (GPU_DATA / "nvlink.txt").read_text()
    machine.answers["nvidia-smi -L"] = Outcome(0, (GPU_DATA / "list.txt").read_text())
    machine.answers["nvidia-smi nvlink -s"] = Outcome(0, links)
    # The second GPU is divided.
    assert machine.check()["gpu-nvlink"].message == "2 links each"
    first = links.splitlines()[:-1]
    down = "NVML: Unable to retrieve NVLink information as all links are inActive"
    machine.answers["nvidia-smi nvlink -s"] = Outcome(0, "\n".join([*first, down]))
    found = machine.check()["gpu-nvlink"]
    assert found.status == WARN and found.message == "GPU 1 (0000:9d:00.0): 0 of 2 NVLinks are up"


@pytest.mark.recordings("nvidia_smi_xml")
def test_reports_of_real_machines_are_judged(recording: Any, machine: Machine) -> None:
    machine.says(recording.text())
    found = machine.check()
    for name in ("gpu-state", "gpu-memory", "gpu-throttle", "gpu-pcie", "gpu-fabric"):
        assert "broken" not in found[name].message, found[name]
    reported = recording.expected.get("gpus") or []
    pending = any(gpu.get("remapped_pending") is True for gpu in reported)
    assert ("waits to be remapped" in found["gpu-memory"].message) >= pending
    wrong = [gpu for gpu in reported if gpu.get("fabric_state") not in (None, "N/A", "Completed")]
    assert (found["gpu-fabric"].status == FAIL) == bool(wrong)


@pytest.mark.recordings("kernel_xid")
def test_kernel_logs_of_real_machines_are_judged(recording: Any, machine: Machine) -> None:
    machine.plug("0000:1b:00.0")
    machine.write("var/log/kern.log", recording.text())
    found = machine.check()["gpu-xids"]
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
def test_a_tool_that_fails_makes_a_check_fail_or_unknown(recording: Any, machine: Machine) -> None:
    machine.plug("0000:1b:00.0")
    machine.write("sys/module/nvidia/version", "580.95.05\n")
    machine.answers["nvidia-smi -q -x"] = Outcome(9, recording.text())
    found = machine.check()
    assert not [result for result in found.values() if "broken" in result.message]
    assert FAIL in {found["driver-loaded"].status, found["gpu-count"].status} or found["gpu-count"].status == UNKNOWN
