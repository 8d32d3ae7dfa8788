# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Joins all facts about RDMA from sysfs and programs. Private to the collection."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ...core import sysfs
from .. import pci
from . import congestion, dcb, dma_buf, gids, gpudirect, iproute, managers, nearness, nics, settings, tools, verbs
from .devices import CLASS, Device, Port, devices, guid, order, value

PARTS = GIDS, COUNTERS, ADDRESSES, TOOLS, GPUS, NICS, SETTINGS, DMA_BUF = (
    *("gids", "counters", "addresses", "tools", "gpus", "nics", "settings", "dma_buf"),
)
"""Optional parts. Devices and ports are always read."""

NODE_TYPES = {"ca": "CA", "rnic": "RNIC"}
"""Node types: the word of `rdma`, and the word of sysfs."""

LINK_LAYERS = {"ib": "InfiniBand", "opa": "InfiniBand", "roce": "Ethernet", "iw": "Ethernet"}
"""The link layer under each protocol that `rdma` names. Source: fill_nldev_handle of infiniband/core/nldev.c."""


@dataclass(frozen=True)
class Programs:
    """The programs to run; None leaves one out."""

    rdma: str | None = None
    ibv_devinfo: str | None = None
    ip: str | None = None
    dcb: str | None = None
    python: str | None = None
    """The interpreter for the check of dma-buf."""


def has_rdma(root: Path) -> bool:
    """Whether the kernel has loaded RDMA. Even a query by `rdma` would load it."""
    return (root / CLASS).is_dir()


def gather(root: Path, parts: Collection[str], programs: Programs, run: tools.Run) -> dict[str, Any]:
    """The facts of these parts, by name. Raises nothing."""
    answer = tools.rdma(programs.rdma if TOOLS in parts else None, run)
    mtus = tools.mtus(programs.ibv_devinfo if TOOLS in parts else None, run)
    found = _with_rdma(devices(root, GIDS in parts, COUNTERS in parts), answer)
    addresses = tools.addresses(programs.ip if found and ADDRESSES in parts else None, run)
    gpus = pci.nvidia_gpus(root) if {GPUS, SETTINGS} & set(parts) else []
    memory = dma_buf.ask(programs.python if found and DMA_BUF in parts else None, run)
    found = [
        replace(
            device,
            ports=tuple(_complete(root, device, port, mtus, addresses) for port in device.ports),
            dma_buf=memory.by_device.get(device.name),
            **(_near_gpus(root, device, gpus) if GPUS in parts else {}),
        )
        for device in found
    ]
    if SETTINGS in parts:
        found = _with_settings(root, found, gpus, programs.dcb, run)
    facts: dict[str, Any] = {
        "rdma_devices": [asdict(device) for device in found],
        "rdma_tools": {
            "rdma": asdict(answer.status),
            "ibv_devinfo": asdict(mtus.status),
            "ip": asdict(addresses.status),
        },
    }
    if DMA_BUF in parts:
        facts["rdma_dma_buf_error"] = memory.error
    if SETTINGS in parts:
        facts["rdma_iommu"] = asdict(settings.iommu(root))
    if GPUS in parts:
        facts["rdma_gpudirect"] = asdict(gpudirect.gpudirect(root))
    if NICS in parts:
        used = {device.pci_address for device in found if device.pci_address}
        facts["rdma_nics_without_driver"] = [asdict(nic) for nic in nics.without_rdma(root, used)]
    return facts


def _with_rdma(found: Sequence[Device], answer: tools.Rdma) -> list[Device]:
    """The devices with data from `rdma`, and devices that only `rdma` lists. sysfs may show the devices of another
    network namespace, or none.
    """
    known = {device.name: device for device in found}
    listed = {device.name: device for device in answer.devices}
    links: dict[str, dict[int, iproute.Link]] = {}
    for link in answer.links:
        links.setdefault(link.device, {})[link.port] = link
    return [
        _merged(known.get(name, Device(name)), listed.get(name), links.get(name, {}))
        for name in sorted({*known, *listed, *links}, key=order)
    ]


def _merged(device: Device, listed: iproute.Device | None, links: Mapping[int, iproute.Link]) -> Device:
    ports = {port.port: port for port in device.ports}
    protocol = listed.protocol if listed else None
    merged = [
        _merged_port(ports.get(number, Port(number)), links.get(number), protocol)
        for number in sorted({*ports, *links})
    ]
    return replace(
        device,
        node_type=device.node_type or (NODE_TYPES.get(listed.node_type or "") if listed else None),
        firmware=device.firmware or (listed.firmware if listed else None),
        node_guid=device.node_guid or (guid(listed.node_guid) if listed else None),
        ports=tuple(merged),
    )


