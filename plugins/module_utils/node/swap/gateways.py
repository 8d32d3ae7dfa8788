# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who serves a replica set, by the word of the gateways. Private to the collection.

A gateway answers GET /sets/NAME on its port for metrics (gateway/gateway.lua).
"""

from __future__ import annotations

import concurrent.futures
import http.client
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...engine.inventory import bridge_name, next_name
from ...engine.swap_settings import Gateway

ANSWER_SECONDS = 2.0

YOUNG_SECONDS = 4
"""A process that is younger has asked no agent yet: it tells what a file remembers, or that all are up."""

LONGEST_ANSWER = 1 << 20
"""Bytes. An answer has some 150 for each server."""


@dataclass(frozen=True)
class Server:
    """An engine, as a gateway has it."""

    up: bool
    status: str
    weight: int
    """Percent of the full share: less while a slow start lasts."""
    requests: int
    failures: int
    """Requests that failed at the engine, since the gateway's process began."""
    addresses: tuple[str, ...] = ()
    """Where the gateway reaches the engine, as ADDRESS:PORT: from its next release on, that may be elsewhere."""


@dataclass(frozen=True)
class SetView:
    """What a gateway tells of a replica set."""

    gateway: str
    known: bool
    """Whether the gateway has the set at all."""
    hold_seconds: int = 0
    """How long the gateway holds requests while no engine of the set serves."""
    started: float = 0.0
    """When its process began: counters of two processes do not compare."""
    age: int = YOUNG_SECONDS
    """Seconds since the process began."""
    requests: int = 0
    """Of the whole set, since the process began."""
    servers: Mapping[str, Server] = field(default_factory=dict)
    """By name: a node's, or INSTANCE_bridge.NODE. The two servers of an engine that moves are one here."""
    key_mark: str | None = None
    """Of the key that engines are sent, empty for none; None where the gateway does not tell."""

    def up(self) -> set[str]:
        return {name for name, server in self.servers.items() if server.up}


class Silent(Exception):
    """A gateway does not tell; the message says why."""


def ask(gateway: Gateway, name: str, seconds: float = ANSWER_SECONDS) -> SetView:
    """What a gateway tells of a set. Raises Silent."""
    connection = http.client.HTTPConnection(gateway.address, gateway.port, timeout=seconds)
    try:
        connection.request("GET", f"/sets/{name}", headers={"Connection": "close"})
        response = connection.getresponse()
        body = response.read(LONGEST_ANSWER)
        if response.status == http.HTTPStatus.NOT_FOUND and b"unknown_set" in body:
            return SetView(gateway.name, known=False)
        if response.status != http.HTTPStatus.OK:
            raise Silent(
                f"{gateway.name} answers HTTP {response.status} for /sets/{name}: run baremetal.inference.site there"
            )
        return parse(gateway.name, json.loads(body))
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
        where = f"{gateway.address} port {gateway.port}"
        raise Silent(f"{gateway.name} does not tell at {where} who serves {name}: {error or repr(error)}") from error
    finally:
        connection.close()


def parse(gateway: str, value: Mapping[str, Any]) -> SetView:
    """An answer. Raises KeyError, TypeError, ValueError."""
    servers: dict[str, Server] = {}
    coming = f"{next_name(str(value['set']))}."
    # HAProxy promises no order: a node's own server goes first.
    for name, each in sorted(dict(value["servers"]).items(), key=lambda item: item[0].startswith(coming)):
        node = str(name).removeprefix(coming)
        servers[node] = _joined(servers.get(node), _server(each))
    return SetView(
        gateway,
        known=True,
        hold_seconds=int(value["hold_seconds"]),
        started=float(value["started"]),
        age=int(value["age"]),
        requests=int(value["requests"]),
        servers=servers,
        key_mark=None if value.get("key_mark") is None else str(value["key_mark"]),
    )


def _server(value: Mapping[str, Any]) -> Server:
    """Raises KeyError, TypeError, ValueError."""
    return Server(
        up=bool(value["up"]),
        status=str(value["status"]),
        weight=int(value["weight"]),
        requests=int(value["requests"]),
        failures=int(value["failures"]),
        addresses=tuple(filter(None, [str(value.get("address", ""))])),
    )


def _joined(first: Server | None, second: Server) -> Server:
    """Both servers of an engine as one: what the one says that serves, or else the first."""
    if first is None:
        return second
    # The one that does not run is down. A drained one tells more than that.
    tells = second if second.up or (not first.up and second.status.startswith("DRAIN")) else first
    return replace(
        tells,
        requests=first.requests + second.requests,
        failures=first.failures + second.failures,
        addresses=(*first.addresses, *second.addresses),
    )


def from_note(value: Mapping[str, Any]) -> SetView:
    """A view as a swap has kept it. Raises KeyError, TypeError."""
    servers = {
        name: Server(**{**each, "addresses": tuple(each.get("addresses", ()))})
        for name, each in value["servers"].items()
    }
    return SetView(**{**value, "servers": servers})


@dataclass(frozen=True)
class Views:
    """What all gateways tell at once; `silent` has those that do not tell, with the reason."""

    told: tuple[SetView, ...]
    silent: Mapping[str, str]

    def alone_at(self, own: Iterable[str]) -> list[str]:
        """The gateways that would have no server left without the servers `own`."""
        going = set(own)
        return [view.gateway for view in self.told if view.up() and not view.up() - going]

    def nobody_at(self, own: Iterable[str]) -> list[str]:
        """The gateways that have no server up beside the servers `own`, whether those are up or not."""
        going = set(own)
        return [view.gateway for view in self.told if view.known and not view.up() - going]


def ask_all(gateways: Sequence[Gateway], name: str) -> Views:
    """What all gateways tell of a set."""
    if not gateways:
        return Views((), {})
    told: list[SetView] = []
    silent: dict[str, str] = {}
    with concurrent.futures.ThreadPoolExecutor(min(16, len(gateways))) as pool:
        for gateway, asked in [(gateway, pool.submit(ask, gateway, name)) for gateway in gateways]:
            try:
                told.append(asked.result())
            except Silent as error:
                silent[gateway.name] = str(error)
    return Views(tuple(told), silent)


def own_servers(node: str, name: str) -> tuple[str, str]:
    """The names of an instance of this node, and of the instance's bridge, at the gateways."""
    return node, f"{bridge_name(name)}.{node}"


def requests_between(before: Iterable[SetView], after: Iterable[SetView]) -> int | None:
    """Requests that a set got between two looks; None where no gateway can tell."""
    first = {view.gateway: view for view in before}
    counted = [
        view.requests - first[view.gateway].requests
        for view in after
        if view.gateway in first and view.started == first[view.gateway].started
    ]
    return sum(counted) if counted else None


def failed_share(before: SetView, after: SetView, server: str) -> tuple[int, int] | None:
    """Failed and all requests of a server between two looks; None where the gateway has begun to count anew."""
    first, last = before.servers.get(server), after.servers.get(server)
    if before.started != after.started or first is None or last is None:
        return None
    return last.failures - first.failures, last.requests - first.requests
