# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads settings of RDMA devices, their PCI functions and the IOMMU from files. Private to the collection."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...core import sysfs
from .. import pci, pci_config
from . import nearness

RDMA_CM = "sys/kernel/config/rdma_cm"
"""Has a directory for each device for which a program has created one. The kernel keeps the values without it."""

IOMMU_GROUPS = "sys/kernel/iommu_groups"

PASSTHROUGH = "identity"
"""The type of a group whose devices see the memory's own addresses."""


@dataclass(frozen=True)
class Pcie:
    """Settings of a device's PCI function, and of the bridges above. None if unknown."""

    gen: int | None
    width: int | None
    gen_max: int | None
    width_max: int | None
    max_read_request: int | None
    """Bytes."""
    max_payload: int | None
    """Bytes."""
    relaxed_ordering: bool | None
    acs_bridges: list[str]
    """The bridges that send packets between functions through the CPU: among the bridges above this function, and above
    each GPU that has only PCIe switches between itself and this function. Only root can read this."""
    iommu: str | None
    """The type of the function's IOMMU group: identity, DMA, DMA-FQ, …; None without an IOMMU."""


@dataclass(frozen=True)
class Iommu:
    """The IOMMU of the machine."""

    groups: int
    """0 if the IOMMU is off."""
    passthrough: bool
    """Whether the kernel's command line asks for iommu=pt."""
    given_away: list[str]
    """PCI functions that a virtual machine or a program has. They need ACS, which separates them from others."""


def pcie(root: Path, address: str, gpus: Sequence[pci.Device] = ()) -> Pcie:
    """The settings of a PCI function, and of the bridges above that function and above the GPUs that are near."""
    function = pci.device(root, address)
    found = pci_config.settings(pci_config.read(root, address))
    group = sysfs.link_name(root / pci.DEVICES / address / "iommu_group")
    return Pcie(
        gen=function.link.gen,
        width=function.link.width,
        gen_max=function.link.gen_max,
        width_max=function.link.width_max,
        max_read_request=found.max_read_request,
        max_payload=found.max_payload,
        relaxed_ordering=found.relaxed_ordering,
        acs_bridges=pci_config.redirecting(root, _bridges(function, gpus)),
        iommu=sysfs.read(root / IOMMU_GROUPS / group / "type") if group else None,
    )


def _bridges(function: pci.Device, gpus: Sequence[pci.Device]) -> list[str]:
    """The bridges that packets between a function and GPUs below the same switches can take, each once. The answers of
    a GPU enter at the bridge above the GPU. Source: calc_map_type_and_dist of Linux, drivers/pci/p2pdma.c."""
    near = [gpu for gpu in gpus if nearness.distance(function, gpu) in nearness.BELOW_SWITCHES]
    return list(dict.fromkeys(bridge for one in (function, *near) for bridge in one.upstream))


def rdma_cm(root: Path, device: str, port: int) -> tuple[str | None, int | None]:
    """The RoCE mode and the type of service of connections by rdma_cm; None without the directory."""
    directory = root / RDMA_CM / device / f"ports/{port}"
    return sysfs.read(directory / "default_roce_mode") or None, sysfs.read_int(directory / "default_roce_tos")


def partition_keys(root: Path, device: str, port: int) -> list[str] | None:
    """The keys of an InfiniBand port's partitions; None if the kernel shows none. Empty entries are left out."""
    directory = root / f"sys/class/infiniband/{device}/ports/{port}/pkeys"
    numbers = [sysfs.read_int(directory / str(index), 16) for index in sysfs.numbers(directory)]
    found = [f"0x{number:04x}" for number in numbers if number]
    return found or None


def iommu(root: Path) -> Iommu:
    """The IOMMU, by the files of the kernel."""
    words = (sysfs.read(root / "proc/cmdline") or "").split()
    drivers = root / "sys/bus/pci/drivers"
    return Iommu(
        groups=len(sysfs.numbers(root / IOMMU_GROUPS)),
        passthrough=any(re.fullmatch("iommu(\\.passthrough)?=(pt|1)", word) for word in words),
        given_away=sorted(
            address
            for driver in pci.GIVEN_AWAY
            for address in filter(None, map(pci.normalise, sysfs.names(drivers / driver)))
        ),
    )
