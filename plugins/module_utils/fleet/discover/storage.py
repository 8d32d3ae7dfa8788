# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proposes which blank disks hold models, as text that a person must enable. Private to the collection. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core import defaults
from .finding import Proposal
from .machine import Machine, disk_text

FAST_PATH = "/mnt/nvme/workspace"

LEAST_BYTES = 100 * 10**9
"""A smaller disk holds no model of use."""

NO_DISK = "/dev/disk/by-id/DISK"
"""Stands for a disk that a person must name. No machine has a disk of this name."""

DIRECTORIES = (
    {"path": "models"},
    {"path": "vllm_cache"},
    {"path": "inference_cache"},
    {"path": "scratch", "mode": "1777"},
)


def blank(machine: Machine) -> list[Mapping[str, Any]]:
    """The disks that are certainly blank and large enough: NVMe disks first, then the largest."""
    found = [disk for disk in machine.disks if not disk.get("obstacles") and (disk.get("size") or 0) >= LEAST_BYTES]
    return sorted(found, key=lambda disk: (not disk.get("nvme"), -disk["size"], disk["path"]))


def disks(machine: Machine) -> list[dict[str, Any]]:
    """The proposed value of common_disks; empty without blank disks."""
    fast = [disk for disk in blank(machine) if disk.get("nvme")]
    slow = [disk for disk in blank(machine) if not disk.get("nvme")]
    if fast and slow:
        return [_disk("models", slow[:1], defaults.STORE_PATH), _disk("work", fast, FAST_PATH, DIRECTORIES)]
    found = fast or slow[:1]
    return [_disk("models", found, defaults.STORE_PATH)] if found else []


def _disk(
    name: str, members: Sequence[Mapping[str, Any]], path: str, directories: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    join = {"join": "raid0"} if len(members) > 1 else {}
    more = {"directories": [dict(one) for one in directories]} if directories else {}
    return {
        "name": name,
        "devices": [disk["path"] for disk in members],
        **join,
        "filesystem": "xfs",
        "path": path,
        **more,
    }


def reason(machine: Machine) -> str:
    """What a person must know before enabling the lines of the proposal."""
    if disks(machine):
        return "Blank disks. If you enable these lines, the next run FORMATS the disks:"
    return "For a disk that you have wiped: name the disk, and enable these lines. The next run FORMATS the disk:"


def propose(machine: Machine, name: str) -> tuple[Proposal, dict[str, Any]]:
    """Findings and the question about disks, and the proposed variables, which answer the question."""
    found = Proposal()
    wanted = disks(machine)
    found.findings += [f"disk {disk_text(disk)}" for disk in machine.disks]
    if not wanted:
        found.findings.append("has no blank disk: models go to the root file system, unless another disk is mounted")
        found.ask(
            "common_disks",
            f"host_vars/{name}/main.yml",
            f"{name} has no blank disk of {LEAST_BYTES // 10**9} GB or more. May models fill the root file system? If "
            "so, only delete this question. If not, wipe a disk, name the disk in the lines of common_disks at the end "
            "of this file, and enable the lines",
        )
        return found, {"common_disks": [_disk("models", [{"path": NO_DISK}], defaults.STORE_PATH)]}
    answer: dict[str, Any] = {"common_disks": wanted}
    if len(wanted) > 1:
        answer["model_store_fast_path"] = f"{FAST_PATH}/models"
        answer["docker_data_root"] = f"{FAST_PATH}/docker"
    devices = [device for disk in wanted for device in disk["devices"]]
    found.ask(
        "common_disks",
        f"host_vars/{name}/main.yml",
        f"may these blank disks of {name} be formatted: {', '.join(devices)}? If so, enable the lines of common_disks. "
        "If not, only delete this question, and models fill the root file system",
    )
    return found, answer
