# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All facts about RDMA, put together from sysfs and the programs. Private to the collection."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ...core import sysfs
from .. import pci
from . import gids, gpudirect, iproute, nearness, nics, tools, verbs
from .devices import CLASS, Device, Port, devices, guid, order, value

PARTS = GIDS, COUNTERS, ADDRESSES, TOOLS, GPUS, NICS = ("gids", "counters", "addresses", "tools", "gpus", "nics")
"""What can be left out; devices and ports are always there."""

NODE_TYPES = {"ca": "CA", "rnic": "RNIC"}
"""The words of `rdma` in those of sysfs."""

LINK_LAYERS = {"ib": "InfiniBand", "opa": "InfiniBand", "roce": "Ethernet", "iw": "Ethernet"}
"""The link layer under each protocol that `rdma` names. Source: fill_nldev_handle of infiniband/core/nldev.c."""

NETDEVS = "sys/class/net"


@dataclass(frozen=True)
class Programs:
    """What to run, None for not at all."""

    rdma: str | None = None
    ibv_devinfo: str | None = None
    ip: str | None = None


def has_rdma(root: Path) -> bool:
    """Whether the kernel has RDMA now. Merely asking `rdma` would load it."""
    return (root / CLASS).is_dir()


def gather(root: Path, parts: Collection[str], programs: Programs, run: tools.Run) -> dict[str, Any]:
    """The facts by their names, without those of other parts. Raises nothing."""
    answer = tools.rdma(programs.rdma if TOOLS in parts else None, run)
    mtus = tools.mtus(programs.ibv_devinfo if TOOLS in parts else None, run)
    found = _with_rdma(devices(root, GIDS in parts, COUNTERS in parts), answer)
    addresses = tools.addresses(programs.ip if found and ADDRESSES in parts else None, run)
    gpus = pci.nvidia_gpus(root) if GPUS in parts else []
    found = [
        replace(
            device,
            ports=tuple(_complete(root, device, port, mtus, addresses) for port in device.ports),
            **(_near_gpus(root, device, gpus) if GPUS in parts else {}),
        )
        for device in found
    ]
    facts: dict[str, Any] = {
        "rdma_devices": [asdict(device) for device in found],
        "rdma_tools": {
            "rdma": asdict(answer.status),
            "ibv_devinfo": asdict(mtus.status),
            "ip": asdict(addresses.status),
        },
    }
    if GPUS in parts:
        facts["rdma_gpudirect"] = asdict(gpudirect.gpudirect(root))
    if NICS in parts:
        used = {device.pci_address for device in found if device.pci_address}
        facts["rdma_nics_without_driver"] = [asdict(nic) for nic in nics.without_rdma(root, used)]
    return facts


def _with_rdma(found: Sequence[Device], answer: tools.Rdma) -> list[Device]:
    """The devices with what only `rdma` knows of them, and the devices that only it knows: sysfs may show those of
    another network namespace, or none.
    """
    known = {device.name: device for device in found}
    told = {device.name: device for device in answer.devices}
    links: dict[str, dict[int, iproute.Link]] = {}
    for link in answer.links:
        links.setdefault(link.device, {})[link.port] = link
    return [
        _merged(known.get(name, Device(name)), told.get(name), links.get(name, {}))
        for name in sorted({*known, *told, *links}, key=order)
    ]


def _merged(device: Device, told: iproute.Device | None, links: Mapping[int, iproute.Link]) -> Device:
    ports = {port.port: port for port in device.ports}
    protocol = told.protocol if told else None
    merged = [
        _merged_port(ports.get(number, Port(number)), links.get(number), protocol)
        for number in sorted({*ports, *links})
    ]
    return replace(
        device,
        node_type=device.node_type or (NODE_TYPES.get(told.node_type or "") if told else None),
        firmware=device.firmware or (told.firmware if told else None),
        node_guid=device.node_guid or (guid(told.node_guid) if told else None),
        ports=tuple(merged),
    )


def _merged_port(port: Port, link: iproute.Link | None, protocol: str | None) -> Port:
    """What sysfs says goes first."""
    layer = port.link_layer or LINK_LAYERS.get(protocol or "")
    if link is None:
        return replace(port, link_layer=layer)
    return replace(
        port,
        state=port.state or value(link.state),
        physical_state=port.physical_state or iproute.physical_state(link.physical_state),
        # Only InfiniBand has LIDs there.
        link_layer=layer or ("InfiniBand" if link.lid is not None else None),
        lid=link.lid if port.lid is None else port.lid,
        sm_lid=link.sm_lid if port.sm_lid is None else port.sm_lid,
        netdev=port.netdev or link.netdev,
    )


def _complete(root: Path, device: Device, port: Port, mtus: tools.Mtus, addresses: tools.Addresses) -> Port:
    """A port with what is found by the name of its network device, and its MTUs."""
    netdev = port.netdev or _netdev_of_function(root, device.pci_address, port.port)
    mtu = mtus.by_port.get((device.name, port.port), verbs.Mtu())
    choice = gids.recommended(port.gids, port.link_layer, netdev) if port.gids is not None else None
    return replace(
        port,
        netdev=netdev,
        netdev_mtu=sysfs.read_int(root / NETDEVS / netdev / "mtu") if netdev else None,
        netdev_addresses=addresses.by_netdev.get(netdev) if netdev else None,
        mtu_active=mtu.active,
        mtu_max=mtu.max,
        recommended_gid_index=choice.index if choice else None,
        recommended_gid_reason=choice.reason if choice else None,
    )


def _netdev_of_function(root: Path, address: str | None, port: int) -> str | None:
    """The network device that a PCI function has for a port: the only one with its number, leaving out those made
    upon it, as the partitions of IPoIB are.
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
    """The fields of a device that tell of the GPUs near to it."""
    if device.pci_address is None:
        return {}
    one_node = sysfs.read(root / "sys/devices/system/node/online") == "0"
    nearest, distance = nearness.nearest(pci.device(root, device.pci_address), gpus, one_node)
    return {"nearest_gpus": nearest, "nearest_gpu_distance": distance}
