# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses of the rails, compared with each other and with those of other hosts. Private to the collection.

Rails have IPv4 addresses: the GIDs that NCCL prefers are made from them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

from ...core.problems import Findings, is_integer
from .variables import Wish

FIRST_TABLE = 1001
"""The routing table of the first rail; each further rail has the next one."""


def wanted(wish: Wish, rails: int, findings: Findings) -> list[ipaddress.IPv4Interface]:
    """The address of each rail, in the order of the rails; empty unless each rail has one. Adds all mistakes."""
    key = variable(wish)
    texts = wish.addresses or wish.subnets
    if not texts:
        return []
    if len(texts) != rails:
        action = "give one for each rail" if rails else "see rdma link, lspci and dmesg"
        findings.problem("rdma", f"has {len(texts)} entries for {rails} rails; {action}", key)
    if wish.addresses:
        found = [_address(text, findings) for text in wish.addresses]
    else:
        # A missing number is reported with the variables: number 1 is then only for the check of the subnets.
        found = [_from_subnet(text, wish.host_index or 1, findings) for text in wish.subnets]
    known = [address for address in found if address is not None]
    _disjoint(known, key, findings)
    named = bool(wish.addresses) or wish.host_index is not None
    return known if named and len(known) == len(texts) == rails else []


def variable(wish: Wish) -> str:
    """The variable that the addresses come from."""
    return "rdma_addresses" if wish.addresses else "rdma_subnets"


def same_subnet(addresses: Sequence[ipaddress.IPv4Interface]) -> bool:
    """Whether two rails have one subnet, so that the kernel would send all packets by the first of them."""
    return len({address.network for address in addresses}) < len(addresses)


def foreign(
    addresses: Sequence[ipaddress.IPv4Interface],
    peers: Mapping[str, Sequence[str]],
    management: Sequence[str],
    key: str,
    findings: Findings,
) -> None:
    """Compare the rails with other hosts and with the management network. Adds mistakes and warnings.

    `key` is the variable that the addresses come from. `peers` has the addresses of the rails of other hosts;
    `management` those of this host's management interface.
    """
    own = {address.ip: address for address in addresses}
    for host, texts in sorted(peers.items()):
        for number, text in enumerate(texts):
            other = parsed(text)
            if other is None:
                continue
            if other.ip in own:
                findings.problem(host, "is also an address of this host; each rail needs an address of its own", text)
            elif number < len(addresses) and other.network != addresses[number].network:
                mine = addresses[number]
                if other.network.overlaps(mine.network):
                    findings.problem(
                        host,
                        f"rail {number}: its subnet {other.network} overlaps {mine.network} here; use one prefix",
                        text,
                    )
                elif other.network in [address.network for address in addresses]:
                    findings.warning(
                        host,
                        f"rail {number}: its subnet {other.network} is that of another rail here; list the rails in "
                        "one order on all hosts",
                        text,
                    )
    for text in management:
        other = parsed(text)
        for address in addresses:
            if other and other.network.overlaps(address.network):
                findings.problem(
                    "rdma",
                    f"{address} overlaps the management network {other.network}; give the rails subnets of their own",
                    key,
                )


def of_peers(peers: Mapping[str, Sequence[Any]]) -> dict[str, list[str]]:
    """The addresses of other hosts, by their variables rdma_addresses, rdma_subnets and rdma_host_index. Mistakes of
    another host are left out: its own run reports them."""
    found = {}
    for host, (listed, subnets, index) in peers.items():
        own, networks = _texts(listed), _texts(subnets)
        if own:
            found[host] = own
        elif networks and is_integer(index) and index > 0:
            made = (_from_subnet(text, index, Findings()) for text in networks)
            found[host] = [str(address) for address in made if address is not None]
    return found


def _texts(value: Any) -> list[str]:
    """The texts in a list; empty for any other value."""
    return [text for text in value if isinstance(text, str)] if isinstance(value, (list, tuple)) else []


def parsed(text: str) -> ipaddress.IPv4Interface | None:
    """An IPv4 address with its prefix, /32 if the text has none; None for any other text."""
    try:
        return ipaddress.IPv4Interface(text)
    except ValueError:
        return None


def _address(text: str, findings: Findings) -> ipaddress.IPv4Interface | None:
    """An address such as 10.1.0.7/16."""
    address = parsed(text)
    if address is None or "/" not in text:
        findings.problem(
            "rdma", "is not an IPv4 address with the length of its prefix, such as 10.1.0.7/16", "rdma_addresses", text
        )
        return None
    return address if _usable(address, "rdma_addresses", findings) else None


def _from_subnet(text: str, index: int, findings: Findings) -> ipaddress.IPv4Interface | None:
    """The address of number `index` in a subnet."""
    try:
        network = ipaddress.IPv4Network(text)
    except ValueError as error:
        findings.problem("rdma", f"is not an IPv4 subnet such as 10.1.0.0/16: {error}", "rdma_subnets", text)
        return None
    if index >= network.num_addresses:
        findings.problem(
            "rdma", f"{text} has only {network.num_addresses} addresses; use a larger subnet", "rdma_host_index", index
        )
        return None
    address = ipaddress.IPv4Interface(f"{network[index]}/{network.prefixlen}")
    return address if _usable(address, "rdma_host_index", findings) else None


def _usable(address: ipaddress.IPv4Interface, key: str, findings: Findings) -> bool:
    """Whether a host may have the address. Networks of two addresses have neither network nor broadcast address."""
    network = address.network
    message = ""
    if address.is_multicast or address.is_loopback or address.is_unspecified or address.is_link_local:
        message = "is not an address for a rail; use an address of the rail's subnet"
    elif network.num_addresses > 2 and address.ip == network.network_address:
        message = f"is the address of the network {network} itself"
    elif network.num_addresses > 2 and address.ip == network.broadcast_address:
        message = f"is the broadcast address of {network}"
    elif network.num_addresses == 1:
        message = "has a prefix for one host; give the length of the subnet's prefix, such as /16"
    if message:
        findings.problem("rdma", message, key, str(address))
    return not message


def _disjoint(addresses: Sequence[ipaddress.IPv4Interface], key: str, findings: Findings) -> None:
    """Add a mistake for two rails with one address, or with different subnets that overlap."""
    for number, one in enumerate(addresses):
        for other in addresses[:number]:
            if one.ip == other.ip:
                findings.problem(
                    "rdma", "is the address of two rails; each rail needs an address of its own", key, str(one)
                )
            elif one.network != other.network and one.network.overlaps(other.network):
                findings.problem("rdma", f"{one.network} and {other.network} overlap; use subnets that do not", key)
