# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network of a member: its interface, and its RDMA."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang import network
from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang.network import Network

ADDRESSES = [
    {"ifname": "lo", "addr_info": [{"local": "127.0.0.1", "prefixlen": 8}]},
    {"ifname": "bond0", "addr_info": [{"local": "10.0.0.1", "prefixlen": 24}, {"local": "fd00::1", "prefixlen": 64}]},
]


def ip(command: Sequence[str]) -> Outcome:
    assert command[0] == "ip"
    return Outcome(0, json.dumps(ADDRESSES))


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "sys/class/net/bond0/mtu", "9000")
    write(tmp_path / "sys/class/net/bond0/speed", "25000")
    return tmp_path


def port(root: Path, device: str, state: str) -> None:
    write(root / f"sys/class/infiniband/{device}/ports/1/state", state)
    write(root / f"sys/class/infiniband/{device}/ports/1/rate", "400 Gb/sec (4X NDR)")


def test_the_interface_that_has_the_address_is_found(root: Path) -> None:
    found = network.find("10.0.0.1", root, ip)
    assert found == Network("bond0", 9000, 25.0) and not found.has_rdma
    assert str(found) == "no RDMA, bond0 of 25 Gb/s"
    assert network.find("fd00:0::1", root, ip).interface == "bond0"
    assert network.find("10.0.0.9", root, ip) == Network()
    assert network.find("nonsense", root, ip).interface == ""


def test_a_virtual_interface_has_no_speed(root: Path) -> None:
    write(root / "sys/class/net/bond0/speed", "-1")
    assert str(network.find("10.0.0.1", root, ip)) == "no RDMA"


def test_only_active_rdma_ports_count(root: Path) -> None:
    port(root, "mlx5_0", "4: ACTIVE")
    port(root, "mlx5_1", "1: DOWN")
    found = network.find("10.0.0.1", root, ip)
    assert (found.rdma_devices, found.rdma_gbps, found.has_rdma) == (("mlx5_0",), 400, True)
    assert str(found) == "RDMA (mlx5_0, 400 Gb/s)"
    assert Network.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_without_the_program_ip_the_interface_is_unknown(root: Path) -> None:
    failed = network.find("10.0.0.1", root, lambda command: Outcome(None, failure="not_installed"))
    assert failed == Network()
