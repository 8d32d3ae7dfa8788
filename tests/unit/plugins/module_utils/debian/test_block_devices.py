# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts of a block device, read from a plain file and a made-up sysfs."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import block_devices
from ansible_collections.baremetal.inference.plugins.module_utils.debian.block_devices import HEAD, BlockDevices
from ansible_collections.baremetal.inference.plugins.module_utils.debian.disks import (
    Device,
    DiskError,
    Signature,
    obstacles,
)

SIZE = HEAD + 4096


class Machine:
    """A disk sdx, the outputs of the commands about it, and the kernel's tables."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.image = root / "sdx"
        self.image.write_bytes(bytes(SIZE))
        self.disk = root / "sys/devices/sdx"
        (self.disk / "holders").mkdir(parents=True)
        self.write("size", f"{SIZE // 512}")
        self.write("ro", "0")
        (root / "sys/dev/block").mkdir(parents=True)
        # 0:0 is the device number of a plain file.
        (root / "sys/dev/block/0:0").symlink_to(self.disk)
        (root / "proc/self").mkdir(parents=True)
        (root / "proc/swaps").write_text("Filename Type Size Used Priority\n")
        self.mount("8:1", "/", "ext4", "/dev/sda1")
        self.answers: dict[str, tuple[int, str]] = {"wipefs": (0, '{"signatures": []}'), "blkid": (2, "")}
        self.blocks = BlockDevices(self.run, root / "sys", root / "proc", root / "dev")

    def run(self, *command: str, **_options: Any) -> tuple[int, str]:
        return self.answers[command[0]]

    def write(self, name: str, text: str) -> None:
        path = self.disk / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")

    def mount(self, number: str, path: str, kind: str, source: str) -> None:
        with (self.root / "proc/self/mountinfo").open("a") as stream:
            stream.write(f"36 25 {number} / {path} rw,noatime shared:1 - {kind} {source} rw\n")

    def device(self) -> Device:
        return self.blocks.device(str(self.image))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(block_devices.stat, "S_ISBLK", lambda mode: True)
    return Machine(tmp_path)


def signatures(*found: dict[str, str]) -> tuple[int, str]:
    return 0, json.dumps({"signatures": list(found)})


def test_a_blank_disk_has_no_obstacles(machine: Machine) -> None:
    device = machine.device()
    assert obstacles(device) == [] and device.size == SIZE and device.kernel == "sdx"


def test_an_erased_flash_drive_is_blank_too(machine: Machine) -> None:
    machine.image.write_bytes(b"\xff" * SIZE)
    assert machine.device().empty


@pytest.mark.parametrize("position", [0, 512, HEAD - 1])
def test_one_byte_in_the_head_of_a_device_counts_as_content(machine: Machine, position: int) -> None:
    with machine.image.open("r+b") as stream:
        stream.seek(position)
        stream.write(b"\x01")
    assert not machine.device().empty


def test_signatures_of_wipefs_and_of_blkid_are_found(machine: Machine) -> None:
    machine.answers["wipefs"] = signatures({"type": "gpt"}, {"type": "gpt"}, {"type": "PMBR"})
    assert machine.device().signatures == (Signature("gpt"), Signature("PMBR"))
    machine.answers["wipefs"] = signatures()
    machine.answers["blkid"] = (0, "TYPE=xfs\nLABEL=data\nUUID=u\n")
    assert machine.device().signatures == (Signature("xfs", "data", "u"),)
    machine.answers["blkid"] = (0, "PTTYPE=dos\n")
    assert machine.device().signatures == (Signature("dos"),)


def test_a_partition_without_a_file_system_is_blank(machine: Machine) -> None:
    machine.answers["blkid"] = (0, "PART_ENTRY_SCHEME=gpt\nPART_ENTRY_NUMBER=1\n")
    assert obstacles(machine.device()) == []


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("wipefs", (1, "wipefs: error")),
        ("wipefs", (127, "wipefs is not installed")),
        ("wipefs", (0, "no JSON")),
        ("blkid", (8, "")),
        ("blkid", (4, "blkid: error")),
        ("blkid", (124, "it did not end")),
    ],
)
def test_a_disk_is_not_blank_if_a_probe_fails(machine: Machine, command: str, answer: tuple[int, str]) -> None:
    machine.answers[command] = answer
    assert obstacles(machine.device())


def test_partitions_holders_mounts_swap_and_write_protection_are_seen(machine: Machine) -> None:
    machine.write("sdx1/partition", "1")
    (machine.disk / "holders/md127").touch()
    machine.mount("0:0", "/srv/my\\040data", "ext4", "/dev/sdx")
    machine.write("ro", "1")
    swaps = machine.root / "proc/swaps"
    swaps.write_text(f"{swaps.read_text()}{machine.image} partition 8 0 -2\n")
    device = machine.device()
    assert device.partitions == ("sdx1",) and device.holders == ("md127",) and device.mounts == ("/srv/my data",)
    assert device.read_only and device.swap


def test_a_disk_that_ends_before_its_size_is_not_blank(machine: Machine) -> None:
    machine.write("size", f"{SIZE // 512 + 8}")
    assert obstacles(machine.device()) == ["reads end before the size that the kernel reports"]


def test_a_device_in_exclusive_use_is_not_blank(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    really_open = os.open

    def refuse_exclusive(path: str, flags: int, *rest: Any, **more: Any) -> int:
        if flags & os.O_EXCL:
            raise OSError(errno.EBUSY, "busy")
        return really_open(path, flags, *rest, **more)

    monkeypatch.setattr(block_devices.os, "open", refuse_exclusive)
    assert machine.device().busy and obstacles(machine.device())


def test_a_device_that_vanishes_while_it_is_opened_is_not_blank(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    really_open = os.open

    def refuse(path: str, flags: int, *rest: Any, **more: Any) -> int:
        if str(path) != str(machine.image):
            return really_open(path, flags, *rest, **more)
        raise OSError(*((errno.EBUSY, "busy") if flags & os.O_EXCL else (errno.ENXIO, "no such device")))

    monkeypatch.setattr(block_devices.os, "open", refuse)
    device = machine.device()
    assert device.busy and "the device cannot be opened: no such device" in device.doubts


def test_the_error_about_a_missing_device_lists_the_disks_of_the_node(machine: Machine) -> None:
    names = machine.root / "dev/disk/by-id"
    names.mkdir(parents=True)
    for name in ("nvme-A", "nvme-A-part1", "dm-name-x", "ata-parted"):
        (names / name).touch()
    with pytest.raises(DiskError, match=r"does not exist. Found in .*: ata-parted, nvme-A$"):
        machine.blocks.device("/nonexistent")


def test_the_last_mount_at_a_path_counts(machine: Machine) -> None:
    machine.mount("0:40", "/mnt/x", "autofs", "systemd-1")
    machine.mount("0:41", "/mnt/x", "nfs4", "nas:/x")
    top = machine.blocks.mounted_at("/mnt/x")
    assert top is not None and (top.kind, top.source) == ("nfs4", "nas:/x")
    assert machine.blocks.mounted_at("/mnt") is None


def test_a_plain_file_is_no_device(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_devices.stat, "S_ISBLK", lambda mode: False)
    with pytest.raises(DiskError, match="is not a block device"):
        machine.device()
