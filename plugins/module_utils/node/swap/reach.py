# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks that gateways reach the next release, if it has another port, address or key. Private to the collection;
pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from ...engine.instance_facts import Endpoint
from .gateways import SetView

REMEDY = "run baremetal.inference.update_model or rollback_model, which configure gateways before they swap"


def problems(runs: Endpoint | None, comes: Endpoint | None, views: Iterable[SetView], server: str) -> list[str]:
    """Why gateways would not reach the next release at a node's server; empty if they would, or if that is unknown."""
    if comes is None or runs is None or runs == comes:
        return []
    found = []
    for view in views:
        own = view.servers.get(server)
        if own is None:
            # This gateway sends no requests to the engine.
            continue
        if (runs.address, runs.port) != (comes.address, comes.port) and not _reached(own.addresses, comes):
            found.append(f"{view.gateway} has no server for {comes.address} port {comes.port}: {REMEDY}")
        if comes.marks and set(runs.marks) != set(comes.marks) and view.key_mark not in comes.marks:
            found.append(f"{view.gateway} sends a key that the next release does not accept: {REMEDY}")
    return found


def _reached(addresses: Iterable[str], comes: Endpoint) -> bool:
    """Whether one of a gateway's addresses of the engine is this endpoint."""
    return any(_is(address, comes) for address in addresses)


def _is(place: str, comes: Endpoint) -> bool:
    address, _colon, port = place.rpartition(":")
    if port != str(comes.port):
        return False
    listens = ipaddress.ip_address(comes.address)
    try:
        reached = ipaddress.ip_address(address.strip("[]"))
    except ValueError:
        return False
    # On the gateway's own host, the gateway reaches an engine that listens on all addresses by loopback.
    return listens.is_unspecified or reached == listens
