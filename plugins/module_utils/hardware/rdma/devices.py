# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads RDMA devices and their ports from sysfs. Private to the collection."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from ...core import sysfs
from .. import pci
from . import counters, gids
from .congestion import Congestion
from .dcb import Dcb
from .managers import Manager
from .settings import Pcie

CLASS = "sys/class/infiniband"


@dataclass(frozen=True)
class Port:
    """A port. None if unknown, or not requested."""

    port: int
    state: str | None = None
    """DOWN, INIT, ARMED, ACTIVE, ACTIVE_DEFER."""
    physical_state: str | None = None
    """The name in sysfs: LinkUp, Disabled, Polling, …"""
    link_layer: str | None = None
    """InfiniBand or Ethernet."""
    rate_gbps: float | None = None
    """Gb/s over all lanes. A port that is down shows its possible rate."""
    rate_text: str | None = None
    lid: int | None = None
    """65535 if no subnet manager has assigned one; without meaning on Ethernet."""
    sm_lid: int | None = None
    """LID of the subnet manager; 0 without one."""
    netdev: str | None = None
    netdev_mtu: int | None = None
    """Bytes."""
    netdev_addresses: list[str] | None = None
    """With the length of the prefix: 192.0.2.7/24."""
    netdev_mac: str | None = None
    """The permanent address, which stays the same in a bond."""
    netdev_mtu_max: int | None = None
    """Bytes; 0 without a limit."""
    netdev_managers: list[Manager] | None = None
    dcb: Dcb | None = None
    """None also if the driver of the network device has no DCB."""
    congestion: Congestion | None = None
    rdma_cm_mode: str | None = None
    """The RoCE version of connections by rdma_cm, if it was set."""
    rdma_cm_tos: int | None = None
    """The type of service of these connections: DSCP times 4, plus the bits of ECN."""
    partition_keys: list[str] | None = None
    """The keys of the partitions that the subnet manager has made the port a member of."""
    mtu_active: int | None = None
    """Bytes of payload in an RDMA packet."""
    mtu_max: int | None = None
    gids: list[gids.Gid] | None = None
    recommended_gid_index: int | None = None
    recommended_gid_reason: str | None = None
    counters: dict[str, int | None] | None = None


@dataclass(frozen=True)
class Device:
    """An RDMA device. None if unknown, or not requested."""

    name: str
    node_type: str | None = None
    """CA for InfiniBand and RoCE, RNIC for iWARP."""
    driver: str | None = None
    """The bound kernel driver of the PCI device; None for a software device."""
    firmware: str | None = None
    node_guid: str | None = None
    pci_address: str | None = None
    numa_node: int | None = None
    nearest_gpus: list[str] | None = None
    """PCI addresses."""
    nearest_gpu_distance: str | None = None
    gpu_distances: dict[str, str | None] | None = None
    """The distance of each GPU, by its PCI address."""
    pcie: Pcie | None = None
    dma_buf: bool | None = None
    """Whether the device's driver takes memory of GPUs as dma-buf."""
    ports: tuple[Port, ...] = ()


def devices(root: Path, with_gids: bool = True, with_counters: bool = True) -> list[Device]:
    """Every device below `root`/sys, by name. Empty if the kernel has no RDMA."""
    try:
        # is_dir() leaves out links to removed devices.
        found = [entry for entry in (root / CLASS).iterdir() if entry.is_dir()]
    except OSError:
        return []
    return [_device(root, path, with_gids, with_counters) for path in sorted(found, key=lambda path: order(path.name))]


def order(name: str) -> list[tuple[str, int]]:
    """Sorts names by the numbers in them: mlx5_2 before mlx5_10."""
    return [(text, int(number or 0)) for text, number in re.findall("([^0-9]*)([0-9]*)", name[:64])]


def value(text: str | None) -> str | None:
    """The meaning of an attribute such as "4: ACTIVE". None for "<unknown>" and the like."""
    meaning = re.sub(r"^[0-9]+:\s*", "", text or "").strip()
    return None if meaning.strip("<>").casefold() in ("", "unknown", "unspecified") else meaning


def guid(text: str | None) -> str | None:
    """A GUID in the form of sysfs; None for zeros, the GUID of a software device without a MAC address."""
    match = re.fullmatch("(?:[0-9a-f]{4}:){3}[0-9a-f]{4}", (text or "").lower())
    return match[0] if match and match[0].strip("0:") else None


def rate(text: str | None) -> float | None:
    """Gb/s of a text such as "2.5 Gb/sec (1X SDR)"."""
    match = re.match(r"([0-9]{1,6}(?:\.[0-9]{1,3})?) Gb/s", text or "")
    return float(match[1]) if match else None


def _device(root: Path, path: Path, with_gids: bool, with_counters: bool) -> Device:
    node_type = value(sysfs.read(path / "node_type"))
    address = _pci_address(path / "device")
    function = pci.device(root, address) if address else None
    numbers = sysfs.numbers(path / "ports")
    return Device(
        name=path.name,
        node_type=node_type,
        driver=function.driver if function else None,
        firmware=sysfs.read(path / "fw_ver") or None,
        node_guid=guid(sysfs.read(path / "node_guid")),
        pci_address=address,
        numa_node=function.numa_node if function else None,
        ports=tuple(_port(path / f"ports/{number}", number, node_type, with_gids, with_counters) for number in numbers),
    )


def _pci_address(device: Path) -> str | None:
    """The PCI function of a device. None for a software device, even if it runs on a PCI network device."""
    real = Path(os.path.realpath(device))
    # A subfunction lies below its function: /sys/devices/pci0000:15/0000:16:00.0/mlx5_core.sf.4
    below = sysfs.link_name(real / "subsystem") == "auxiliary"
    return pci.normalise(real.parent.name if below else real.name)


def _port(path: Path, number: int, node_type: str | None, with_gids: bool, with_counters: bool) -> Port:
    link_layer = value(sysfs.read(path / "link_layer"))
    rate_text = sysfs.read(path / "rate") or None
    return Port(
        port=number,
        state=value(sysfs.read(path / "state")),
        physical_state=value(sysfs.read(path / "phys_state")),
        link_layer=link_layer,
        rate_gbps=rate(rate_text),
        rate_text=rate_text,
        lid=sysfs.read_int(path / "lid", 16),
        sm_lid=sysfs.read_int(path / "sm_lid", 16),
        netdev=gids.netdev(path, 0),
        gids=gids.gids(path, link_layer, node_type) if with_gids else None,
        counters=counters.counters(path) if with_counters else None,
    )
