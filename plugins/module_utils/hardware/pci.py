# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads PCI devices from sysfs, with or without a driver. Private to the collection."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core import sysfs

DEVICES = "sys/bus/pci/devices"

ADDRESS = re.compile(r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})(?:\.([0-7]))?", re.IGNORECASE)

NVIDIA = 0x10DE
GPU_CLASSES = (0x0300, 0x0302)
"""VGA and 3D controllers. A GPU's audio and USB functions, and NVSwitches, have other classes. Source: pci.ids, class
03."""
NVSWITCH_CLASSES = (0x0680,)
"""Up to NVLink 4, an NVSwitch is an "other bridge". Later NVSwitches are not PCI devices of the host. Source: pci.ids,
class 06."""

MELLANOX = 0x15B3
INFINIBAND_CLASSES = (0x0207,)
SWITCH_MANAGEMENT = b"SW_MNG"
"""Text in the vital product data (field SMDL) of a ConnectX that manages NVSwitches of NVLink 5, instead of carrying
traffic. Source: NVIDIA's fabric manager, nvidia-fabricmanager-start.sh."""
VPD_BYTES = 1024
"""How many bytes of the vital product data are read. A ConnectX has some hundreds; four bytes take up to 1 ms."""

GIVEN_AWAY = ("vfio-pci", "pci-stub", "uio_pci_generic", "igb_uio")
"""Drivers that give a device to a virtual machine or a program, so this system does not use it."""

GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}
"""PCIe generation by GT/s of one lane. Source: pcie_link_speed of drivers/pci/probe.c."""

WIDTHS = (1, 2, 4, 8, 12, 16, 32)
"""Possible numbers of lanes. A lost device reads as 63. Source: PCI_EXP_LNKSTA_NLW of linux/pci_regs.h."""


@dataclass(frozen=True)
class Link:
    """A PCIe link: generation and lanes, now and at most for the device. None if unknown."""

    gen: int | None
    width: int | None
    gen_max: int | None
    width_max: int | None


@dataclass(frozen=True)
class Device:
    """A PCI function. Unknown numbers are None."""

    address: str
    vendor: int | None
    device: int | None
    subsystem_vendor: int | None
    subsystem_device: int | None
    class_code: int | None
    """Class and subclass, without the programming interface: 0x0302 for a 3D controller."""
    driver: str | None
    """The bound kernel driver; None without one."""
    numa_node: int | None
    """None if the firmware does not report it, which is usual on a machine with only one NUMA node."""
    link: Link
    lost: bool
    """Whether it has fallen off the bus: all bits of its registers read as one, which lspci shows as (rev ff)."""
    upstream: tuple[str, ...]
    """Root complex and bridges above it, from the top: ("pci0000:15", "0000:15:01.0"). Devices with more common bridges
    are nearer to each other. Empty if sysfs is a copy without links."""


def normalise(text: str) -> str | None:
    """An address in the form of sysfs, 0000:1b:00.0, from any usual form: a domain of eight digits or none, upper case,
    or no function, which means the first. None if the text is not an address.
    """
    match = ADDRESS.fullmatch(text.strip())
    if match is None:
        return None
    domain, bus, slot, function = (int(part or "0", 16) for part in match.groups())
    return f"{domain:04x}:{bus:02x}:{slot:02x}.{function:x}" if slot < 32 else None


def devices(root: Path) -> list[Device]:
    """Every PCI function below `root`/sys, by address. Empty without PCI."""
    return [device(root, address) for address in _addresses(root)]


def nvidia_gpus(root: Path) -> list[Device]:
    """NVIDIA's GPUs only, because a machine has hundreds of other functions, whose registers take time to read."""
    return [device(root, address) for address in _of(NVIDIA, root, GPU_CLASSES)]


def nvswitches(root: Path) -> list[str]:
    """The addresses of the NVSwitches on the bus, which connect GPUs and need a fabric manager."""
    return _of(NVIDIA, root, NVSWITCH_CLASSES)


def nvswitch_managers(root: Path) -> list[str]:
    """The addresses of the InfiniBand functions through which a host manages NVSwitches that are not on its bus.

    Slow, because it reads the vital product data of NICs. Call it only for hosts that may have such NVSwitches.
    """
    return [
        address
        for address in _of(MELLANOX, root, INFINIBAND_CLASSES)
        if SWITCH_MANAGEMENT in (sysfs.read_bytes(root / DEVICES / address / "vpd", limit=VPD_BYTES) or b"")
    ]


def _of(vendor: int, root: Path, classes: Sequence[int]) -> list[str]:
    return [
        address
        for address in _addresses(root)
        if sysfs.read_int(root / DEVICES / address / "vendor", 16) == vendor
        and (sysfs.read_int(root / DEVICES / address / "class", 16) or 0) >> 8 in classes
    ]


def sort_key(address: str) -> list[int]:
    """Sorts normalised addresses in the order of the bus, domains of five digits last."""
    return [int(part, 16) for part in re.split("[:.]", address) if part]


def device(root: Path, address: str) -> Device:
    """The function at a normalised address. If there is none, all its numbers are None."""
    path = root / DEVICES / address
    whole_class = sysfs.read_int(path / "class", 16)
    numa_node = sysfs.read_int(path / "numa_node")
    registers = sysfs.read_bytes(path / "config", limit=4)
    return Device(
        address=address,
        vendor=sysfs.read_int(path / "vendor", 16),
        device=sysfs.read_int(path / "device", 16),
        subsystem_vendor=sysfs.read_int(path / "subsystem_vendor", 16),
        subsystem_device=sysfs.read_int(path / "subsystem_device", 16),
        class_code=None if whole_class is None else whole_class >> 8,
        driver=sysfs.link_name(path / "driver"),
        numa_node=None if numa_node is None or numa_node < 0 else numa_node,
        link=Link(
            gen=_generation(path / "current_link_speed"),
            width=_width(path / "current_link_width"),
            gen_max=_generation(path / "max_link_speed"),
            width_max=_width(path / "max_link_width"),
        ),
        lost=registers == b"\xff" * 4 or sysfs.read_int(path / "revision", 16) == 0xFF,
        upstream=_upstream(path),
    )


def _addresses(root: Path) -> list[str]:
    try:
        names = [entry.name for entry in (root / DEVICES).iterdir()]
    except OSError:
        return []
    return sorted(filter(None, map(normalise, names)), key=sort_key)


def _generation(path: Path) -> int | None:
    """The generation of a speed such as "16.0 GT/s PCIe"; None for "Unknown"."""
    match = re.match(r"([0-9]+(?:\.[0-9]+)?) GT/s", sysfs.read(path) or "")
    return GENERATIONS.get(float(match[1])) if match else None


def _width(path: Path) -> int | None:
    width = sysfs.read_int(path)
    return width if width in WIDTHS else None


def _upstream(path: Path) -> tuple[str, ...]:
    # /sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0
    parts = path.resolve().parts
    start = next((i for i, part in enumerate(parts) if re.fullmatch("pci[0-9a-f]{4,8}:[0-9a-f]{2}", part)), None)
    return parts[start:-1] if start is not None else ()
