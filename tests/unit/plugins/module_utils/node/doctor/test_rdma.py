# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ports of RDMA, from a sysfs of files."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor import rdma
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.check import (
    OK,
    WARN,
    Once,
)

from ..conftest import write
from .conftest import host


def plug_port(root: Path, device: str, **attributes: str) -> Path:
    """A port in sysfs: active, of RoCE, unless the attributes say otherwise. Returns its directory."""
    port = root / f"sys/class/infiniband/{device}/ports/1"
    active = {"state": "4: ACTIVE", "link_layer": "Ethernet", "rate": "100 Gb/sec (4X EDR)"}
    for name, text in {**active, **attributes}.items():
        write(port / name, text)
    return port


def test_a_node_without_rdma_is_fine(tmp_path: Path) -> None:
    assert {one.find(host(tmp_path)).status for one in rdma.CHECKS} == {OK}


def test_a_port_is_active_or_down_and_wants_an_address(tmp_path: Path) -> None:
    port = plug_port(tmp_path, "mlx5_0")
    assert rdma.ports(host(tmp_path)).status == OK
    lacking = rdma.gids(host(tmp_path))
    assert lacking.status == WARN and "mlx5_0/1" in lacking.message
    (port / "state").write_text("1: DOWN")
    assert rdma.ports(host(tmp_path)).status == WARN


def test_a_slow_link_of_infiniband_is_seen(tmp_path: Path) -> None:
    for number, rate in enumerate(("400 Gb/sec (4X NDR)", "400 Gb/sec (4X NDR)", "200 Gb/sec (2X NDR)")):
        plug_port(tmp_path, f"mlx5_{number}", link_layer="InfiniBand", rate=rate)
    found = rdma.speed(host(tmp_path))
    assert found.status == WARN and found.message == "mlx5_2/1 runs at 200 Gb/s, the fastest at 400"


def test_a_card_without_its_driver_is_named_where_others_do_rdma(tmp_path: Path) -> None:
    plug_port(tmp_path, "mlx5_0")
    one = host(tmp_path)
    lacking = {**one.rdma(), "rdma_nics_without_driver": [{"pci_address": "0000:3b:00.0"}]}
    one.rdma = Once(lambda: lacking)
    found = rdma.drivers(one)
    assert found.status == WARN and "0000:3b:00.0" in found.message
    one.rdma = Once(lambda: {**lacking, "rdma_devices": []})
    assert rdma.drivers(one).status == OK
