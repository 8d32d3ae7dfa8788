# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which disks are proposed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.machine import Machine
from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.storage import NO_DISK, disks, propose

Make = Callable[..., Machine]
Disk = Callable[..., dict[str, Any]]


def test_only_blank_disks_are_proposed(machine: Make, a_disk: Disk) -> None:
    full, small, blank = a_disk("nvme-x", 4000, "it contains ext4"), a_disk("nvme-s", 50), a_disk("nvme-a", 3840)
    wanted = disks(machine("l40s", disks=[full, small, blank]))
    assert wanted == [
        {"name": "models", "devices": ["/dev/disk/by-id/nvme-a"], "filesystem": "xfs", "path": "/mnt/models"}
    ]


def test_slow_disks_are_for_the_store_and_fast_disks_for_the_copy(machine: Make, a_disk: Disk) -> None:
    found, answer = propose(
        machine("l40s", disks=[a_disk("ata-big", 16000), a_disk("nvme-a", 3840), a_disk("nvme-b", 3840)]), "gpu-01"
    )
    assert [(one["name"], one.get("join")) for one in answer["common_disks"]] == [("models", None), ("work", "raid0")]
    assert answer["model_store_fast_path"] == "/mnt/nvme/workspace/models"
    assert "may these blank disks of gpu-01 be formatted" in found.questions[0].text


def test_a_machine_without_blank_disks_is_a_question(machine: Make, a_disk: Disk) -> None:
    found, answer = propose(machine("l40s", disks=[a_disk("ata-root", 480, "it is mounted at /")]), "gpu-01")
    # The question names the lines that the machine's file has.
    (question,) = found.questions
    assert "has no blank disk" in question.text and "only delete this question" in question.text
    assert list(answer) == ["common_disks"] and "common_disks at the end of this file" in question.text
    assert answer["common_disks"][0]["devices"] == [NO_DISK]
    assert "disk /dev/disk/by-id/ata-root (480 GB, Example Disk): it is mounted at /" in found.findings
