# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans the settings and files of a node's rails from its facts and the operator's variables.

Private to the collection; pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.problems import Findings
from ..rdma.managers import IFUPDOWN, MANAGERS, NETWORKD, NETWORKMANAGER, LinkFile
from . import addresses, files, infiniband, rails
from .desired import Desired, Rail, full_key
from .variables import (
    AUTO,
    ETHERNET,
    FULL_MTU,
    INFINIBAND,
    IPOIB_MTU,
    LEAST_MTU,
    MTU,
    Wish,
    of,
    packet_size,
    without_meaning,
)

ARP = {"arp_announce": 2, "arp_ignore": 1, "rp_filter": 2}
"""With several rails in one subnet: each rail answers for its own address only, and takes packets that another rail
could answer. Source: Documentation/networking/ip-sysctl.rst of Linux."""


@dataclass(frozen=True)
class Machine:
    """The facts of the node that the plan needs."""

    facts: Mapping[str, Any]
    """The facts of rdma_facts."""
    management: Sequence[str] = ()
    """The network devices by which operators and Ansible reach the node."""
    management_addresses: Sequence[str] = ()
    """The addresses of these network devices, with the lengths of their prefixes."""
    managers: Sequence[str] = ()
    """The programs that configure these network devices."""
    networkmanager_runs: bool = False
    networkd_runs: bool = False
    unmanaged: Sequence[str] = ()
    """The network devices that NetworkManager does not configure."""
    known: Sequence[str] = ()
    """The keys of the rails of the last run."""
    peers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The addresses of the rails of other hosts."""
    partitions_foreign: bool = False
    """Whether opensm has a file of partitions that is not of this collection."""
    ifupdown_reads: bool = True
    """Whether ifupdown reads our files."""
    bonds: Sequence[str] = ()
    """The network devices that are bonds."""
    links: Mapping[str, LinkFile] = field(default_factory=dict)
    """The .link files that are not Debian's, by network device."""
    named: bool = True
    """Whether udev gives network devices Debian's names, instead of the kernel's."""
    lldpad: bool = False
    """Whether lldpad runs, which takes settings of priorities from the switch."""
    peer_memory: bool | None = None
    """Whether the RDMA core takes memory from other modules, as nvidia-peermem needs. None if unknown."""


@dataclass(frozen=True)
class Plan:
    """The desired settings, and the files for the boot."""

    desired: Desired
    texts: dict[str, str]
    ports: list[rails.Port]
    """The rails in their order."""
    gpudirect: str
    """dma_buf, peermem or none."""
    gpudirect_reason: str


def plan(variables: Mapping[str, Any], machine: Machine) -> tuple[Plan, Findings]:
    """The plan, and all mistakes and warnings. With mistakes, the plan is only good for further checks."""
    findings = Findings()
    wish = of(variables, findings)
    found = rails.ports(machine.facts)
    # A node whose cards were all removed keeps nothing of the rails.
    known = machine.known if found or machine.facts.get("rdma_nics_without_driver") else ()
    chosen = rails.choose(wish, found, machine.management, known, findings)
    layer = chosen[0].layer or ETHERNET if chosen else ETHERNET
    if chosen:
        _layer_only(wish, layer, findings)
    wanted, key = addresses.wanted(wish, len(chosen), findings), addresses.variable(wish)
    addresses.foreign(wanted, machine.peers, machine.management_addresses, key, findings)
    one_subnet = _one_subnet(wish, wanted, findings)
    manager = _manager(wish, chosen, machine, bool(wanted), findings)
    if wanted:
        _ready(manager, chosen, machine, findings)
    _mtu(wish, layer, chosen, findings)
    _links(wish, [port for port in chosen if port.layer == ETHERNET], machine, findings)
    if wish.lossless_priority is not None:
        _overwritten([port for port in chosen if port.layer == ETHERNET], machine, findings)
    _acs(wish, machine.facts, findings)
    infiniband.check(wish, found, chosen, machine.partitions_foreign, findings)
    method, reason = gpudirect(wish, machine, findings)
    desired_rails = [
        _rail(wish, port, layer, wanted[number] if wanted else None, number if one_subnet else None)
        for number, port in enumerate(chosen)
    ]
    places = []
    for rail, port in zip(desired_rails, chosen, strict=True):
        if port.netdev in machine.bonds:
            # Files match by the address, which a bond shares with its first port.
            if rail.address:
                findings.problem(
                    "rdma",
                    f"{port.netdev} is a bond, to which this role gives no address; configure the bond yourself, and "
                    "remove the addresses of the rails here",
                    key,
                )
        elif port.netdev:
            places.append(files.Place(rail, port.netdev, port.mac))
        elif rail.address:
            findings.problem("rdma", f"{port.name} has no network device, so it can have no address", key)
    texts = files.render(places, manager, machine.networkmanager_runs, machine.networkd_runs, machine.named)
    if layer == INFINIBAND and not machine.partitions_foreign:
        texts.update(infiniband.texts(wish))
    return Plan(Desired(desired_rails, manager, tuple(sorted(texts))), texts, chosen, method, reason), findings


