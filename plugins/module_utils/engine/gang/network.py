# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network between the members of a gang, as one member sees it. Private to the collection."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core import commands, sysfs
from ...core.records import known
from ...hardware.rdma import facts as rdma_facts
from ...hardware.rdma import tools

IP = "ip"

TIMEOUT = 10.0
"""Seconds that each command may take."""


@dataclass(frozen=True)
class Network:
    """The network interface of a member, and its RDMA."""

    interface: str = ""
    """The interface that has the member's address; empty where none has it."""
    mtu: int | None = None
    """Bytes."""
    speed_gbps: float | None = None
    """Gb/s of the interface; None where the kernel does not know it."""
    rdma_devices: tuple[str, ...] = ()
    """RDMA devices with an active port."""
    rdma_gbps: float = 0
    """Gb/s of all active RDMA ports."""

    @property
    def has_rdma(self) -> bool:
        return bool(self.rdma_devices)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**vars(self), "rdma_devices": list(self.rdma_devices)}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Network:
        return cls(**{**known(cls, value), "rdma_devices": tuple(value.get("rdma_devices", ()))})

    def __str__(self) -> str:
        if self.has_rdma:
            return f"RDMA ({', '.join(self.rdma_devices)}, {self.rdma_gbps:g} Gb/s)"
        speed = f", {self.interface} of {self.speed_gbps:g} Gb/s" if self.speed_gbps else ""
        return f"no RDMA{speed}"


UNKNOWN = Network()


def run(command: Sequence[str]) -> commands.Outcome:
    """Run a program of this node. Raises nothing."""
    return commands.run(command, TIMEOUT)


def find(address: str, root: Path, run: tools.Run = run) -> Network:
    """The network of this node at an address. Raises nothing."""
    interface = interface_of(address, run)
    path = root / sysfs.NETDEVS / interface
    speed = sysfs.read_int(path / "speed") if interface else None
    ports = rdma(root, run)
    return Network(
        interface,
        sysfs.read_int(path / "mtu") if interface else None,
        # Virtual interfaces have -1.
        speed / 1000 if speed and speed > 0 else None,
        ports.rdma_devices,
        ports.rdma_gbps,
    )


def interface_of(address: str, run: tools.Run = run) -> str:
    """The network interface of this node that has an address; empty where none has it. Raises nothing."""
    found = tools.addresses(IP, run).by_netdev
    return next((name for name, has in found.items() if _has(has, address)), "")


def rdma(root: Path, run: tools.Run = run) -> Network:
    """The RDMA of this node: the devices with an active port, and the Gb/s of all active ports. Raises nothing."""
    devices = rdma_facts.gather(root, (), rdma_facts.Programs(), run)["rdma_devices"]
    active = {
        device["name"]: [
            port["rate_gbps"] or 0 for port in device["ports"] if (port["state"] or "").startswith("ACTIVE")
        ]
        for device in devices
    }
    names = tuple(name for name, rates in active.items() if rates)
    return Network(rdma_devices=names, rdma_gbps=sum(map(sum, active.values())))


def _has(addresses: list[str], address: str) -> bool:
    try:
        wanted = ipaddress.ip_address(address)
        return any(ipaddress.ip_interface(each).ip == wanted for each in addresses)
    except ValueError:
        return False
