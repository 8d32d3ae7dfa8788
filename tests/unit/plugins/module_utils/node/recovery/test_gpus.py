# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The actions that the kernel's log and the driver ask for, and the lines of the log that count."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.drains import format_time
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import xid, xid_actions
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery import (
    gpus,
    inspect,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.state import State

from ..conftest import install
from .conftest import FIRST, NOW, SECOND, GpuMachine

LOG = """\
[  10.0] NVRM: Xid (PCI:0000:1b:00): 95, pid=1, uncontained
[  20.0] NVRM: Xid (PCI:0000:9d:00): 79, pid=1, GPU has fallen off the bus.
[  30.0] NVRM: Xid (PCI:0000:1b:00): 31, pid=2
"""


def test_xids_count_for_the_gpus_of_the_instance_since_their_reset() -> None:
    assert gpus.needed_by_log(LOG, {"0000:1b:00.0"}, 0)[0] == "reset"
    assert gpus.needed_by_log(LOG, {"0000:1b:00.0"}, 15)[0] == "application"
    assert gpus.needed_by_log(LOG, {"0000:9d:00.0"}, 0) == (
        "reboot",
        "XID 79 of GPU 0000:9d:00.0: the GPU has fallen off the bus",
    )
    assert gpus.needed_by_log("", {"0000:1b:00.0"}, 0) == ("none", "")


def test_a_reset_in_the_future_has_an_unknown_time() -> None:
    assert gpus.last_reset(State("main", gpus_reset="2026-05-04T03:00:01Z"), NOW) == 0
    assert gpus.last_reset(State("main"), NOW) == 0


@pytest.mark.recordings("kernel_xid")
def test_kernel_logs_of_real_machines_ask_for_an_action(recording: Any, gpu_machine: GpuMachine) -> None:
    log = recording.text()
    found, errors = xid.find(log)
    named = [*(one.pci_bus_id for one in found), *(one.pci_bus_id for one in errors)]
    addresses = {address for address in named if address}
    # All XIDs from 0 s after the boot count. XIDs without a time count, too.
    action, words = gpus.needed_by_log(log, addresses, 0)
    wanted = [xid_actions.meaning(int(number)).action for number in recording.expected["by_xid"]]
    if recording.expected["fallen_off_bus"]:
        wanted.append(xid_actions.REBOOT)
    assert action == xid_actions.worst(wanted)
    assert bool(words) == (action in (xid_actions.RESET, xid_actions.REBOOT, xid_actions.REPLACE))
    # Lines about other GPUs do not count.
    assert gpus.needed_by_log(log, {"ffff:ff:1f.0"}, 0) == (xid_actions.NONE, "")


@pytest.mark.recordings("nvidia_smi_xml")
def test_reports_of_real_machines_ask_for_an_action(recording: Any, gpu_machine: GpuMachine) -> None:
    gpu_machine.smi = Outcome(0, recording.text())
    found = inspect._gpus(gpu_machine.paths.root, gpu_machine.run)
    real = [gpu for gpu in found if gpu["reported"]]
    listed = recording.expected.get("gpus") or []
    wanted = [xid_actions.wanted(gpu["recovery_action"]) for gpu in listed if gpu.get("recovery_action")]
    assert gpus.needed_by_driver(real, real)[0] == xid_actions.worst(wanted)
    # The GPUs of the recording are not on this machine's bus. nvidia-smi does not list the GPUs of the bus.
    assert gpus.needed_by_driver([gpu for gpu in found if not gpu["reported"]], found)[0] == (
        xid_actions.REBOOT if real and len(real) < len(found) else xid_actions.NONE
    )
    assert json.dumps(gpu_machine.situation().gpu_words)


def gpu(index: int | None, address: str, **more: Any) -> dict[str, Any]:
    """A GPU as gpu_facts has it; without an index, the driver does not list it."""
    listed = {"index": index, "pci_bus_id": address, "uuid": f"GPU-{address}", "reported": index is not None}
    return {**listed, "driver": "nvidia", "mig_devices": [], "lost": False, "recovery_action": None, **more}


@pytest.mark.parametrize("name", ["1", "GPU-0000:9d:00.0", "MIG-7", "1:0"])
def test_a_release_uses_the_gpu_that_it_names_by_index_uuid_or_mig_device(paths: Paths, name: str) -> None:
    install(paths, "side", accelerator="nvidia", gpus=[name])
    release = releases.load(paths, "side", 1)
    second = gpu(1, SECOND, mig_devices=[{"uuid": "MIG-7"}])
    assert gpus.used_by(release, [gpu(0, FIRST), second]) == [second]
    # If a GPU is lost, the driver gives its index to the next GPU. A number in the release still means the same GPU.
    if name[0] == "1":
        moved = {**second, "index": 0}
        assert gpus.used_by(release, [gpu(None, FIRST), moved]) == [moved]


@pytest.mark.parametrize(
    ("changes", "action", "words"),
    [
        ({}, "none", ""),
        ({"recovery_action": "None"}, "none", ""),
        ({"recovery_action": "Reset"}, "reset", f"GPU {SECOND} asks for: Reset"),
        ({"lost": True}, "reboot", f"GPU {SECOND} has fallen off the bus"),
        ({"reported": False}, "reboot", f"nvidia-smi does not list GPU {SECOND}"),
    ],
)
def test_the_state_of_a_gpu_decides_the_action_that_the_driver_asks_for(
    changes: dict[str, Any], action: str, words: str
) -> None:
    own = gpu(1, SECOND, **changes)
    assert gpus.needed_by_driver([own], [gpu(0, FIRST), own]) == (action, words)


def test_an_nvidia_smi_that_lists_no_gpu_asks_for_nothing() -> None:
    own = gpu(None, SECOND)
    assert gpus.needed_by_driver([own], [own]) == ("none", "")


def test_a_reset_counts_from_its_time_since_boot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus.time, "clock_gettime", lambda _clock: 100.0)
    ago = {seconds: format_time(NOW - timedelta(seconds=seconds)) for seconds in (60, 200)}
    assert gpus.last_reset(State("main", gpus_reset=ago[60]), NOW) == 40.0
    # The reset was before this boot.
    assert gpus.last_reset(State("main", gpus_reset=ago[200]), NOW) == 0.0


def test_a_failed_initialisation_of_a_gpu_counts_while_the_driver_does_not_list_the_gpu() -> None:
    log = "[  95.0] NVRM: GPU 0000:9d:00.0: RmInitAdapter failed! (0x62:0xffff:2477)\n"
    assert gpus.needed_by_log(log, {SECOND}, 0) == ("none", "")
    assert gpus.needed_by_log(log, {SECOND}, 0, {SECOND}) == ("reboot", f"the driver cannot start GPU {SECOND}")
    fallen = "[  95.0] NVRM: GPU 0000:9d:00.0: GPU has fallen off the bus.\n"
    assert gpus.needed_by_log(fallen, {SECOND}, 0)[0] == "reboot"
