# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a node reads what the gateways send to its engines. Private to the collection. Pure but for resolver."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..core.addresses import AddressError, host_addresses, resolve
from ..core.defaults import BY_VARIABLE
from .names import asking_name

LOOPBACK = "127.0.0.1"

PORT = re.compile(r"[1-9][0-9]{0,4}")


class EndpointError(ValueError):
    """Gateways that a node cannot reach; the text names all of them."""


@dataclass(frozen=True)
class GatewayEndpoint:
    """One gateway as a node reaches it: http://ADDRESS:PORT/sets/NAME."""

    name: str
    """The name by which the node's agent knows the gateway."""
    address: str
    port: int


def is_loopback(address: str) -> bool:
    """Whether a text is a loopback address, which only its own machine reaches."""
    return _is(address, "is_loopback")


def endpoints(
    gateways: Iterable[str],
    hostvars: Mapping[str, Any],
    own: str,
    resolver: Callable[[str], list[str]] = resolve,
) -> list[GatewayEndpoint]:
    """The gateways as node `own` reaches them, in order.
    Raises EndpointError with all gateways that the node cannot reach."""
    found, problems = [], []
    for gateway in gateways:
        variables = hostvars.get(gateway, {})
        try:
            address = _address(gateway, variables, gateway == own, resolver)
            found.append(GatewayEndpoint(asking_name(gateway), address, _port(gateway, variables)))
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise EndpointError("; ".join(problems))
    return found


def _address(gateway: str, variables: Mapping[str, Any], own: bool, resolver: Callable[[str], list[str]]) -> str:
    """The address at which a node reaches the gateway. Raises AddressError."""
    listens = str(variables.get("gateway_bind_address") or "")
    if own and (not listens or _is(listens, "is_unspecified")):
        return LOOPBACK
    if not own and is_loopback(listens):
        raise AddressError(
            f"{gateway}: gateway_bind_address is {listens}, which no other machine reaches: set it to 0.0.0.0, or to an"
            " address that the nodes reach"
        )
    if not listens or _is(listens, "is_unspecified"):
        return host_addresses([gateway], {gateway: variables}, resolver)[0]
    return listens


def _port(gateway: str, variables: Mapping[str, Any]) -> int:
    """The gateway's metrics port. Raises EndpointError."""
    port = str(variables.get("gateway_metrics_port", BY_VARIABLE["gateway_metrics_port"]))
    if not (PORT.fullmatch(port) and int(port) < 65536):
        raise EndpointError(f"{gateway}: gateway_metrics_port is {port!r}: it must be a number from 1 to 65535")
    return int(port)


def _is(text: str, what: str) -> bool:
    """Whether a text is an address with this property of ipaddress."""
    try:
        return bool(getattr(ipaddress.ip_address(text), what))
    except ValueError:
        return False