def _merged_port(port: Port, link: iproute.Link | None, protocol: str | None) -> Port:
    """A port with data from `rdma`. Values of sysfs win."""
    layer = port.link_layer or LINK_LAYERS.get(protocol or "")
    if link is None:
        return replace(port, link_layer=layer)
    return replace(
        port,
        state=port.state or value(link.state),
        physical_state=port.physical_state or iproute.physical_state(link.physical_state),
        # `rdma` prints LIDs only for InfiniBand.
        link_layer=layer or ("InfiniBand" if link.lid is not None else None),
        lid=link.lid if port.lid is None else port.lid,
        sm_lid=link.sm_lid if port.sm_lid is None else port.sm_lid,
        netdev=port.netdev or link.netdev,
    )


def _complete(root: Path, device: Device, port: Port, mtus: tools.Mtus, addresses: tools.Addresses) -> Port:
    """A port with the data of its network device, its MTUs and the recommended GID."""
    netdev = port.netdev or _netdev_of_function(root, device.pci_address, port.port)
    mtu = mtus.by_port.get((device.name, port.port), verbs.Mtu())
    known = addresses.netdevs.get(netdev) if netdev else None
    choice = gids.recommended(port.gids, port.link_layer, netdev) if port.gids is not None else None
    return replace(
        port,
        netdev=netdev,
        netdev_mtu=sysfs.read_int(root / sysfs.NETDEVS / netdev / "mtu") if netdev else None,
        netdev_addresses=addresses.by_netdev.get(netdev) if netdev else None,
        netdev_mac=known.mac if known else None,
        netdev_mtu_max=known.mtu_max if known else None,
        mtu_active=mtu.active,
        mtu_max=mtu.max,
        recommended_gid_index=choice.index if choice else None,
        recommended_gid_reason=choice.reason if choice else None,
    )


def _netdev_of_function(root: Path, address: str | None, port: int) -> str | None:
    """The network device of a PCI function's port: the only one with the port's number. Network devices on top of it,
    such as partitions of IPoIB, are left out.
    """
    if address is None:
        return None
    directory = root / pci.DEVICES / address / "net"
    found = [
        name
        for name in sysfs.names(directory)
        if sysfs.read_int(directory / name / "dev_port") in (port - 1, None)
        and sysfs.read(directory / name / "parent") is None
    ]
    return found[0] if len(found) == 1 else None


def _near_gpus(root: Path, device: Device, gpus: Sequence[pci.Device]) -> dict[str, Any]:
    """The fields of a device about its nearest GPUs."""
    if device.pci_address is None:
        return {}
    one_node = sysfs.read(root / "sys/devices/system/node/online") == "0"
    function = pci.device(root, device.pci_address)
    nearest, distance = nearness.nearest(function, gpus, one_node)
    return {
        "nearest_gpus": nearest,
        "nearest_gpu_distance": distance,
        "gpu_distances": {gpu.address: nearness.distance(function, gpu, one_node) for gpu in gpus},
    }


def _with_settings(
    root: Path, found: Sequence[Device], gpus: Sequence[pci.Device], program: str | None, run: tools.Run
) -> list[Device]:
    """The devices with the settings of their ports and PCI functions."""
    stanzas = managers.stanzas(root) if found else []
    return [
        replace(
            device,
            ports=tuple(_port_settings(root, device, port, stanzas, program, run) for port in device.ports),
            pcie=settings.pcie(root, device.pci_address, gpus) if device.pci_address else None,
        )
        for device in found
    ]


def _port_settings(
    root: Path, device: Device, port: Port, stanzas: Sequence[managers.Stanza], program: str | None, run: tools.Run
) -> Port:
    roce = port.link_layer == "Ethernet"
    keys = settings.partition_keys(root, device.name, port.port) if port.link_layer == "InfiniBand" else None
    mode, tos = settings.rdma_cm(root, device.name, port.port) if roce else (None, None)
    return replace(
        port,
        netdev_managers=managers.managers(root, port.netdev, stanzas) if port.netdev else None,
        dcb=dcb.read(program, port.netdev, run) if roce and port.netdev else None,
        congestion=congestion.read(root, device.pci_address, port.netdev) if roce else None,
        rdma_cm_mode=mode,
        rdma_cm_tos=tos,
        partition_keys=keys,
    )
