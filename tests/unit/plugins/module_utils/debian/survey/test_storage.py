# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The disks by their names in /dev/disk/by-id."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.baremetal.inference.plugins.module_utils.debian.disks import Device, DiskError
from ansible_collections.baremetal.inference.plugins.module_utils.debian.survey import storage


class Blocks:
    """Answers for two disks; the second cannot be read."""

    def __init__(self, dev: Path) -> None:
        self.dev = dev

    def device(self, path: str) -> Device:
        if "broken" in path:
            raise DiskError("it hangs")
        return Device(path, "nvme0n1", "259:0", size=10**12, model="Fast")


def links(directory: Path, **targets: str) -> Path:
    by_id = directory / "disk/by-id"
    by_id.mkdir(parents=True)
    for name, target in targets.items():
        (by_id / name.replace("__", "-")).symlink_to(directory / target)
    return by_id


def test_each_disk_has_one_readable_name(tmp_path: Path) -> None:
    by_id = links(
        tmp_path,
        nvme__Fast_S1="nvme0n1",
        wwn__0x5="sda",
        ata__Disk_S2="sda",
        ata__Disk_S2__part1="sda1",
        ata__DVD="sr0",
        dm__name__vg="dm-0",
    )
    (by_id / "nvme-eui.0025").symlink_to(tmp_path / "nvme0n1")
    assert [path.name for path in storage.names(by_id)] == ["ata-Disk_S2", "nvme-Fast_S1"]
    assert storage.names(tmp_path / "none") == []


def test_a_disk_that_cannot_be_read_is_not_blank(tmp_path: Path) -> None:
    by_id = links(tmp_path, nvme__Fast_S1="nvme0n1", ata__broken="sda")
    blocks: Any = Blocks(tmp_path)
    assert storage.read(blocks) == [
        {"path": f"{by_id}/ata-broken", "size": 0, "model": "", "nvme": False, "obstacles": ["it hangs"]},
        {"path": f"{by_id}/nvme-Fast_S1", "size": 10**12, "model": "Fast", "nvme": True, "obstacles": []},
    ]
