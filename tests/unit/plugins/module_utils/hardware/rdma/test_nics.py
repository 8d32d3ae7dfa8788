# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""RDMA-capable controllers without an RDMA device."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma.nics import Nic, without_rdma


def found(machine: Any, used: tuple[str, ...] = ()) -> list[Nic]:
    return without_rdma(machine.root, used)


@pytest.mark.parametrize(
    ("vendor", "device", "kind", "capable"),
    [
        ("0x15b3", "0x1021", "0x020000", True),
        ("0x15b3", "0x1003", "0x028000", True),
        ("0x15b3", "0xa2dc", "0x020700", True),
        ("0x15b3", "0xc2d5", "0x080100", False),
        ("0x1077", "0x7322", "0x0c0600", True),
        ("0x8086", "0x1592", "0x020000", True),
        ("0x8086", "0x24f0", "0x020800", True),
        ("0x8086", "0x1521", "0x020000", False),
        ("0x14e4", "0x1750", "0x020000", True),
        ("0x14e4", "0x165f", "0x020000", False),
        ("0x10de", "0x2330", "0x030200", False),
        ("", "", "", False),
    ],
)
def test_only_controllers_that_support_rdma_are_found(
    machine: Any, vendor: str, device: str, kind: str, capable: bool
) -> None:
    machine.pci("0000:5e:00.0", vendor=vendor, device=device, **{"class": kind})
    assert len(found(machine)) == capable


def test_a_controller_without_a_driver_is_found(machine: Any) -> None:
    machine.pci("0000:5e:00.0", device="0x1021", numa_node="1")
    reason = "no kernel driver is bound to it"
    assert found(machine) == [Nic("0000:5e:00.0", "0x15b3", "0x1021", None, 1, reason)]
    assert found(machine, used=("0000:5e:00.0",)) == []


def test_a_controller_whose_rdma_driver_is_not_loaded_is_found(machine: Any) -> None:
    """The vendor does not matter: the driver has an auxiliary device for RDMA."""
    function = machine.pci("0000:5e:00.0", driver="newnic", vendor="0xabcd", device="0x0001")
    machine.write(f"{function}/newnic.eth.0/uevent", "")
    assert found(machine) == []
    machine.write(f"{function}/newnic.rdma.0/uevent", "")
    assert [nic.reason for nic in found(machine)] == [
        "its driver newnic offers RDMA, but no RDMA driver is loaded for it"
    ]


def test_a_controller_whose_rdma_driver_made_no_device_is_found(machine: Any) -> None:
    function = machine.pci("0000:5e:00.0", driver="mlx5_core", device="0x1021")
    assert [nic.reason for nic in found(machine)] == ["its driver mlx5_core is bound, but offers no RDMA"]
    machine.link(f"{function}/mlx5_core.rdma.0/driver", "sys/bus/auxiliary/drivers/mlx5_ib.rdma")
    assert [nic.reason for nic in found(machine)] == [
        "its RDMA driver mlx5_ib.rdma is bound, but has no device: it failed, or is in another network namespace"
    ]


def test_a_controller_that_has_fallen_off_the_bus_is_found(machine: Any) -> None:
    machine.pci("0000:5e:00.0", device="0x1021", revision="0xff")
    assert [nic.reason for nic in found(machine)] == ["it has fallen off the bus"]


def test_a_controller_of_a_virtual_machine_is_left_out(machine: Any) -> None:
    machine.pci("0000:5e:00.2", driver="vfio-pci", device="0x101e")
    assert found(machine) == []


def test_the_second_port_of_a_bond_has_no_device_of_its_own(machine: Any) -> None:
    function = machine.pci("0000:5e:00.1", driver="mlx5_core", device="0x101d")
    machine.netdev("ens1f1", function)
    assert len(found(machine, used=("0000:5e:00.0",))) == 1
    machine.link(f"{function}/net/ens1f1/master", "sys/class/net/bond0")
    assert found(machine, used=("0000:5e:00.0",)) == []
    assert len(found(machine, used=("0000:1a:00.0",))) == 1
