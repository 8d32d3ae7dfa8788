# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The addresses of inventory hosts. Private to the collection."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterable, Mapping
from typing import Any

VARIABLES = ("inference_address", "ansible_host")
"""Variables with a host's address or DNS name, in this order. If none is usable, the host's own name is resolved."""


class AddressError(ValueError):
    """Some hosts have no address. The message names all of them."""


def in_url(address: str) -> str:
    """An address or name for use before a colon and a port: IPv6 gets brackets (RFC 3986, 3.2.2)."""
    return f"[{address}]" if ":" in address else address


def resolve(name: str) -> list[str]:
    """All addresses to which this machine resolves a name; empty if it cannot resolve the name."""
    try:
        return sorted({str(entry[4][0]) for entry in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)})
    except (OSError, UnicodeError):
        return []


def refusal(address: str) -> str | None:
    """Why no program of this machine can listen on an address, in the kernel's words. Raises ValueError.

    None if a program can.
    """
    family = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((address, 0))
    except OSError as error:
        return str(error.strerror)
    return None


def is_own(address: str) -> bool:
    """Whether a program of this machine can listen on an address."""
    try:
        return refusal(address) is None
    except ValueError:
        return False


def _usable(text: str) -> bool:
    """Whether a text is an address that another machine can use."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified)


def _addresses_of(host: str, variables: Mapping[str, Any], resolver: Callable[[str], list[str]]) -> list[str]:
    for name in [*(str(variables[key]) for key in VARIABLES if variables.get(key)), host]:
        if _usable(name):
            return [name]
        found = [address for address in resolver(name) if _usable(address)]
        if found:
            return found
    return []


def host_addresses(
    hosts: Iterable[str],
    hostvars: Mapping[str, Any],
    resolver: Callable[[str], list[str]] = resolve,
    *,
    required: bool = True,
) -> list[str]:
    """The addresses of hosts, each once, in the hosts' order. With `required`, raises AddressError for missing ones."""
    found = {host: _addresses_of(host, hostvars.get(host, {}), resolver) for host in hosts}
    without = [host for host, addresses in found.items() if not addresses]
    if without and required:
        raise AddressError(
            f"no address for {', '.join(without)}: set inference_address or ansible_host to an address that other"
            " machines use, or make the name known to the controller's DNS"
        )
    return list(dict.fromkeys(address for addresses in found.values() for address in addresses))
