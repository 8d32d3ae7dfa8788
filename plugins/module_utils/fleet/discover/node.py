# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proposes the variables of one machine, with findings and questions. Private to the collection. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.sizes import counted
from ...hardware.driver.compatibility import Compatibility
from . import drivers, serving, storage
from .finding import Proposal
from .layout import PORT
from .machine import Machine
from .names import service_address

IOMMU = "iommu=pt"
"""Lets GPUs and network cards exchange data directly."""


@dataclass
class Proposed:
    """The proposals for a machine: variables that machines of one kind share, variables of this machine, and disks,
    which a person must enable."""

    shared: Proposal = field(default_factory=Proposal)
    own: Proposal = field(default_factory=Proposal)
    disks: dict[str, Any] = field(default_factory=dict)

    @property
    def findings(self) -> list[str]:
        return self.own.findings + self.shared.findings


def propose(
    name: str, machine: Machine, taken: Sequence[str], known: Compatibility, cuda: str = "", month: str = ""
) -> Proposed:
    """The proposal for one supported machine. `taken` are addresses that several machines have."""
    found = Proposed()
    address, reason = service_address(machine, taken)
    if address:
        use = "Where engines listen for the gateways" if machine.usable_gpus else "Where other hosts reach this one"
        found.own.add("inference_address", address, f"{use}: {reason}")
    else:
        text = f"on which address does {name} listen for the gateways? {reason[0].upper()}{reason[1:]}"
        found.own.ask("inference_address", f"host_vars/{name}/main.yml", f"{text}. It has {_listed(machine.addresses)}")
    _system(name, machine, found)
    found.own.merge(serving.propose(machine, name, PORT))
    if not machine.usable_gpus:
        return found
    found.shared.merge(drivers.propose(machine, known, cuda, month))
    disks, found.disks = storage.propose(machine, name)
    found.own.merge(disks)
    _kernel(machine, found)
    _network(machine, found)
    return found


def _system(name: str, machine: Machine, found: Proposed) -> None:
    """Add what concerns Proxmox VE, virtual machines, firewall and clock."""
    own, version = found.own, machine.system.get("proxmox")
    if version:
        repositories = [one for one in machine.system.get("repositories") or () if "proxmox" in one]
        own.findings.append(
            f"runs Proxmox VE {version} with the kernel {machine.system.get('kernel')}, from {_listed(repositories)}"
        )
        own.ask(
            "names",
            "hosts.yml",
            f"{name} runs Proxmox VE, whose firewall, kernel and virtual machines this collection does not know: "
            f"remove {name} from hosts.yml, or keep {name} and test it first",
        )
    if machine.system.get("virtualization"):
        own.findings.append(
            f"is virtual ({machine.system['virtualization']}): kernel and driver may belong to the machine that runs it"
        )
    given = [gpu for gpu in machine.gpus if gpu.get("excluded")]
    if given:
        own.findings.append(
            f"has {counted(len(given), 'GPU')} for virtual machines ({given[0].get('driver')}), left alone"
        )
    others = machine.firewall.get("others") or []
    if others:
        own.findings.append(f"has another firewall: {', '.join(others)}")
        own.ask(
            "common_firewall_enabled",
            f"host_vars/{name}/main.yml",
            f"{name} has the firewall {', '.join(others)}: copy the rules that you need to firewall_allow, and "
            "switch this firewall off. Or keep it, and set common_firewall_enabled: false",
        )
    elif machine.firewall.get("foreign_rules"):
        own.findings.append("has rules in /etc/nftables.conf that this collection did not write")
        own.ask(
            "common_firewall_replace",
            f"host_vars/{name}/main.yml",
            f"{name} has nftables rules already: may they be replaced? Then set common_firewall_replace: true",
        )
    clocks = machine.clock.get("daemons") or []
    if machine.clock.get("synchronized") is False:
        why = f"although {_listed(clocks)} runs" if clocks else "and no program sets it"
        advice = "see chronyc sources" if clocks == ["chrony"] else "the set-up installs chrony"
        own.findings.append(f"its clock is not synchronised, {why}: {advice}")
    elif clocks and clocks != ["chrony"]:
        own.findings.append(f"its clock follows {_listed(clocks)}: chrony replaces it")


def _kernel(machine: Machine, found: Proposed) -> None:
    there = IOMMU in str(machine.system.get("cmdline") or "").split()
    if machine.system.get("virtualization"):
        return
    reason = "Lets GPUs and network cards exchange data directly"
    found.shared.add("common_kernel_cmdline", [IOMMU], f"{reason}. Needs one reboot of a machine that lacks it")
    if not there:
        found.own.findings.append(f"needs one reboot for {IOMMU} on the kernel's command line, and for the driver")


def _network(machine: Machine, found: Proposed) -> None:
    ports = [(device, port) for device in machine.rdma for port in device.get("ports") or ()]
    if ports:
        up = sum(1 for _device, port in ports if str(port.get("state") or "").startswith("ACTIVE"))
        layers = sorted({str(port.get("link_layer")) for _device, port in ports})
        found.own.findings.append(
            f"has {len(ports)} RDMA port{'s' * (len(ports) > 1)} ({', '.join(layers)}), {up} of them up. One node "
            "needs none of them; for instances over several nodes: docs/rdma.md"
        )
    for nic in machine.nics_without_driver:
        found.own.findings.append(f"network card {nic.get('pci_address')} could do RDMA, but has no driver for it")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"


def split(proposals: Mapping[str, Proposal]) -> tuple[Proposal, dict[str, Proposal]]:
    """Variables that all machines have with the same value, and the other variables of each machine."""
    shared, own = Proposal(), {name: Proposal() for name in proposals}
    values = [{one.name: one.value for one in proposal.variables} for proposal in proposals.values()]
    for name, proposal in proposals.items():
        for variable in proposal.variables:
            if all(value.get(variable.name) == variable.value and variable.name in value for value in values):
                if variable.name not in [one.name for one in shared.variables]:
                    shared.variables.append(variable)
            else:
                own[name].variables.append(variable)
    return shared, own