def _rail(
    wish: Wish, port: rails.Port, layer: str, address: addresses.ipaddress.IPv4Interface | None, number: int | None
) -> Rail:
    """The desired settings of a rail; `number` if several rails have one subnet."""
    values: dict[str, Any] = {}
    if address is not None:
        values.update(address=str(address), network=str(address.network))
        if number is not None:
            values.update(table=addresses.FIRST_TABLE + number, sysctls=dict(ARP))
    if layer == ETHERNET:
        values.update(mtu=wish.mtu, **_lossless(wish))
        values.update(rdma_cm_mode="RoCE v2", rdma_cm_tos=wish.tos)
        if wish.lossless_priority is None and wish.roce_tos is None:
            del values["rdma_cm_tos"]
    else:
        values.update(mtu=wish.mtu if wish.mtu != MTU else None, ipoib_mode=wish.ipoib_mode)
        values["partition_keys"] = [full_key(int(key, 16)) for key in wish.partition_keys]
    if port.pci_address is not None:
        values.update(
            max_read_request=wish.max_read_request,
            relaxed_ordering=wish.relaxed_ordering,
            acs_off=wish.acs == "off",
        )
    return Rail(key=port.key, layer=layer, **values)


def _lossless(wish: Wish) -> dict[str, Any]:
    """The settings of priorities; none if the operator leaves them alone."""
    priority = wish.lossless_priority
    if priority is None:
        return {}
    values: dict[str, Any] = {"pfc": [priority]}
    if wish.trust == "dscp":
        values["dscp"] = {str(wish.dscp): priority, str(wish.cnp_dscp): wish.cnp_priority}
    if wish.ets:
        # Each priority with a share, and that of congestion packets, has the traffic class of its number. All other
        # priorities have class 0.
        shares = [wish.ets.get(number, 0) for number in range(8)]
        classes = [number if number in wish.ets or number == wish.cnp_priority else 0 for number in range(8)]
        values.update(
            bandwidth=shares,
            algorithms=["ets" if number in wish.ets else "strict" for number in range(8)],
            classes=classes,
        )
    if wish.ecn != "unmanaged":
        values.update(ecn=bool(wish.ecn), ecn_priority=priority)
        if wish.ecn:
            values.update(cnp_dscp=wish.cnp_dscp, cnp_priority=wish.cnp_priority)
    return values


def _layer_only(wish: Wish, layer: str, findings: Findings) -> None:
    for key in without_meaning(wish, layer):
        reason = (
            "has no meaning on InfiniBand, which loses no packets and has no DSCP; remove it"
            if layer == INFINIBAND
            else "has no meaning on Ethernet; remove it"
        )
        findings.problem("rdma", reason, f"rdma_{key}", getattr(wish, key))


def _one_subnet(wish: Wish, wanted: Sequence[Any], findings: Findings) -> bool:
    """Whether the rails need settings of ARP and routing rules, because several have one subnet."""
    shared = addresses.same_subnet(wanted)
    if wish.same_subnet is False and shared:
        findings.problem(
            "rdma",
            "several rails have one subnet; set auto, or give each rail its own subnet",
            "rdma_same_subnet",
            False,
        )
    if wish.same_subnet is True and wanted and not shared:
        findings.problem(
            "rdma", "each rail has its own subnet; set auto, or give all rails one subnet", "rdma_same_subnet", True
        )
    return shared


