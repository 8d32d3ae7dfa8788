# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Made-up machines for the discovery, in the form of the results of the facts modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.machine import Machine, read
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu.products import BY_PRODUCT

Facts = dict[str, Any]

KINDS: dict[str, Facts] = {
    "hgx-h100": {"product": "H100-80GB", "count": 8, "switches": 4, "ports": 8, "memory": 2048},
    "hgx-h200": {"product": "H200", "count": 8, "switches": 4, "ports": 8, "memory": 2048},
    "hgx-b200": {"product": "B200", "count": 8, "managers": 2, "ports": 8, "memory": 2048, "debian": 13},
    "a100": {"product": "A100-80GB", "count": 8, "switches": 6, "ports": 8, "memory": 1024},
    "l40s": {"product": "L40S", "count": 4, "memory": 512},
    "v100s": {"product": "V100S-32GB", "count": 3, "memory": 256},
    "gb10": {"product": "GB10", "count": 1, "memory": 128, "architecture": "aarch64", "debian": None},
    "none": {"product": "", "count": 0, "memory": 64},
}
"""Machines by kind. `none` has no GPU, as a gateway."""


def gpu(number: int, product: str) -> Facts:
    """A GPU on the bus of a machine without a driver."""
    known = BY_PRODUCT[product]
    return {
        "index": None,
        "name": None,
        "product": product,
        "architecture": known.architecture,
        "compute_capability": known.compute_capability,
        "pci_bus_id": f"0000:{0x1A + number:02x}:00.0",
        "memory_total_mib": None,
        "reported": False,
        "excluded": False,
        "driver": None,
    }


def disk(name: str, gigabytes: int, *obstacles: str) -> Facts:
    """A disk; blank without obstacles."""
    return {
        "path": f"/dev/disk/by-id/{name}",
        "size": gigabytes * 10**9,
        "model": "Example Disk",
        "nvme": name.startswith("nvme"),
        "obstacles": list(obstacles),
    }


def results_of(kind: str, number: int = 11, **changes: Any) -> Facts:
    """The results of a run for a machine of a kind; `changes` replace facts of `system` or results of host_facts."""
    plan = KINDS[kind]
    address = f"10.0.0.{number}"
    debian = plan.get("debian", 12)
    system = {
        "hostname": f"{kind}-{number}",
        "machine_id": f"{number:032x}",
        "boot_id": f"boot-{number}",
        "debian": debian,
        "pretty_name": f"Debian GNU/Linux {debian}" if debian else "Ubuntu 24.04",
        "proxmox": "",
        "architecture": plan.get("architecture", "x86_64"),
        "kernel": "6.1.0-50-amd64",
        "cmdline": "quiet",
        "memory_mib": plan["memory"] * 1024,
        "numa_nodes": 2,
        "virtualization": "",
        "repositories": ["http://deb.debian.org/debian"],
        "default_device": "eno1",
        "addresses": [
            {"device": "lo", "address": "127.0.0.1"},
            {"device": "eno1", "address": address},
            {"device": "docker0", "address": "172.17.0.1"},
        ],
    }
    host: Facts = {
        "system": {**system, **{key: value for key, value in changes.items() if key in system}},
        "disks": [disk("ata-root", 480, "it has the partitions sda1"), disk("nvme-a", 3840), disk("nvme-b", 3840)],
        "services": [],
        "docker": {"owner": "", "running": []},
        "firewall": {"others": [], "foreign_rules": False},
        "secure_boot": {"efi": True, "enabled": False},
        "clock": {"synchronized": True, "daemons": ["systemd-timesyncd"]},
    }
    host |= {key: value for key, value in changes.items() if key in host}
    ports = [{"port": 1, "link_layer": "InfiniBand", "state": "ACTIVE"}]
    return {
        "address": address,
        "host": host,
        "gpu": {
            "gpus": changes.get("gpus", [gpu(one, plan["product"]) for one in range(plan["count"])]),
            "nvswitches": [f"0000:{5 + one:02x}:00.0" for one in range(plan.get("switches", 0))],
            "nvswitch_managers": [f"0000:{5 + one:02x}:00.0" for one in range(plan.get("managers", 0))],
            "gpu_driver": changes.get("driver", {"module_version": None, "package": None, "error": None}),
        },
        "rdma": {
            "rdma_devices": [
                {"name": f"mlx5_{one}", "pci_address": f"0000:4{one}:00.0", "ports": ports}
                for one in range(plan.get("ports", 0))
            ],
            "rdma_nics_without_driver": [],
        },
    }


@pytest.fixture
def results() -> Callable[..., Facts]:
    """Makes the results of a run for a machine."""
    return results_of


@pytest.fixture
def machine() -> Callable[..., Machine]:
    """Makes a machine of a kind."""

    def make(kind: str, number: int = 11, **changes: Any) -> Machine:
        found = read(f"10.0.0.{number}", results_of(kind, number, **changes))
        assert isinstance(found, Machine)
        return found

    return make


@pytest.fixture
def a_disk() -> Callable[..., Facts]:
    """Makes a disk."""
    return disk
