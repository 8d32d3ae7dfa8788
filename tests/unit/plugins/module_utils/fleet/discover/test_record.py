# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a later discovery reports as changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.machine import Machine
from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.record import (
    UNREAD,
    differences,
    proposals,
    record,
    settled,
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


def test_flags_that_the_operator_has_added_are_no_difference() -> None:
    proposed = {"models": {"qwen": {"model": "Qwen/Qwen3-8B", "tensor-parallel-size": 2}}}
    own: dict[str, Any] = {
        "qwen": {"model": "Qwen/Qwen3-8B", "tensor-parallel-size": 2, "max-model-len": 512},
        "second": {"model": "/m"},
    }
    assert proposals("gpu-01", {"models": own}, proposed) == []
    own["qwen"]["tensor-parallel-size"] = 4
    own["second"]["hf-token"] = UNREAD
    (line,) = proposals("gpu-01", {"models": own}, proposed)
    assert "this discovery proposes" in line and "'hf-token': (not read)" in line
    own["qwen"]["tensor-parallel-size"] = UNREAD
    assert proposals("gpu-01", {"models": own}, proposed) == []


def test_what_the_inventory_has_set_up_is_no_difference(machine: Make) -> None:
    before = record(machine("l40s"))
    vllm = {"kind": "vllm", "port": 5005}
    disks = [{**disk, "obstacles": ["it contains xfs"]} for disk in machine("l40s").disks]
    after = record(machine("l40s", disks=disks, services=[vllm, {"kind": "jupyter", "port": 8888}]))
    after["driver"] = "580.105.08"
    declared = {
        "nvidia_driver_version": "580",
        "instances": [{"name": "main", "port": 5005}],
        "common_disks": [{"devices": [disk["path"] for disk in disks[1:]]}],
    }
    lines = differences("gpu-01", settled(before, after, declared), after)
    assert lines == [
        f"gpu-01: disks: {disks[0]['path']} was it has the partitions sda1, is it contains xfs",
        "gpu-01: services: jupyter on port 8888 is new",
    ]
    # A driver that the inventory does not declare is a difference. So is each change, if the lists are templates.
    templates = {"nvidia_driver_version": "570", "instances": "{{ mine }}", "common_disks": "{{ mine }}"}
    assert len(differences("gpu-01", settled(before, after, templates), after)) == len(disks) + 3