def _manager(wish: Wish, chosen: Sequence[rails.Port], machine: Machine, addressed: bool, findings: Findings) -> str:
    """The program that configures the rails' network devices, or `none`. Adds the mistakes of such programs and of
    their files."""
    programs: set[str] = set()
    for port in chosen:
        entries = [entry for entry in port.facts.get("netdev_managers") or () if not _own(entry["file"])]
        claimed = [(entry["name"], entry["file"] or "no file") for entry in entries]
        if (
            addressed
            and wish.network_manager in MANAGERS
            and {name for name, _file in claimed} - {wish.network_manager}
        ):
            # The operator names one program, but another one configures the link already.
            claimed.append((wish.network_manager, "rdma_network_manager"))
        programs.update(entry["name"] for entry in port.facts.get("netdev_managers") or ())
        if len({name for name, _file in claimed}) > 1:
            named = " and ".join(f"{name} ({file})" for name, file in claimed)
            findings.problem(
                "rdma", f"{port.netdev} is configured by {named}; leave it to one of them", "rdma_network_manager"
            )
        for entry in entries:
            # On InfiniBand, the default leaves the MTU alone.
            unmanaged = port.layer == INFINIBAND and wish.mtu == MTU
            if entry["mtu"] is not None and entry["mtu"] != wish.mtu and not unmanaged:
                findings.problem(
                    "rdma",
                    f"{entry['file']} gives {port.netdev} the MTU {entry['mtu']}, which wins; remove the line, or set "
                    f"rdma_mtu to {entry['mtu']}",
                    "rdma_mtu",
                    wish.mtu,
                )
            if addressed and wish.network_manager != "none" and _claims(entry):
                findings.problem(
                    "rdma",
                    f"{entry['file']} already configures {port.netdev}; remove the entry there, or remove the "
                    "addresses of the rails here",
                    addresses.variable(wish),
                )
    if wish.network_manager != AUTO:
        return wish.network_manager
    # The program that configures the management interface also configures rails that no program configures yet.
    for candidates in (programs, set(machine.managers)):
        if len(candidates) == 1:
            return next(iter(candidates))
    if addressed:
        found = ", ".join(sorted(programs | set(machine.managers))) or "none"
        findings.problem(
            "rdma",
            f"no single program configures the network ({found} found); set it to one of {', '.join(MANAGERS)}",
            "rdma_network_manager",
            AUTO,
        )
    return "none"


def _ready(manager: str, chosen: Sequence[rails.Port], machine: Machine, findings: Findings) -> None:
    """Add a mistake if the program `manager` would not give the rails their addresses."""
    left = [port.netdev for port in chosen if port.netdev in machine.unmanaged]
    message = ""
    if manager == IFUPDOWN and not machine.ifupdown_reads:
        message = (
            f"/etc/network/interfaces does not read {files.INTERFACES}; add the line 'source {files.INTERFACES}/*'"
        )
    elif manager == NETWORKD and not machine.networkd_runs:
        message = "networkd does not run; run systemctl enable --now systemd-networkd, or choose another program"
    elif manager == NETWORKMANAGER and not machine.networkmanager_runs:
        message = "NetworkManager does not run; start it, or choose another program"
    elif manager == NETWORKMANAGER and left:
        message = (
            f"NetworkManager leaves {', '.join(map(str, left))} alone; remove them from unmanaged-devices in its "
            "configuration, or choose networkd or ifupdown"
        )
    if message:
        findings.problem("rdma", message, "rdma_network_manager", manager)


def _own(file: str | None) -> bool:
    return bool(file) and str(file).rpartition("/")[2].startswith(files.PREFIX)


def _claims(entry: Mapping[str, Any]) -> bool:
    """Whether another file would win over ours. networkd takes the first matching file; ours comes before files
    with later names, such as one for all Ethernet devices."""
    if not entry["file"]:
        return False
    return entry["name"] != "networkd" or str(entry["file"]).rpartition("/")[2] < files.PREFIX


def _mtu(wish: Wish, layer: str, chosen: Sequence[rails.Port], findings: Findings) -> None:
    if layer == INFINIBAND:
        most = IPOIB_MTU[wish.ipoib_mode or "datagram"]
        if wish.mtu not in (MTU, *range(LEAST_MTU, most + 1)):
            findings.problem(
                "rdma",
                f"IP over InfiniBand takes {LEAST_MTU} to {most} in mode {wish.ipoib_mode or 'datagram'}",
                "rdma_mtu",
                wish.mtu,
            )
        return
    for port in chosen:
        most = port.facts.get("netdev_mtu_max") or 0
        if most and wish.mtu > most:
            findings.problem("rdma", f"{port.netdev} takes at most {most}; set at most that", "rdma_mtu", wish.mtu)
    if wish.mtu < FULL_MTU:
        size = packet_size(wish.mtu)
        findings.warning(
            "rdma",
            f"the packets of RDMA will have {size} bytes instead of 4096; set {FULL_MTU} or more here and on switches",
            "rdma_mtu",
            wish.mtu,
        )


