# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of GPUs, replayed through the recovery: what the kernel and nvidia-smi said, and the step that follows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, journal, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import Instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import health
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Rendered, render
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Settings as ReleaseSettings
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.drains import format_time
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.probe_state import ProbeState
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import xid, xid_actions
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings import boot
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings.apply import Result
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery import (
    actions,
    gpus,
    inspect,
    policy,
    state,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.ladder import Ladder, Report
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.policy import Situation
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.settings import Settings
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.state import Breaker, State, Step
from ansible_collections.baremetal.inference.plugins.module_utils.store.stored import StoredModel

DATA = Path(__file__).parents[2] / "hardware/gpu/data"

FIRST, SECOND = "0000:1b:00.0", "0000:9d:00.0"

NOW = datetime(2026, 5, 4, 3, 0, tzinfo=UTC)

XID_95 = "Xid (PCI:0000:9d:00): 95, pid=7, name=VLLM::EngineCore, Uncontained: FBHUB. RST: Yes, D-RST: No"

LOST = "Unable to determine the device handle for GPU 0000:9D:00.0: GPU is lost.  Reboot the system to recover this GPU"

HEALTHY = (DATA / "report-580.xml").read_text().replace("<gpu_recovery_action>Reset<", "<gpu_recovery_action>None<")


class FakeDocker:
    def ping(self) -> None:
        pass

    def inspect(self, _container: str) -> None:
        pass


class Machine:
    """A node with two GPUs; instance `main` has the second, `side` the first. The agent says that `main` hangs."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.paths = Paths(root)
        self.smi = Outcome(0, HEALTHY)
        self.reset = Outcome(0)
        self.asked: list[list[str]] = []
        self.done: list[str] = []
        monkeypatch.setattr(actions, "stop", lambda _name, _docker: self.done.append("stop"))
        monkeypatch.setattr(actions, "start", lambda _name: self.done.append("start"))
        monkeypatch.setattr(boot, "apply", self.apply)
        monkeypatch.setattr(systemd, "active_state", lambda _unit: "inactive")
        monkeypatch.setattr(journal.Journal, "say", lambda *_arguments, **_fields: None)
        for address in (FIRST, SECOND):
            self.plug(address)
        for name, gpu in (("main", "1"), ("side", "0")):
            self.stage(name, gpu)
        time = format_time(NOW)
        probe = ProbeState("main", health.HUNG, time, time, None, "no token within 10 s, and no counter moves", "first")
        files.write_json(self.paths.probe("main"), probe.to_json())
        unit = {"ActiveState": "active", "InvocationID": "first"}
        monkeypatch.setattr(systemd, "show", lambda units, _properties: dict.fromkeys(units, unit))

    def plug(self, address: str) -> None:
        device = self.paths.root / "sys/bus/pci/devices" / address
        device.mkdir(parents=True)
        for name, text in {"vendor": "0x10de", "device": "0x2330", "class": "0x030200"}.items():
            (device / name).write_text(text)
        (device / "driver").symlink_to("../../drivers/nvidia")

    def stage(self, name: str, gpu: str) -> None:
        model = self.paths.root / "models" / name
        model.mkdir(parents=True)
        instance = Instance(name=name, model="tiny-a", port=5005, accelerator="nvidia", gpus=(gpu,))

        def rendered(number: int) -> Rendered:
            return render(instance, [], StoredModel(str(model), "r"), "image", ReleaseSettings(), number=number)

        releases.stage(self.paths, name, rendered(0).release.id, rendered, pytest.fail)
        releases.activate(self.paths, name, 1)
        releases.commit(self.paths, name, 1)

    def log(self, *lines: str) -> None:
        files.write(self.paths.root / "var/log/kern.log", "".join(f"[  95.0] NVRM: {line}\n" for line in lines))

    def run(self, command: Sequence[str], _timeout: float) -> Outcome:
        self.asked.append(list(command))
        if "--gpu-reset" in command:
            self.done.append("reset")
            return self.reset
        return self.smi if command[1:] == ["-q", "-x"] else Outcome(1)

    def apply(self, _paths: Paths) -> Result:
        self.done.append("settings")
        return Result(failures=["GPU 1: its power limit stays"])

    def recover(self) -> Report:
        docker: Any = FakeDocker()
        ladder = Ladder(self.paths, Settings(), journal.Journal(), docker=docker, run=self.run, now=lambda: NOW)
        return ladder.recover("main")

    def situation(self) -> Situation:
        docker: Any = FakeDocker()
        return inspect.look(self.paths, "main", NOW, docker, self.run).situation

    def decide(self) -> policy.Decision:
        return policy.decide(self.situation(), Settings(), NOW)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_without_a_fault_of_its_gpu_it_is_restarted(machine: Machine) -> None:
    assert machine.decide().act == policy.RESTART


def test_a_gpu_that_wants_a_reset_gets_it(machine: Machine) -> None:
    machine.log(XID_95)
    decision = machine.decide()
    assert decision.act == policy.RESET and "XID 95" in decision.reason


def test_a_gpu_gets_its_settings_again_after_its_reset(machine: Machine) -> None:
    machine.log(XID_95)
    report = machine.recover()
    assert machine.done == ["stop", "reset", "settings", "start"]
    assert report.outcome == f"reset {SECOND}; its GPU settings: GPU 1: its power limit stays; started anew"
    assert state.read(machine.paths, "main").gpus_reset == format_time(NOW)


def test_a_reset_settles_what_was_before_it_and_one_that_failed_settles_nothing(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpus.time, "clock_gettime", lambda _clock: 100.0)
    machine.log(XID_95)
    machine.reset = Outcome(1, "GPU 00000000:9D:00.0 is currently in use by another process.")
    assert "in use" in machine.recover().outcome
    assert machine.done == ["stop", "reset", "start"]
    assert machine.decide().act == policy.RESET
    machine.reset = Outcome(0)
    machine.recover()
    assert machine.situation().gpu_action == xid_actions.NONE
    # Also for who closes the breaker meanwhile.
    docker: Any = FakeDocker()
    Ladder(machine.paths, Settings(), journal.Journal(), docker=docker, now=lambda: NOW).reset("main")
    assert machine.situation().gpu_action == xid_actions.NONE
    monkeypatch.setattr(gpus.time, "clock_gettime", lambda _clock: 90.0)
    assert machine.decide().act == policy.RESET


def test_a_clock_that_was_set_back_settles_nothing() -> None:
    assert gpus.since_reset(State("main", gpus_reset="2026-05-04T03:00:01Z"), NOW) == 0
    assert gpus.since_reset(State("main"), NOW) == 0


def test_no_gpu_is_asked_while_nothing_may_be_done(machine: Machine) -> None:
    """An agent asks for its engine every half minute, however long its breaker is open."""
    state.write(machine.paths, State("main", breaker=Breaker("2026-05-04T02:00:00Z", "why")))
    machine.recover()
    assert machine.asked == []
    state.write(machine.paths, State("main"))
    machine.recover()
    assert ["nvidia-smi", "-q", "-x"] in machine.asked


def test_restarts_of_docker_count_whoever_asked_for_them(machine: Machine) -> None:
    step = Step(format_time(NOW), policy.DOCKER, "hung", "Docker does not answer")
    for name in ("main", "side"):
        state.write(machine.paths, State(name, steps=(step,)))
    assert machine.situation().docker_restarts == 2


def test_the_fault_of_another_instances_gpu_is_not_its_own(machine: Machine) -> None:
    machine.log("Xid (PCI:0000:1b:00): 95, pid=7, name=VLLM::EngineCore, Uncontained: FBHUB. RST: Yes, D-RST: No")
    assert machine.decide().act == policy.RESTART


def test_what_a_gpu_asks_for_by_itself_counts_where_the_log_has_forgotten_it(machine: Machine) -> None:
    machine.smi = Outcome(0, (DATA / "report-580.xml").read_text())
    decision = machine.decide()
    assert decision.act == policy.RESET and f"GPU {SECOND} asks for: Reset" in decision.reason


@pytest.mark.parametrize("smi", [Outcome(15, LOST), Outcome(255, LOST), Outcome(None, "", "", "timeout", "hangs")])
def test_a_gpu_off_the_bus_is_for_a_reboot_though_the_tool_tells_no_numbers_any_more(
    machine: Machine, smi: Outcome
) -> None:
    machine.smi = smi
    machine.log(
        "Xid (PCI:0000:9d:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        "GPU 0000:9d:00.0: GPU has fallen off the bus.",
    )
    decision = machine.decide()
    assert decision.act == policy.GIVE_UP and SECOND in decision.reason
    # Its neighbour's restart would cure it: nothing is wrong with that GPU.
    release = releases.load(machine.paths, "side", 1)
    found = inspect._gpus(machine.paths.root, machine.run)
    assert [gpu["pci_bus_id"] for gpu in gpus.used_by(release, found)] == [FIRST]


def test_a_gpu_that_the_driver_cannot_start_is_for_a_reboot(machine: Machine) -> None:
    machine.smi = Outcome(6, "No devices were found")
    machine.log("GPU 0000:9d:00.0: RmInitAdapter failed! (0x62:0xffff:2477)")
    decision = machine.decide()
    assert decision.act == policy.GIVE_UP and "cannot start" in decision.reason


def test_what_was_before_the_driver_was_loaded_again_is_settled(machine: Machine) -> None:
    files.write(
        machine.paths.root / "var/log/kern.log",
        "[  10.0] NVRM: Xid (PCI:0000:9d:00): 79, pid=1, GPU has fallen off the bus.\n"
        "[  90.0] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n",
    )
    assert machine.decide().act == policy.RESTART


def test_a_start_that_failed_before_is_forgotten_once_the_gpu_is_there(machine: Machine) -> None:
    machine.log("GPU 0000:9d:00.0: RmInitAdapter failed! (0x62:0xffff:2477)")
    assert machine.decide().act == policy.RESTART


def test_a_gpu_that_the_tool_leaves_out_is_for_a_reboot(machine: Machine) -> None:
    start, _gpu, rest = HEALTHY.partition('<gpu id="00000000:9D:00.0">')
    machine.smi = Outcome(0, start + rest.partition("</gpu>")[2])
    decision = machine.decide()
    assert decision.act == policy.GIVE_UP and f"does not list GPU {SECOND}" in decision.reason


def test_a_tool_that_hangs_alone_condemns_no_gpu(machine: Machine) -> None:
    machine.smi = Outcome(None, failure="timeout", message="nvidia-smi did not end within 15 s")
    assert machine.decide().act == policy.RESTART


def test_a_gpu_that_is_taken_out_of_use_moves_no_number(machine: Machine) -> None:
    machine.plug("0000:0a:00.0")
    files.write(machine.paths.root / "proc/driver/nvidia/gpus/0000:0a:00.0/information", "GPU Excluded:\t Yes\n")
    machine.smi = Outcome(15, LOST)
    machine.log("Xid (PCI:0000:9d:00): 79, pid=1, GPU has fallen off the bus.")
    assert machine.decide().act == policy.GIVE_UP


@pytest.mark.recordings("kernel_xid")
def test_kernel_logs_of_real_machines_lead_to_a_step(recording: Any, machine: Machine) -> None:
    log = recording.text()
    found, errors = xid.find(log)
    named = [*(one.pci_bus_id for one in found), *(one.pci_bus_id for one in errors)]
    addresses = {address for address in named if address}
    action, words = gpus.asked_for(log, addresses, 0)
    # Some of these logs have no times, and none is of this boot.
    wanted = [xid_actions.meaning(int(number)).action for number in recording.expected["by_xid"]]
    if recording.expected["fallen_off_bus"]:
        wanted.append(xid_actions.REBOOT)
    assert action == xid_actions.worst(wanted)
    assert bool(words) == (action in (xid_actions.RESET, xid_actions.REBOOT, xid_actions.REPLACE))
    # Of a GPU that is not its own, nothing counts.
    assert gpus.asked_for(log, {"ffff:ff:1f.0"}, 0) == (xid_actions.NONE, "")


@pytest.mark.recordings("nvidia_smi_xml")
def test_reports_of_real_machines_lead_to_a_step(recording: Any, machine: Machine) -> None:
    machine.smi = Outcome(0, recording.text())
    found = inspect._gpus(machine.paths.root, machine.run)
    real = [gpu for gpu in found if gpu["reported"]]
    told = recording.expected.get("gpus") or []
    wanted = [xid_actions.wanted(gpu["recovery_action"]) for gpu in told if gpu.get("recovery_action")]
    assert gpus.asked_now(real, real)[0] == xid_actions.worst(wanted)
    # The GPUs of the recording are not on this machine's bus: its own are what the tool leaves out.
    assert gpus.asked_now([gpu for gpu in found if not gpu["reported"]], found)[0] == (
        xid_actions.REBOOT if real and len(real) < len(found) else xid_actions.NONE
    )
    assert json.dumps(machine.situation().gpu_words)


@pytest.mark.recordings("errors")
def test_what_the_tool_says_of_its_failure_breaks_no_step(recording: Any, machine: Machine) -> None:
    machine.smi = Outcome(9, recording.text())
    assert machine.decide().act == policy.RESTART
    machine.log("Xid (PCI:0000:9d:00): 79, pid=1, GPU has fallen off the bus.")
    assert machine.decide().act == policy.GIVE_UP
