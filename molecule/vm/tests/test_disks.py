# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role formats blank disks, and leaves the disks alone on which occupy.sh has written.

Mounts and data are there after a reboot.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from node import changed_tasks, changes
from virtual import Machine

BY_ID = "/dev/disk/by-id/virtio-"
PRECIOUS = {
    "ext4": "it contains ext4 (label 'precious'",
    "lvm": "it contains LVM2_member",
    "md": "it contains linux_raid_member",
    "parted": "it has the partitions",
    "swap": "it is swap in use",
    "noise": "contain unknown data",
}
MOUNTS = {"/mnt/models": "ext4", "/mnt/nvme/workspace": "xfs"}
DECLARED = yaml.safe_load((Path(__file__).parents[1] / "hosts.yml").read_text())["inference"]["hosts"]["machine"]
VOLUME = {"name": "lv", "devices": [f"{BY_ID}blank4", f"{BY_ID}noise"], "join": "lvm", "path": "/mnt/lv"}
MORE: dict[str, Any] = {"common_disks": [*DECLARED["common_disks"], VOLUME]}


def single(name: str, device: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "devices": [device], "path": f"/mnt/{name}", **more}


def contents(machine: Machine) -> str:
    """A hash of the first 8 MiB and the last MiB of each disk with data: the place of file systems and tables.

    Each disk has 512 MiB (DISK_MIB of tests/tools/machines.py).
    """
    devices = " ".join(f"{BY_ID}{name}" for name in PRECIOUS)
    read = "(head -c 8M $d; dd if=$d bs=1M skip=511 status=none) | sha256sum"
    return machine.run(f"sync; for d in {devices}; do blockdev --flushbufs $d; {read}; done")


def mounted(machine: Machine, path: str) -> str:
    return machine.run(f"findmnt --noheadings --output FSTYPE,SOURCE --mountpoint {path}", check=False)


def test_blank_disks_are_formatted_and_mounted(machine: Machine) -> None:
    for path, kind in MOUNTS.items():
        assert mounted(machine, path).startswith(kind)
        machine.run(f"echo kept > {path}/data; sync")
    # The array's data begins after 1 MiB. By default, mdadm leaves up to 128 MiB free.
    assert "Data Offset : 2048 sectors" in machine.run(f"mdadm --examine {BY_ID}blank1")
    # The test reads the name of this array: udev may also have started the half array of a disk with data.
    array = Path(mounted(machine, "/mnt/models").split()[1]).name
    assert machine.run(f"cat /sys/block/{array}/md/level") == "raid0"
    assert machine.run("stat -c '%U %a' /mnt/models /mnt/nvme/workspace/vllm_cache").split() == [
        *("inference", "755"),
        *("inference", "750"),
    ]
    assert machine.run("cat /mnt/share/file") == "shared"
    assert "Success" in machine.run("findmnt --verify")


def test_nothing_can_be_written_below_a_mount(machine: Machine) -> None:
    """Otherwise, a program would fill the root disk while the disk is not mounted."""
    below = "mkdir -p /run/below && mount --bind / /run/below"
    words = machine.run(f"{below}; touch /run/below/mnt/models/x 2>&1; umount /run/below", check=False)
    assert "Operation not permitted" in words


@pytest.fixture(scope="module")
def refusal(machine: Machine) -> list[str]:
    """The mistakes that one run reports together. The blank disk is not formatted before the mistakes are corrected."""
    machine.run(f"swapon {BY_ID}swap")
    root = machine.run("find -L /dev/disk/by-path -samefile /dev/vda1 -print -quit")
    wanted = [
        *(single(name, f"{BY_ID}{name}") for name in PRECIOUS),
        single("new", f"{BY_ID}blank4"),
        single("root", root),
        single("member", f"{BY_ID}blank1"),
        single("kernel", "/dev/vde"),
        single("gone", f"{BY_ID}gone"),
        single("etc", f"{BY_ID}blank4", adopt=True),
    ]
    before = contents(machine)
    output = machine.site("--tags", "common_disks", check=False, common_disks=wanted)
    machine.run(f"swapoff {BY_ID}swap")
    assert changes(output) == 0
    assert contents(machine) == before
    return " ".join(output.replace("\\n", " ").split()).split("- common_disks.")


def test_no_disk_with_data_is_changed(machine: Machine, refusal: list[str]) -> None:
    reasons = {
        **PRECIOUS,
        "root": "it is mounted at /",
        "member": "uses it",
        "kernel": "kernel names can change",
        "gone": f"{BY_ID}gone does not exist",
    }
    for name, reason in reasons.items():
        assert any(words.startswith(f"{name}: ") and reason in words for words in refusal), (name, refusal)
    assert not machine.run(f"blkid --probe {BY_ID}blank4", check=False), "the blank disk was formatted"
    assert (
        machine.run("mount -o ro /dev/disk/by-label/precious /media && umount /media; cat /mnt/models/data") == "kept"
    )


def test_a_disk_that_the_operator_erases_becomes_a_volume(machine: Machine, refusal: list[str], tmp_path: Path) -> None:
    """The operator runs the command that the refusal names. Check mode predicts the changes."""
    said = next(words for words in refusal if words.startswith("noise: "))
    command = re.search(r"wipefs --all \S+ && dd \S+ \S+ bs=1M count=4 conv=fsync", said)
    assert command
    machine.run(command[0])
    tags = ("--tags", "common_disks")
    predicted, output = changed_tasks(machine, tmp_path, *tags, "--check", **MORE)
    assert "join /dev/disk/by-id/virtio-blank4" in output and not mounted(machine, "/mnt/lv")
    done, _output = changed_tasks(machine, tmp_path, *tags, **MORE)
    assert done == predicted
    assert mounted(machine, "/mnt/lv").startswith("ext4")
    machine.run("echo kept > /mnt/lv/data; sync")


def test_all_mounts_and_data_are_there_after_a_reboot(rebooted: Machine) -> None:
    for path, kind in {**MOUNTS, "/mnt/lv": "ext4"}.items():
        assert mounted(rebooted, path).startswith(kind)
        assert rebooted.run(f"cat {path}/data") == "kept"


def test_an_absent_nfs_server_delays_neither_the_boot_nor_a_play(rebooted: Machine) -> None:
    """A second run changes nothing."""
    assert rebooted.run("systemctl is-active nfs-server", check=False) == "inactive"
    assert changes(rebooted.site("--tags", "common_disks", **MORE)) == 0
    assert rebooted.run("timeout 45 cat /mnt/share/file || echo $?", check=False) == "1", "cat waited too long"
    rebooted.run("systemctl start nfs-server")
    assert rebooted.run("cat /mnt/share/file") == "shared"
    # Other tests must not see the failed attempt.
    rebooted.run("systemctl reset-failed")


@pytest.mark.full
def test_a_whole_run_changes_nothing_after_a_reboot(rebooted: Machine) -> None:
    """This replaces the scenario's step `idempotence`."""
    assert changes(rebooted.site(**MORE)) == 0
