# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists the disks of a machine by their lasting names, with what is on them. Private to the collection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..block_devices import NO_DISK, BlockDevices
from ..disks import DiskError, obstacles

UNREADABLE = ("nvme-eui.", "wwn-", "scsi-3", "nvme-nvme.", "scsi-SATA_", "scsi-0")
"""Starts of names that a person reads less easily than another name of the same disk. Most have no vendor and model.
`scsi-SATA_` and `scsi-0` have both: such a disk may also have a name that begins with `ata-` or `scsi-S`."""


def names(directory: Path) -> list[Path]:
    """One name of each whole disk below /dev/disk/by-id: of several names, the most readable one."""
    best: dict[Path, Path] = {}
    for path in sorted(directory.iterdir()) if directory.is_dir() else []:
        device = path.resolve()
        worse = path.name.startswith(UNREADABLE)
        if NO_DISK.search(path.name) or device.name.startswith(("sr", "loop")):
            continue
        # Of equally good names, the first: the second name of an NVMe disk is longer.
        if device not in best or (best[device].name.startswith(UNREADABLE) and not worse):
            best[device] = path
    return sorted(best.values())


def read(blocks: BlockDevices) -> list[dict[str, Any]]:
    """The disks, each with why it is not blank. Opens disks to read them, and writes nothing."""
    found = []
    for path in names(blocks.dev / "disk/by-id"):
        try:
            device = blocks.device(str(path))
        except (DiskError, OSError) as error:
            found.append({"path": str(path), "size": 0, "model": "", "nvme": False, "obstacles": [str(error)]})
            continue
        found.append(
            {
                "path": str(path),
                "size": device.size,
                "model": device.model,
                "nvme": device.kernel.startswith("nvme"),
                "obstacles": obstacles(device),
            }
        )
    return found
