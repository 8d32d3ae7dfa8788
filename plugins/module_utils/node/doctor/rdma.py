# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks that RDMA ports are up, fast, and have a GID that routers forward. Private to the collection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .check import OK, WARN, Check, Finding
from .host import Host

NONE = Finding(OK, "does not apply: there is no RDMA device")

Port = tuple[str, Mapping[str, Any]]


def _ports(host: Host) -> Iterator[Port]:
    for device in host.rdma()["rdma_devices"]:
        for port in device["ports"]:
            yield f"{device['name']}/{port['port']}", port


def _is_active(port: Mapping[str, Any]) -> bool:
    return str(port["state"] or "").startswith("ACTIVE")


def ports(host: Host) -> Finding:
    """No port is down. This is only a warning, since a card may have ports without a cable."""
    found = list(_ports(host))
    if not found:
        return NONE
    down = [
        f"{name} is {port['state'] or 'unknown'} ({port['physical_state'] or 'unknown'})"
        for name, port in found
        if not _is_active(port)
    ]
    if down:
        return Finding(WARN, "; ".join(down), "check cable, transceiver and switch; or switch the check off")
    return Finding(OK, f"{len(found)} ports are active")


def speed(host: Host) -> Finding:
    """No active port is slower than the fastest of its kind. A bad cable has fewer lanes."""
    found = [(name, port) for name, port in _ports(host) if _is_active(port) and port["rate_gbps"]]
    fastest: dict[str, float] = {}
    for _name, port in found:
        layer = port["link_layer"] or ""
        fastest[layer] = max(fastest.get(layer, 0.0), port["rate_gbps"])
    slow = [
        f"{name} runs at {port['rate_gbps']:g} Gb/s, the fastest at {fastest[port['link_layer'] or '']:g}"
        for name, port in found
        if port["link_layer"] == "InfiniBand" and port["rate_gbps"] < fastest["InfiniBand"]
    ]
    if slow:
        return Finding(WARN, "; ".join(slow), "reseat or replace the cable; see ibstat and the switch")
    return Finding(OK, "all ports are equally fast" if found else NONE.message)


def gids(host: Host) -> Finding:
    """RoCE ports have a GID that NCCL can use."""
    roce = [(name, port) for name, port in _ports(host) if port["link_layer"] == "Ethernet" and _is_active(port)]
    lacking = [
        f"{name}: {port['recommended_gid_reason'] or 'no GID'}"
        for name, port in roce
        if port["recommended_gid_index"] is None
    ]
    if lacking:
        return Finding(WARN, "; ".join(lacking), "give the network device an IPv4 address, or switch the check off")
    return Finding(OK, f"{len(roce)} RoCE ports have a GID" if roce else "does not apply: there is no RoCE port")


def drivers(host: Host) -> Finding:
    """Every network card that can do RDMA has its driver."""
    lacking = host.rdma()["rdma_nics_without_driver"]
    if lacking and host.rdma()["rdma_devices"]:
        named = ", ".join(str(nic.get("pci_address") or nic) for nic in lacking)
        return Finding(WARN, f"cards without their RDMA driver: {named}", "modprobe mlx5_ib; see dmesg")
    return Finding(OK, "every card has its driver")


CHECKS = (
    Check("rdma-ports", ports),
    Check("rdma-speed", speed),
    Check("rdma-gids", gids),
    Check("rdma-drivers", drivers),
)
