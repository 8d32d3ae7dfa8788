# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts of a node with rails, as rdma_facts returns them."""

from __future__ import annotations

import copy
from typing import Any

DCB = {
    "pfc": [],
    "pfc_delay": 0,
    "ets": {
        "willing": False,
        "bandwidth": [0] * 8,
        "algorithms": ["vendor"] * 8,
        "classes": [1, 0, 2, 3, 4, 5, 6, 7],
    },
    "dscp": {},
    "modes": ["host", "ieee"],
    "errors": [],
}


def port(number: int = 0, **facts: Any) -> dict[str, Any]:
    """A port of an Ethernet rail, fresh after a boot."""
    return {
        "port": 1,
        "state": "ACTIVE",
        "physical_state": "LinkUp",
        "link_layer": "Ethernet",
        "rate_gbps": 400.0,
        "netdev": f"ens{number}",
        "netdev_mtu": 1500,
        "netdev_mtu_max": 9978,
        "netdev_mac": f"02:00:00:00:00:{number:02x}",
        "netdev_addresses": [f"fe80::{number}/64"],
        "netdev_managers": [],
        "mtu_active": 1024,
        "mtu_max": 4096,
        "gids": [],
        "recommended_gid_index": 3,
        "dcb": copy.deepcopy(DCB),
        "congestion": {"cnp_dscp": 0, "cnp_priority": 0, "ecn": None, "directory": "/x", "kind": "debugfs"},
        "rdma_cm_mode": None,
        "rdma_cm_tos": None,
        **facts,
    }


def device(number: int = 0, *ports: dict[str, Any], **facts: Any) -> dict[str, Any]:
    """A device with the given ports, by default one."""
    return {
        "name": f"rocep{number}s0",
        "driver": "mlx5_core",
        "firmware": "28.41.1000",
        "pci_address": f"0000:{number + 16:02x}:00.0",
        "nearest_gpus": [f"0000:{number + 128:02x}:00.0"],
        "nearest_gpu_distance": "PIX",
        "gpu_distances": {f"0000:{number + 128:02x}:00.0": "PIX"},
        "pcie": {
            "gen": 5,
            "width": 16,
            "gen_max": 5,
            "width_max": 16,
            "max_payload": 256,
            "max_read_request": 512,
            "relaxed_ordering": True,
            "acs_bridges": ["0000:10:01.0"],
            "iommu": None,
        },
        "dma_buf": True,
        "ports": list(ports) or [port(number)],
        **facts,
    }


def infiniband(number: int = 0, **facts: Any) -> dict[str, Any]:
    """A device of InfiniBand."""
    inner = port(number, link_layer="InfiniBand", netdev=f"ib{number}", netdev_mtu=2044, dcb=None, congestion=None)
    keys = ["0xffff"]
    return device(number, {**inner, "lid": 7, "sm_lid": 1, "partition_keys": keys, **facts}, name=f"ibp{number}s0")


def facts(*devices: dict[str, Any], **more: Any) -> dict[str, Any]:
    """All facts of a node with these devices."""
    return {
        "rdma_devices": list(devices),
        "rdma_gpudirect": {"peermem": False, "peermem_module": None, "dma_buf": True, "dma_buf_reason": "open modules"},
        "rdma_iommu": {"groups": 0, "passthrough": False, "given_away": []},
        "rdma_nics_without_driver": [],
        **more,
    }


def roce(rails: int = 2, **more: Any) -> dict[str, Any]:
    """The facts of a node with Ethernet rails."""
    return facts(*(device(number) for number in range(rails)), **more)
