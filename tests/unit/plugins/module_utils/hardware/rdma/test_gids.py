# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""GIDs, their types, and the recommended GID."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma.gids import Gid, gids, recommended

LOCAL = "fe80:0000:0000:0000:5e25:73ff:fed1:2a40"
GLOBAL = "2001:0db8:0000:0000:0000:0000:0000:0007"
IPV4 = "0000:0000:0000:0000:0000:ffff:c000:0207"
APIPA = "0000:0000:0000:0000:0000:ffff:a9fe:0102"
ZERO = "0000:0000:0000:0000:0000:0000:0000:0000"


@pytest.fixture
def roce_port(machine: Any) -> str:
    port: str = machine.port(machine.rdma("mlx5_0"))
    machine.gid(port, 0, LOCAL, "IB/RoCE v1", "ens1")
    machine.gid(port, 1, LOCAL, "RoCE v2", "ens1")
    machine.gid(port, 2, IPV4, "IB/RoCE v1", "ens1")
    machine.gid(port, 10, IPV4, "RoCE v2", "ens1.5")
    machine.gid(port, 3, ZERO)
    machine.gid(port, 4, "no gid")
    (machine.root / port / "gids/5").mkdir()
    return port


def test_used_entries_are_sorted_by_index(machine: Any, roce_port: str) -> None:
    assert gids(machine.root / roce_port, "Ethernet", "CA") == [
        Gid(0, LOCAL, "RoCE v1", "ens1"),
        Gid(1, LOCAL, "RoCE v2", "ens1"),
        Gid(2, IPV4, "RoCE v1", "ens1"),
        Gid(10, IPV4, "RoCE v2", "ens1.5"),
    ]


def test_a_type_that_cannot_be_read_is_unknown(machine: Any) -> None:
    port = machine.port(machine.rdma("mlx5_0"))
    machine.gid(port, 0, LOCAL)
    (machine.root / port / "gid_attrs/types/0").mkdir(parents=True)
    assert gids(machine.root / port, "Ethernet", "CA") == [Gid(0, LOCAL, None, None)]


def test_a_gid_of_infiniband_has_the_type_ib_and_entries_with_only_the_prefix_are_left_out(machine: Any) -> None:
    port = machine.port(machine.rdma("mlx5_0"), link_layer="InfiniBand")
    machine.gid(port, 0, "fe80:0000:0000:0000:5e25:7303:00d1:2a40", "IB/RoCE v1")
    machine.gid(port, 1, "fe80:0000:0000:0000:0000:0000:0000:0000", "IB/RoCE v1")
    assert [(one.index, one.type) for one in gids(machine.root / port, "InfiniBand", "CA")] == [(0, "IB")]


def test_a_gid_of_iwarp_has_no_type(machine: Any) -> None:
    port = machine.port(machine.rdma("siw0", node_type="4: RNIC"))
    machine.gid(port, 0, "0642:1aff:0b07:0000:0000:0000:0000:0001", "IB/RoCE v1")
    assert [one.type for one in gids(machine.root / port, "Ethernet", "RNIC")] == [None]


def test_a_port_without_a_table_has_no_gids(machine: Any) -> None:
    assert gids(machine.root / "nowhere", "Ethernet", "CA") == []


def test_a_gid_may_contain_an_ipv4_or_a_link_local_address() -> None:
    assert Gid(0, IPV4, None, None).ipv4 == "192.0.2.7"
    assert Gid(0, GLOBAL, None, None).ipv4 is None
    assert [Gid(0, gid, None, None).link_local for gid in (LOCAL, APIPA, IPV4, GLOBAL)] == [True, True, False, False]


def test_roce_v2_with_ipv4_is_recommended(machine: Any, roce_port: str) -> None:
    choice = recommended(gids(machine.root / roce_port, "Ethernet", "CA"), "Ethernet", "ens1")
    assert (choice.index, choice.reason) == (10, "RoCE v2 with IPv4 192.0.2.7 of ens1.5")


@pytest.mark.parametrize(
    ("entries", "index"),
    [
        ([(3, IPV4, "ens1"), (5, IPV4, "ens1")], 3),
        ([(3, IPV4, "ens1.5"), (5, IPV4, "ens1")], 5),
        ([(3, APIPA, "ens1"), (5, IPV4, "ens1.5")], 5),
        ([(3, APIPA, "ens1")], 3),
        ([(3, IPV4, None)], 3),
    ],
)
def test_a_routable_gid_of_the_ports_own_network_device_is_preferred(entries: list[Any], index: int) -> None:
    table = [Gid(number, gid, "RoCE v2", netdev) for number, gid, netdev in entries]
    assert recommended(table, "Ethernet", "ens1").index == index


@pytest.mark.parametrize(
    ("entries", "layer", "reason"),
    [
        ([Gid(0, LOCAL, "IB", None)], "InfiniBand", "InfiniBand: only RoCE needs a GID index"),
        ([], "Ethernet", "no RoCE v2 GID with IPv4: ens1 has no GID at all"),
        ([Gid(1, GLOBAL, "RoCE v2", "ens1")], "Ethernet", "no RoCE v2 GID with IPv4: ens1 has no IPv4 address"),
        ([Gid(0, IPV4, "RoCE v1", "ens1")], "Ethernet", "no RoCE v2 GID with IPv4: ens1 has RoCE v1 only"),
        ([Gid(0, IPV4, None, None)], "Ethernet", "no RoCE v2 GID with IPv4: ens1 has no GID that is known to be RoCE"),
    ],
)
def test_without_a_recommended_gid_there_is_a_reason(entries: list[Gid], layer: str, reason: str) -> None:
    choice = recommended(entries, layer, "ens1")
    assert (choice.index, choice.reason) == (None, reason)
