# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds network controllers that support RDMA, but have no RDMA device. Private to the collection."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from ...core import sysfs
from .. import pci

NETWORK, SERIAL_BUS = 0x02, 0x0C
"""Base classes of PCI. Before PCI 3.0, SERIAL_BUS contained InfiniBand controllers. Source: pci.ids."""

INFINIBAND = (0x0207, 0x0C06)
"""Classes of InfiniBand controllers: now, and before PCI 3.0. Source: pci.ids."""

MELLANOX = 0x15B3
"""Since ConnectX-2, all network controllers of this vendor support RDMA. Source: tables of mlx4_core and mlx5_core."""

CAPABLE = {
    0x8086: {
        *(0x1591, 0x1592, 0x1593, 0x1599, 0x159A, 0x159B),  # E810, irdma
        *(0x24F0, 0x24F1),  # Omni-Path, hfi1
    },
    0x14E4: {
        *(0x16CE, 0x16CF, 0x16DF),  # BCM5731x, bnxt_re
        *(0x16D6, 0x16D7, 0x16D8, 0x16D9, 0x16E2, 0x16E3),  # BCM5741x
        *(0x1750, 0x1751, 0x1752, 0x1760),  # BCM5750x, BCM57608
    },
}
"""Controllers of other vendors, by vendor and device. Sources: pci.ids; the tables of ice and bnxt_en."""

RDMA_FUNCTION = re.compile(r"[a-z0-9_]+\.(?:rdma|roce|iwarp)\.[0-9]+")
"""Name of an auxiliary device, below a PCI device, for an RDMA driver to bind to: mlx5_core.rdma.0, ice.roce.1."""


@dataclass(frozen=True)
class Nic:
    """A controller without an RDMA device."""

    pci_address: str
    vendor_id: str
    device_id: str
    driver: str | None
    numa_node: int | None
    reason: str


def without_rdma(root: Path, used: Collection[str]) -> list[Nic]:
    """The controllers below `root`/sys without an RDMA device; `used` are the addresses of controllers with one."""
    found = []
    for function in _controllers(root):
        offers = _offers(root, function)
        capable = offers or _capable(function)
        if capable and function.address not in used and function.driver not in pci.GIVEN_AWAY:
            # The ports of a bond share one RDMA device, which belongs to the first port.
            if _bonded(root, function) and any(_slot(address) == _slot(function.address) for address in used):
                continue
            found.append(
                Nic(
                    pci_address=function.address,
                    vendor_id=f"0x{function.vendor or 0:04x}",
                    device_id=f"0x{function.device or 0:04x}",
                    driver=function.driver,
                    numa_node=function.numa_node,
                    reason=_reason(function, offers),
                )
            )
    return found


def _controllers(root: Path) -> list[pci.Device]:
    found = []
    for address in filter(None, map(pci.normalise, sysfs.names(root / pci.DEVICES))):
        whole_class = sysfs.read_int(f"{root}/{pci.DEVICES}/{address}/class", 16)
        # A machine has hundreds of other functions, and each takes a dozen reads.
        if whole_class is not None and whole_class >> 16 in (NETWORK, SERIAL_BUS):
            found.append(pci.device(root, address))
    return found


def _capable(function: pci.Device) -> bool:
    if function.class_code in INFINIBAND:
        return True
    if function.class_code is None or function.class_code >> 8 != NETWORK:
        return False
    return function.vendor == MELLANOX or function.device in CAPABLE.get(function.vendor or 0, ())


def _offers(root: Path, function: pci.Device) -> list[Path]:
    directory = root / pci.DEVICES / function.address
    return [directory / name for name in sysfs.names(directory) if RDMA_FUNCTION.fullmatch(name)]


def _bonded(root: Path, function: pci.Device) -> bool:
    directory = root / pci.DEVICES / function.address / "net"
    return any(sysfs.link_name(directory / name / "master") for name in sysfs.names(directory))


def _slot(address: str) -> str:
    return address.rpartition(".")[0]


def _reason(function: pci.Device, offers: list[Path]) -> str:
    if function.lost:
        return "it has fallen off the bus"
    if function.driver is None:
        return "no kernel driver is bound to it"
    takers = [sysfs.link_name(offer / "driver") for offer in offers]
    if not takers:
        return f"its driver {function.driver} is bound, but offers no RDMA"
    if None in takers:
        return f"its driver {function.driver} offers RDMA, but no RDMA driver is loaded for it"
    return f"its RDMA driver {takers[0]} is bound, but has no device: it failed, or is in another network namespace"
