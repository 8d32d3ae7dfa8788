# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine as the discovery has found it. Private to the collection. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from ...debian.disks import human

VIRTUAL = re.compile(r"^(?:lo|docker\d+|br-[0-9a-f]{12}|veth|virbr\d|cni\d|flannel|cali|tap|fwbr|fwpr|fwln)")
"""Network devices whose addresses other machines can have as well: loopback, containers and virtual machines."""

DEBIAN = (12, 13)
"""The supported releases of Debian."""

ARCHITECTURE = "x86_64"
"""The only supported architecture, as the kernel names it."""

MIB_PER_GIB = 1024

SSH_PORT = 22


@dataclass(frozen=True)
class Machine:
    """The facts of a machine, from the modules host_facts, gpu_facts and rdma_facts."""

    entry: str
    """The name of the machine in the inventory of this run: mostly an address."""
    address: str
    """The address of the login."""
    system: Mapping[str, Any]
    gpus: Sequence[Mapping[str, Any]]
    nvswitch: bool
    driver: Mapping[str, Any]
    rdma: Sequence[Mapping[str, Any]]
    nics_without_driver: Sequence[Mapping[str, Any]]
    disks: Sequence[Mapping[str, Any]]
    services: Sequence[Mapping[str, Any]]
    docker: Mapping[str, Any]
    firewall: Mapping[str, Any]
    secure_boot: Mapping[str, Any]
    clock: Mapping[str, Any]
    port: int = SSH_PORT
    """The port of the login."""

    @property
    def hostname(self) -> str:
        return str(self.system.get("hostname") or "")

    @property
    def debian(self) -> int | None:
        """The major version of Debian; None on another system."""
        return self.system.get("debian")

    @property
    def addresses(self) -> list[str]:
        """The machine's own addresses that other machines can use."""
        found = [str(one["address"]) for one in self.system.get("addresses") or () if not VIRTUAL.match(one["device"])]
        return [text for text in found if not ip_address(text).is_link_local]

    @property
    def default_address(self) -> str:
        """The address on the device of the default route; empty without one."""
        device = self.system.get("default_device")
        found = (str(one["address"]) for one in self.system.get("addresses") or () if one["device"] == device)
        return next(found, "") if device else ""

    @property
    def usable_gpus(self) -> list[Mapping[str, Any]]:
        """The GPUs that are not given to virtual machines."""
        return [gpu for gpu in self.gpus if not gpu.get("excluded")]

    @property
    def unsupported(self) -> str:
        """Why the collection does not support the machine; empty if the collection supports it."""
        if self.system.get("architecture") != ARCHITECTURE:
            return (
                f"is {self.system.get('architecture') or 'of unknown architecture'}: only {ARCHITECTURE} is supported"
            )
        if self.debian not in DEBIAN:
            name = f"Debian {self.debian}" if self.debian else self.system.get("pretty_name") or "an unknown system"
            return f"runs {name}: only Debian {' and '.join(map(str, DEBIAN))} are supported"
        return ""

    def summary(self) -> str:
        """The machine in one line."""
        parts = [cards(self.gpus) or "no NVIDIA GPU"]
        parts += ["NVSwitch"] if self.nvswitch else []
        memory = self.system.get("memory_mib")
        parts += [f"{round(memory / MIB_PER_GIB)} GiB of main memory"] if memory else []
        nodes = self.system.get("numa_nodes") or 1
        parts += [f"{nodes} NUMA nodes"] if nodes > 1 else []
        ports = [port for device in self.rdma for port in device.get("ports") or ()]
        parts += [f"{len(ports)} RDMA port{'s' * (len(ports) > 1)}"] if ports else []
        parts += [f"{len(self.disks)} disk{'s' * (len(self.disks) > 1)}"] if self.disks else []
        release = f"Debian {self.debian}" if self.debian else str(self.system.get("pretty_name") or "unknown system")
        pve = self.system.get("proxmox")
        return ", ".join([*parts, f"{release} with Proxmox VE {pve}" if pve else release])


def cards(gpus: Sequence[Mapping[str, Any]]) -> str:
    """The GPUs in words, as "8 x H100-80GB"; empty without any."""
    counted = Counter(str(gpu.get("product") or gpu.get("name") or gpu.get("pci_device_id")) for gpu in gpus)
    return ", ".join(f"{count} x {name}" for name, count in counted.items())


def disk_text(disk: Mapping[str, Any]) -> str:
    """A disk in words: size, model and what is on it."""
    content = "; ".join(disk.get("obstacles") or ()) or "blank"
    model = f", {disk['model']}" if disk.get("model") else ""
    return f"{disk['path']} ({human(disk.get('size') or 0)}{model}): {content}"


def _carries(device: Mapping[str, Any], managers: Sequence[str]) -> bool:
    """Whether an RDMA device carries traffic: a device of hardware that does not manage NVSwitches."""
    return bool(device.get("pci_address")) and device["pci_address"] not in managers


def read(entry: str, results: Mapping[str, Any]) -> Machine | str:
    """The machine from the results of the run, or the reason why nothing is known about it.

    `results` has `address`, `port`, `error`, and `host`, `gpu` and `rdma` from the modules.
    """
    if results.get("error"):
        return str(results["error"])
    host, gpu, rdma = (results.get(key) or {} for key in ("host", "gpu", "rdma"))
    managers = gpu.get("nvswitch_managers") or ()
    return Machine(
        entry=entry,
        address=str(results.get("address") or entry),
        system=host.get("system") or {},
        gpus=gpu.get("gpus") or (),
        nvswitch=bool(gpu.get("nvswitches") or gpu.get("nvswitch_managers")),
        driver=gpu.get("gpu_driver") or {},
        rdma=[device for device in rdma.get("rdma_devices") or () if _carries(device, managers)],
        nics_without_driver=rdma.get("rdma_nics_without_driver") or (),
        disks=host.get("disks") or (),
        services=host.get("services") or (),
        docker=host.get("docker") or {},
        firewall=host.get("firewall") or {},
        secure_boot=host.get("secure_boot") or {},
        clock=host.get("clock") or {},
        port=int(results.get("port") or SSH_PORT),
    )
