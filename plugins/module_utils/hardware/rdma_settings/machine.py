# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the facts of a node that the plan of rails needs besides rdma_facts. Private to the collection."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...core import files as core_files
from ...core import sysfs
from ..rdma import managers, tools
from . import files, infiniband
from .apply import Run
from .plan import Machine

PEER_MEMORY = "ib_register_peer_memory_client"
"""The symbol of the RDMA core that nvidia-peermem needs. Debian's kernel does not have it."""

ENGINES = "vllm@*.service"

DEFAULT_ROUTES = (["ip", "-j", "route", "show", "default"], ["ip", "-j", "-6", "route", "show", "default"])
"""The commands that list the default routes of IPv4 and IPv6."""

IPV6 = "proc/net/if_inet6"
"""Missing if the kernel has no IPv6 (ipv6.disable=1). Source: net/ipv6/addrconf.c of Linux."""

INSTALLED = re.compile(r"^Package: (\S+)\nStatus: \S+ ok installed$", re.MULTILINE)
"""The start of an installed package's stanza. Source: dpkg's status file."""


def read(
    root: Path,
    facts: Mapping[str, Any],
    address: str,
    peers: Mapping[str, Sequence[str]],
    known: Sequence[str],
    run: Run,
) -> Machine:
    """The machine. `address` is the address by which the node is managed; empty if unknown.

    Raises ValueError if RDMA ports exist, and the program `ip` does not list the addresses or the default routes: a
    port of the management interface could become a rail.
    """
    listed = tools.addresses("ip", run)
    if listed.status.error and facts["rdma_devices"]:
        raise ValueError(
            f"`ip -j -d address` does not list the addresses of this node ({listed.status.error.message}), so the"
            " management interface is not known. Run that command on the node, and correct the error"
        )
    by_netdev = listed.by_netdev
    upper = {name for name, netdev in by_netdev.items() if any(_same(address, one.partition("/")[0]) for one in netdev)}
    for command in DEFAULT_ROUTES if (root / IPV6).exists() else DEFAULT_ROUTES[:1]:
        default = _of_default_routes(command, run)
        if default is None and facts["rdma_devices"]:
            raise ValueError(
                f"`{' '.join(command)}` does not list the default routes of this node, so the management interface is"
                " not known. Run that command on the node, and correct the error"
            )
        upper |= default or set()
    management = sorted({lower for name in upper for lower in (name, *_lower(root, name))})
    stanzas = managers.stanzas(root)
    networkmanager_runs = (root / "run/NetworkManager").is_dir()
    found = [manager.name for name in management for manager in managers.managers(root, name, stanzas)]
    return Machine(
        facts=facts,
        management=management,
        management_addresses=[text for name in management if name in by_netdev for text in by_netdev[name]],
        managers=sorted(set(found)),
        networkmanager_runs=networkmanager_runs,
        unmanaged=_unmanaged(run) if networkmanager_runs else [],
        networkd_runs=(root / managers.NETWORKD_STATE).is_file(),
        known=known,
        partitions_foreign=_partitions_foreign(root),
        ifupdown_reads=managers.reads_directory(root, files.INTERFACES),
        peers=peers,
        bonds=_bonds(root),
        links={name: link for name in _netdevs(facts) if (link := managers.link_file(root, name)) is not None},
        named=managers.names_devices(root),
        lldpad=run(["systemctl", "is-active", "--quiet", "lldpad.service"]).code == 0,
        peer_memory=_peer_memory(root),
    )


def _same(one: str, other: str) -> bool:
    """Whether two texts are the same address: one of IPv6 has several forms."""
    try:
        return ipaddress.ip_address(one) == ipaddress.ip_address(other)
    except ValueError:
        return False


def _unmanaged(run: Run) -> list[str]:
    """The network devices that NetworkManager does not configure."""
    outcome = run(["nmcli", "--terse", "--fields", "DEVICE,STATE", "device"])
    lines = [line.rpartition(":") for line in outcome.stdout.splitlines()]
    return [name for name, _colon, state in lines if state == "unmanaged"]


def _netdevs(facts: Mapping[str, Any]) -> list[str]:
    """The network devices of RDMA ports."""
    return [port["netdev"] for device in facts["rdma_devices"] for port in device["ports"] if port["netdev"]]


def _bonds(root: Path) -> list[str]:
    netdevs = root / sysfs.NETDEVS
    return [name for name in sysfs.names(netdevs) if (netdevs / name / "bonding").is_dir()]


def _partitions_foreign(root: Path) -> bool:
    """Whether opensm has a file of partitions that is not of this collection."""
    try:
        text = core_files.text(root / infiniband.PARTITIONS.lstrip("/"))
    except OSError:
        return True
    return text is not None and not text.startswith(files.HEADER)


def serving(run: Run, is_drained: Callable[[str], bool]) -> list[str]:
    """The instances that count as users of the network: their engine runs, and they are not drained. If systemd does
    not answer, the list has one entry that says so.
    """
    states = "--state=active,activating,reloading"
    outcome = run(["systemctl", "list-units", "--plain", "--no-legend", states, ENGINES])
    if outcome.failure or outcome.code:
        return ["unknown, because systemd does not answer"]
    units = [line.split()[0] for line in outcome.stdout.splitlines() if line.strip()]
    names = [unit.removeprefix("vllm@").removesuffix(".service") for unit in units]
    return sorted(name for name in names if not is_drained(name))


def lacking(root: Path, packages: Sequence[str]) -> list[str]:
    """The packages that are not installed. dpkg's status file also has removed packages with configuration files.

    Raises OSError.
    """
    text = core_files.text(root / "var/lib/dpkg/status") or ""
    known = set(INSTALLED.findall(text))
    return [package for package in packages if package not in known]


def _of_default_routes(command: Sequence[str], run: Run) -> set[str] | None:
    """The network devices of the default routes that a command lists; None if unknown."""
    outcome = run(command)
    if outcome.failure or outcome.code:
        return None
    try:
        routes = json.loads(outcome.stdout or "[]")
        # A route over several links has them in a list.
        hops = [hop for route in routes for hop in (route, *route.get("nexthops", ()))]
        return {str(hop["dev"]) for hop in hops if "dev" in hop}
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


def _lower(root: Path, netdev: str) -> Iterator[str]:
    """The network devices below a bond, a bridge or a VLAN."""
    for name in sysfs.names(root / sysfs.NETDEVS / netdev):
        if name.startswith("lower_"):
            lower = name.removeprefix("lower_")
            yield lower
            yield from _lower(root, lower)


def _peer_memory(root: Path) -> bool | None:
    """Whether the RDMA core takes memory from other modules; None if unknown, as before the core is loaded."""
    if not (root / "sys/module/ib_core").is_dir():
        return None
    try:
        with (root / "proc/kallsyms").open(encoding="ascii", errors="replace") as lines:
            return any(PEER_MEMORY in line for line in lines)
    except OSError:
        return None
