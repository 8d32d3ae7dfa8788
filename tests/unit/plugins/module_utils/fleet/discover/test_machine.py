# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine from its facts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.machine import Machine, read

Make = Callable[..., Machine]


def test_the_summary_of_a_machine_is_one_line(machine: Make) -> None:
    assert machine("hgx-h100").summary() == (
        "8 x H100-80GB, NVSwitch, 2048 GiB of main memory, 2 NUMA nodes, 8 RDMA ports, 3 disks, Debian 12"
    )
    assert machine("none", proxmox="8.4").summary().startswith("no NVIDIA GPU")
    one = replace(machine("none"), rdma=[{"name": "mlx5_0", "ports": [{"port": 1}]}])
    assert ", 1 RDMA port, " in one.summary()
    assert machine("none", proxmox="8.4").summary().endswith("Debian 12 with Proxmox VE 8.4")


def test_bridges_and_link_local_addresses_are_no_addresses(machine: Make) -> None:
    found = [{"device": "virbr0", "address": "192.168.122.1"}, {"device": "eno1", "address": "fe80::1"}]
    assert machine("none", addresses=found).addresses == []
    assert machine("none").addresses == ["10.0.0.11"]


def test_gpus_of_virtual_machines_are_not_usable(machine: Make) -> None:
    gpus = [{"product": "L40S", "excluded": True}, {"product": "L40S", "excluded": False}]
    assert len(machine("l40s", gpus=gpus).usable_gpus) == 1


def test_other_architectures_and_other_releases_of_debian_are_unsupported(machine: Make) -> None:
    assert machine("l40s").unsupported == ""
    assert machine("gb10").unsupported.startswith("is aarch64")
    assert machine("l40s", debian=11).unsupported.startswith("runs Debian 11")


def test_a_machine_with_an_error_is_read_as_the_error() -> None:
    assert read("a", {"error": "cannot be reached"}) == "cannot be reached"
