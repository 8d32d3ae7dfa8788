# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The situation of an instance, with its GPUs, and the step that follows."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import health, wait
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.drains import format_time
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery import (
    gpus,
    inspect,
    policy,
    state,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.state import State, Step

from ..conftest import GPU_DATA, install, plug, write
from .conftest import FIRST, HEALTHY, NOW, SECOND, XID_95, GpuMachine

LOST = "Unable to determine the device handle for GPU 0000:9D:00.0: GPU is lost.  Reboot the system to recover this GPU"


def test_without_a_fault_of_its_gpu_an_engine_is_restarted(gpu_machine: GpuMachine) -> None:
    assert gpu_machine.decide().act == policy.RESTART


def test_a_gpu_that_needs_a_reset_is_reset(gpu_machine: GpuMachine) -> None:
    gpu_machine.log(XID_95)
    decision = gpu_machine.decide()
    assert decision.act == policy.RESET and "XID 95" in decision.reason


def test_restarts_of_docker_count_for_all_instances_together(gpu_machine: GpuMachine) -> None:
    step = Step(format_time(NOW), policy.DOCKER, "hung", "Docker does not answer")
    for name in ("main", "side"):
        state.write(gpu_machine.paths, State(name, steps=(step,)))
    assert gpu_machine.situation().docker_restarts == 2


def test_a_fault_of_another_instances_gpu_does_not_count(gpu_machine: GpuMachine) -> None:
    gpu_machine.log("Xid (PCI:0000:1b:00): 95, pid=7, name=VLLM::EngineCore, Uncontained: FBHUB. RST: Yes, D-RST: No")
    assert gpu_machine.decide().act == policy.RESTART


def test_the_recovery_action_of_a_gpu_counts_without_a_line_in_the_log(gpu_machine: GpuMachine) -> None:
    gpu_machine.smi = Outcome(0, (GPU_DATA / "report-580.xml").read_text())
    decision = gpu_machine.decide()
    assert decision.act == policy.RESET and f"GPU {SECOND} asks for: Reset" in decision.reason


@pytest.mark.parametrize("smi", [Outcome(15, LOST), Outcome(255, LOST), Outcome(None, "", "", "timeout", "hangs")])
def test_a_gpu_off_the_bus_needs_a_reboot_although_nvidia_smi_lists_no_indexes(
    gpu_machine: GpuMachine, smi: Outcome
) -> None:
    gpu_machine.smi = smi
    gpu_machine.log(
        "Xid (PCI:0000:9d:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        "GPU 0000:9d:00.0: GPU has fallen off the bus.",
    )
    decision = gpu_machine.decide()
    assert decision.act == policy.GIVE_UP and SECOND in decision.reason
    # The instance `side` keeps its own GPU, which has no fault.
    release = releases.load(gpu_machine.paths, "side", 1)
    found = inspect._gpus(gpu_machine.paths.root, gpu_machine.run)
    assert [gpu["pci_bus_id"] for gpu in gpus.used_by(release, found)] == [FIRST]


def test_a_gpu_that_the_driver_cannot_start_needs_a_reboot(gpu_machine: GpuMachine) -> None:
    gpu_machine.smi = Outcome(6, "No devices were found")
    gpu_machine.log("GPU 0000:9d:00.0: RmInitAdapter failed! (0x62:0xffff:2477)")
    decision = gpu_machine.decide()
    assert decision.act == policy.GIVE_UP and "cannot start" in decision.reason


def test_an_xid_from_before_the_driver_was_loaded_again_is_settled(gpu_machine: GpuMachine) -> None:
    files.write(
        gpu_machine.paths.root / "var/log/kern.log",
        "[  10.0] NVRM: Xid (PCI:0000:9d:00): 79, pid=1, GPU has fallen off the bus.\n"
        "[  90.0] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n",
    )
    assert gpu_machine.decide().act == policy.RESTART


def test_a_failed_start_of_a_gpu_that_the_driver_lists_does_not_count(gpu_machine: GpuMachine) -> None:
    gpu_machine.log("GPU 0000:9d:00.0: RmInitAdapter failed! (0x62:0xffff:2477)")
    assert gpu_machine.decide().act == policy.RESTART


def test_a_gpu_that_nvidia_smi_does_not_list_needs_a_reboot(gpu_machine: GpuMachine) -> None:
    start, _gpu, rest = HEALTHY.partition('<gpu id="00000000:9D:00.0">')
    gpu_machine.smi = Outcome(0, start + rest.partition("</gpu>")[2])
    decision = gpu_machine.decide()
    assert decision.act == policy.GIVE_UP and f"does not list GPU {SECOND}" in decision.reason


def test_an_nvidia_smi_that_hangs_is_no_fault_of_a_gpu(gpu_machine: GpuMachine) -> None:
    gpu_machine.smi = Outcome(None, failure="timeout", message="nvidia-smi did not end within 15 s")
    assert gpu_machine.decide().act == policy.RESTART


def test_an_excluded_gpu_does_not_change_the_numbers_of_other_gpus(gpu_machine: GpuMachine) -> None:
    plug(gpu_machine.paths.root, "0000:0a:00.0")
    files.write(gpu_machine.paths.root / "proc/driver/nvidia/gpus/0000:0a:00.0/information", "GPU Excluded:\t Yes\n")
    gpu_machine.smi = Outcome(15, LOST)
    gpu_machine.log("Xid (PCI:0000:9d:00): 79, pid=1, GPU has fallen off the bus.")
    assert gpu_machine.decide().act == policy.GIVE_UP


@pytest.mark.recordings("errors")
def test_a_failed_nvidia_smi_does_not_prevent_a_step(recording: Any, gpu_machine: GpuMachine) -> None:
    gpu_machine.smi = Outcome(9, recording.text())
    assert gpu_machine.decide().act == policy.RESTART
    gpu_machine.log("Xid (PCI:0000:9d:00): 79, pid=1, GPU has fallen off the bus.")
    assert gpu_machine.decide().act == policy.GIVE_UP


def test_without_a_record_of_the_agent_the_verdict_is_unknown_and_stale(gpu_machine: GpuMachine) -> None:
    gpu_machine.paths.probe("main").unlink()
    situation = gpu_machine.situation()
    assert (situation.verdict, situation.stale, situation.detail) == (
        health.UNKNOWN,
        True,
        "its agent has recorded no verdict",
    )


def test_a_verdict_about_an_earlier_start_is_stale(gpu_machine: GpuMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not gpu_machine.situation().stale
    later = {"ActiveState": "active", "InvocationID": "second"}
    monkeypatch.setattr(systemd, "show", lambda units, _properties: dict.fromkeys(units, later))
    assert gpu_machine.situation().stale


def test_an_instance_without_a_release_is_beyond_repair(gpu_machine: GpuMachine) -> None:
    for link in (gpu_machine.paths.active("main"), gpu_machine.paths.current("main")):
        link.unlink()
    assert gpu_machine.situation().beyond_repair == ("main has no release that could be started",)


def test_a_damaged_release_is_beyond_repair(gpu_machine: GpuMachine) -> None:
    (gpu_machine.paths.release("main", 1) / releases.RELEASE_FILE).write_text("{")
    (words,) = gpu_machine.situation().beyond_repair
    assert "release.json is damaged" in words


def test_the_detail_of_a_failed_unit_has_the_error_of_its_last_start(
    gpu_machine: GpuMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = {"ActiveState": "failed", "InvocationID": "first"}
    monkeypatch.setattr(systemd, "show", lambda units, _properties: dict.fromkeys(units, failed))
    monkeypatch.setattr(wait, "last_words", lambda *_arguments, **_options: "noise\nValueError: no memory\nmore noise")
    assert gpu_machine.situation().detail.endswith("; its last start said: ValueError: no memory")
    monkeypatch.setattr(wait, "last_words", lambda *_arguments, **_options: "noise")
    assert "its last start" not in gpu_machine.situation().detail


def test_a_gpu_named_by_another_instance_is_shared(gpu_machine: GpuMachine) -> None:
    assert not gpu_machine.situation().gpu_shared
    install(gpu_machine.paths, "third", accelerator="nvidia", gpus=["1"])
    assert gpu_machine.situation().gpu_shared
    (gpu_machine.paths.release("third", 1) / releases.RELEASE_FILE).write_text("{")
    # The instance with the damaged release may use any GPU.
    assert gpu_machine.situation().gpu_shared


@pytest.mark.parametrize(
    ("text", "hold"),
    [
        ('{"live-restore": true}', ""),
        ("{}", "its restart would end side (live-restore is off)"),
        ("[]", "its restart would end side (live-restore is off)"),
    ],
)
def test_docker_is_not_restarted_if_other_engines_would_end(gpu_machine: GpuMachine, text: str, hold: str) -> None:
    write(gpu_machine.paths.root / inspect.DAEMON_JSON, text)
    assert gpu_machine.situation().docker_hold == hold
