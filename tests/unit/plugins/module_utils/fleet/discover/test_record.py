# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a later discovery reports as changed."""

from __future__ import annotations

from collections.abc import Callable

from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.machine import Machine
from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.record import (
    differences,
    proposals,
    record,
)

Make = Callable[..., Machine]


def test_the_same_machine_has_no_differences(machine: Make) -> None:
    assert differences("gpu-01", record(machine("hgx-h100")), record(machine("hgx-h100"))) == []


def test_each_part_that_has_changed_gets_a_line(machine: Make) -> None:
    before = machine("l40s")
    now = machine(
        "l40s",
        memory_mib=256 * 1024,
        gpus=list(before.gpus[:3]),
        disks=[{**before.disks[0]}, {**before.disks[1], "obstacles": ["it contains xfs"]}],
        services=[{"kind": "jupyter", "port": 8888}],
    )
    assert differences("gpu-01", record(before), record(now)) == [
        "gpu-01: memory_gib was 512, is 256",
        "gpu-01: gpus: 0000:1d:00.0 is gone (L40S)",
        "gpu-01: disks: /dev/disk/by-id/nvme-b is gone (blank)",
        "gpu-01: disks: /dev/disk/by-id/nvme-a was blank, is it contains xfs",
        "gpu-01: services: jupyter on port 8888 is new",
    ]


def test_only_variables_that_the_inventory_sets_are_compared() -> None:
    lines = proposals("gpu-01", {"nvidia_driver_version": "570"}, {"nvidia_driver_version": "580", "removed": 1})
    assert lines == ["gpu-01: nvidia_driver_version is '570' in the inventory, this discovery proposes '580'"]
