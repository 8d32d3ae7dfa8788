# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rails of a node: which ports of its RDMA devices carry the traffic of engines. Private to the collection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.problems import Findings, nearest
from .. import pci
from .variables import AUTO, ETHERNET, INFINIBAND, Wish

NO_MANAGER = "no subnet manager makes the port active; set rdma_subnet_manager on one node, or start a switch's manager"

LAYERS = {"Ethernet": ETHERNET, "InfiniBand": INFINIBAND}
"""The link layers by the words of sysfs."""


@dataclass(frozen=True)
class Port:
    """A port of an RDMA device on this node."""

    device: str
    number: int
    pci_address: str | None
    """None for a software device."""
    netdev: str | None
    mac: str | None
    layer: str | None
    active: bool
    facts: Mapping[str, Any]
    """The facts of the port."""
    device_facts: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name in messages, as the program `rdma` writes it."""
        return f"{self.device}/{self.number}"

    @property
    def unmanaged(self) -> bool:
        """Whether the link of InfiniBand is up, but no subnet manager has made the port active."""
        return self.layer == INFINIBAND and self.facts["state"] in ("INIT", "ARMED")

    @property
    def key(self) -> str:
        """The identity over reboots and changes of names: the place on the bus, or the permanent address. A software
        device without both has its name."""
        return f"{self.pci_address or self.mac or self.device}/{self.number}"


def ports(facts: Mapping[str, Any]) -> list[Port]:
    """All ports in facts of rdma_facts, in the order of the bus; software devices last."""
    found = []
    for device in facts["rdma_devices"]:
        for port in device["ports"]:
            found.append(
                Port(
                    device=device["name"],
                    number=port["port"],
                    pci_address=device["pci_address"],
                    netdev=port["netdev"],
                    mac=port.get("netdev_mac"),
                    layer=LAYERS.get(port["link_layer"] or ""),
                    active=str(port["state"] or "").startswith("ACTIVE"),
                    facts=port,
                    device_facts=device,
                )
            )
    return sorted(found, key=_order)


def choose(
    wish: Wish, found: Sequence[Port], management: Sequence[str], known: Sequence[str], findings: Findings
) -> list[Port]:
    """The rails in their order. Adds all mistakes to `findings`.

    `management` has the network devices by which operators and Ansible reach the node. `known` has the keys of the
    rails of the last run: such a rail remains a rail while its cable is out, and with `auto` must have its device.
    """
    if wish.rails == AUTO:
        candidates = _candidates(wish, found, management)
        chosen = list(_auto(wish, candidates, known, findings))
        _lost(found, candidates, chosen, known, findings)
    else:
        chosen = list(_named(wish, found, management, known, findings))
    layers = sorted({port.layer or "unknown" for port in chosen})
    if len(layers) > 1:
        named = ", ".join(f"{port.name} is {port.layer or 'unknown'}" for port in chosen)
        findings.problem(
            "rdma", f"{named}: rails must have one link layer; set rdma_link_layer, or list the rails", "rdma_rails"
        )
    return chosen


def _candidates(wish: Wish, found: Sequence[Port], management: Sequence[str]) -> list[Port]:
    """The ports that can be rails."""
    free = [port for port in found if port.netdev is None or port.netdev not in management]
    return [port for port in free if wish.link_layer in (AUTO, port.layer)]


def _lost(
    found: Sequence[Port],
    candidates: Sequence[Port],
    chosen: Sequence[Port],
    known: Sequence[str],
    findings: Findings,
) -> None:
    """Add a mistake for each known rail without a device: a run must not forget a card that has failed. Warn if all
    ports are down."""
    there = {port.key for port in found}
    for key in known:
        if key not in there:
            findings.problem(
                "rdma",
                f"{key} is a rail of the last run, and has no RDMA device now; see dmesg and lspci. If the card was "
                "removed or moved, list the rails that this node has",
                "rdma_rails",
                AUTO,
            )
    if candidates and not chosen:
        states = ", ".join(f"{port.name} is {port.facts['state'] or 'unknown'}" for port in candidates)
        findings.warning("rdma", f"this node gets no rails: {states}; check cables and switch", "rdma_rails")


def _auto(wish: Wish, candidates: Sequence[Port], known: Sequence[str], findings: Findings) -> Iterator[Port]:
    # Ports without a manager are rails that wait for one, unless the node has active rails.
    waiting = not any(port.active for port in candidates)
    for port in candidates:
        if port.active:
            yield port
        elif port.unmanaged and (waiting or port.key in known):
            _without_manager(wish, port, findings)
            yield port
        elif port.key in known:
            _down(port, findings)
            yield port


def _named(
    wish: Wish, found: Sequence[Port], management: Sequence[str], known: Sequence[str], findings: Findings
) -> Iterator[Port]:
    seen: set[str] = set()
    for entry in wish.rails:
        if isinstance(entry, str):
            continue
        ((kind, name),) = entry.items()
        where, value = "rdma_rails", f"{kind}: {name}"
        port = _find(kind, name, found)
        if port is None:
            names = filter(None, (_word(kind, port) for port in found))
            findings.problem("rdma", f"no RDMA port has this {kind}; {nearest(name, names)}", where, value)
        elif port.key in seen:
            findings.problem("rdma", f"{port.name} is a rail twice; remove one entry", where, value)
        elif port.netdev is not None and port.netdev in management:
            findings.problem(
                "rdma", f"{port.netdev} is the management interface, which this role leaves alone", where, value
            )
        elif wish.link_layer not in (AUTO, port.layer):
            findings.problem("rdma", f"{port.name} is {port.layer}, not {wish.link_layer}", where, value)
        else:
            seen.add(port.key)
            if port.unmanaged:
                _without_manager(wish, port, findings)
            elif not port.active and port.key in known:
                _down(port, findings)
            elif not port.active:
                state = port.facts["state"] or "unknown"
                findings.problem(
                    "rdma", f"{port.name} is {state}; check cable and switch, or remove the rail", where, value
                )
            yield port


def _down(port: Port, findings: Findings) -> None:
    """Warn of a rail of the last run whose link is down: a mistake would end the run."""
    findings.warning("rdma", f"{port.name} is down, but remains a rail; check its cable", "rdma_rails")


def _without_manager(wish: Wish, port: Port, findings: Findings) -> None:
    """Warn of a port without a subnet manager, unless this node becomes the manager."""
    if not wish.subnet_manager:
        findings.warning("rdma", f"{port.name} is {port.facts['state']}: {NO_MANAGER}", "rdma_rails")


def _find(kind: str, name: str, found: Sequence[Port]) -> Port | None:
    place, _slash, number = name.partition("/")
    if kind == "pci":
        place = pci.normalise(place) or place
    return next(
        (port for port in found if place == _word(kind, port) and number in ("", str(port.number))),
        None,
    )


def _word(kind: str, port: Port) -> str | None:
    return {"pci": port.pci_address, "netdev": port.netdev, "device": port.device}[kind]


def _order(port: Port) -> tuple[bool, list[int], str, int]:
    address = port.pci_address
    return address is None, pci.sort_key(address) if address else [], port.device, port.number