def _links(wish: Wish, chosen: Sequence[rails.Port], machine: Machine, findings: Findings) -> None:
    """Add the mistakes of .link files that are not ours. udev applies the first one, by the files' names."""
    for port in chosen:
        link = machine.links.get(port.netdev or "")
        if link is None or _own(link.file) or port.netdev in machine.bonds:
            continue
        directory, _slash, name = link.file.rpartition("/")
        if name > files.link_name(port.netdev or ""):
            findings.problem(
                "rdma",
                f"{link.file} gives {port.netdev} its name and settings. The file of this role would come first, and "
                f"{link.file} would have no effect from the next boot on; rename it to {directory}/50-{name}",
                "rdma_mtu",
                wish.mtu,
            )
        elif link.mtu not in (None, wish.mtu):
            findings.problem(
                "rdma",
                f"{link.file} gives {port.netdev} the MTU {link.mtu} at each boot; remove the line, or set rdma_mtu to "
                f"{link.mtu}",
                "rdma_mtu",
                wish.mtu,
            )


def _overwritten(chosen: Sequence[rails.Port], machine: Machine, findings: Findings) -> None:
    """Warn if the firmware or lldpad can overwrite the priorities. mlx5 shows the mode host only if its firmware leaves
    them to the host, but it also accepts settings in the other mode. Source: mlx5e_dcbnl_initialize and
    mlx5e_dcbnl_ieee_setpfc of Linux."""
    modes = {port.netdev: (port.facts.get("dcb") or {}).get("modes") for port in chosen}
    others = [str(netdev) for netdev, known in modes.items() if known is not None and "host" not in known]
    if others:
        findings.warning(
            "rdma",
            f"the firmware of {', '.join(others)} takes PFC and ETS from the switch (DCBX), and can overwrite those of "
            f"this run; run dcb dcbx set dev {others[0]} host ieee, or switch DCBX off in the firmware",
            "rdma_lossless_priority",
        )
    if chosen and machine.lldpad:
        findings.warning(
            "rdma",
            "lldpad takes PFC and ETS from the switch, and can overwrite those of this run; run systemctl disable "
            "--now lldpad",
            "rdma_lossless_priority",
        )


def _acs(wish: Wish, facts: Mapping[str, Any], findings: Findings) -> None:
    given = (facts.get("rdma_iommu") or {}).get("given_away") or ()
    if wish.acs == "off" and given:
        findings.problem(
            "rdma",
            f"a virtual machine or a program has {', '.join(given)}, and ACS separates them from others; set unmanaged",
            "rdma_acs",
            "off",
        )


def gpudirect(wish: Wish, machine: Machine, findings: Findings) -> tuple[str, str]:
    """The method by which NICs reach GPU memory, and why. Adds the mistakes of a method that cannot work.

    Only a measurement proves that the method works: Debian's kernels lack PCI_P2PDMA, and no file shows whether the
    drivers work without it.
    """
    found = machine.facts.get("rdma_gpudirect") or {}
    refusing = sorted(device["name"] for device in machine.facts["rdma_devices"] if device.get("dma_buf") is False)
    possible = found.get("dma_buf") is True and not refusing
    reason = str(found.get("dma_buf_reason") or "unknown")
    if refusing:
        reason = f"the driver of {', '.join(refusing)} does not take dma-buf"
    if wish.gpudirect == "none":
        return "none", "rdma_gpudirect is none"
    if wish.gpudirect == "dma_buf":
        if found.get("dma_buf") is False or refusing:
            action = "set none" if refusing else "install the open kernel modules, or set none"
            findings.problem("rdma", f"{reason}; {action}", "rdma_gpudirect", "dma_buf")
        return "dma_buf", reason
    if wish.gpudirect == "peermem":
        if not found.get("peermem") and machine.peer_memory is False:
            findings.problem(
                "rdma",
                "this kernel's RDMA core does not take memory from other modules; it needs the ib_core of DOCA-OFED. "
                "Set dma_buf",
                "rdma_gpudirect",
                "peermem",
            )
        return "peermem", "rdma_gpudirect is peermem"
    if possible:
        return "dma_buf", reason
    if found.get("peermem"):
        return "peermem", f"{found.get('peermem_module')} is loaded"
    return "none", reason
