# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads from gateways which servers a replica set has, and their states. Private to the collection.

A gateway answers GET /sets/NAME on its metrics port (gateway/gateway.lua).
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
"""Seconds. A process of HAProxy younger than this may not have checked agents yet: it shows the states of a file, or
all servers as up."""

LONGEST_ANSWER = 1 << 20
"""Most bytes of an answer. Each server takes about 150."""


@dataclass(frozen=True)
class Server:
    """An engine, as a gateway shows it."""

    up: bool
    status: str
    weight: int
    """Percent of the full share. It is lower during a slow start."""
    requests: int
    failures: int
    """Requests that failed at the engine since the gateway's process began."""
    addresses: tuple[str, ...] = ()
    """Where the gateway reaches the engine, as ADDRESS:PORT. The second address is the next server's."""


@dataclass(frozen=True)
class SetView:
    """What a gateway shows of a replica set."""

    gateway: str
    known: bool
    """Whether the gateway has the set."""
    hold_seconds: int = 0
    """How long the gateway holds requests while no engine of the set serves, in seconds."""
    started: float = 0.0
    """When the gateway's process began. Counters of two processes cannot be compared."""
    age: int = YOUNG_SECONDS
    """Seconds since the process began."""
    requests: int = 0
    """Requests of the whole set since the process began."""
    servers: Mapping[str, Server] = field(default_factory=dict)
    """By name: a node's name, or INSTANCE_bridge.NODE. The server of an instance and its next server count as one."""
    key_mark: str | None = None
    """Mark of the key that the gateway sends to the engines, empty for none; None if the gateway does not show it."""

    def up(self) -> set[str]:
        return {name for name, server in self.servers.items() if server.up}


class Silent(Exception):
    """A gateway gives no valid answer; the message says why."""


def ask(gateway: Gateway, name: str, seconds: float = ANSWER_SECONDS) -> SetView:
    """What a gateway shows of a set. Raises Silent."""
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
        raise Silent(f"{gateway.name} does not show at {where} who serves {name}: {error or repr(error)}") from error
    finally:
        connection.close()


def parse(gateway: str, value: Mapping[str, Any]) -> SetView:
    """The view in an answer. Raises KeyError, TypeError, ValueError."""
    servers: dict[str, Server] = {}
    coming = f"{next_name(str(value['set']))}."
    # HAProxy's order is not fixed. Here, the server of the running release comes first.
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
    """A server of an answer. Raises KeyError, TypeError, ValueError."""
    return Server(
        up=bool(value["up"]),
        status=str(value["status"]),
        weight=int(value["weight"]),
        requests=int(value["requests"]),
        failures=int(value["failures"]),
        addresses=tuple(filter(None, [str(value.get("address", ""))])),
    )


def _joined(first: Server | None, second: Server) -> Server:
    """Both servers of an engine as one, with the state of the server that serves, or else of the first."""
    if first is None:
        return second
    # A server without a running release is down. If neither is up, a drained state says more than a down one.
    leading = second if second.up or (not first.up and second.status.startswith("DRAIN")) else first
    return replace(
        leading,
        requests=first.requests + second.requests,
        failures=first.failures + second.failures,
        addresses=(*first.addresses, *second.addresses),
    )


def from_note(value: Mapping[str, Any]) -> SetView:
    """A view that a swap has recorded. Raises KeyError, TypeError."""
    servers = {
        name: Server(**{**each, "addresses": tuple(each.get("addresses", ()))})
        for name, each in value["servers"].items()
    }
    return SetView(**{**value, "servers": servers})


@dataclass(frozen=True)
class Views:
    """What all gateways show at one time. `silent` has the gateways without an answer, with the reason."""

    shown: tuple[SetView, ...]
    silent: Mapping[str, str]

    def alone_at(self, own: Iterable[str]) -> list[str]:
        """The gateways that send requests now, but would have no server without the servers `own`."""
        going = set(own)
        return [view.gateway for view in self.shown if view.up() and not view.up() - going]

    def without_others(self, own: Iterable[str]) -> list[str]:
        """The gateways that have no server up except the servers `own`, whether those are up or not."""
        going = set(own)
        return [view.gateway for view in self.shown if view.known and not view.up() - going]


def ask_all(gateways: Sequence[Gateway], name: str) -> Views:
    """What all gateways show of a set."""
    if not gateways:
        return Views((), {})
    shown: list[SetView] = []
    silent: dict[str, str] = {}
    with concurrent.futures.ThreadPoolExecutor(min(16, len(gateways))) as pool:
        for gateway, asked in [(gateway, pool.submit(ask, gateway, name)) for gateway in gateways]:
            try:
                shown.append(asked.result())
            except Silent as error:
                silent[gateway.name] = str(error)
    return Views(tuple(shown), silent)


def own_servers(node: str, name: str) -> tuple[str, str]:
    """The names of the servers of an instance on this node, and of its bridge, at the gateways."""
    return node, f"{bridge_name(name)}.{node}"


def requests_between(before: Iterable[SetView], after: Iterable[SetView]) -> int | None:
    """Requests of a set between two views; None if unknown at all gateways."""
    first = {view.gateway: view for view in before}
    counted = [
        view.requests - first[view.gateway].requests
        for view in after
        if view.gateway in first and view.started == first[view.gateway].started
    ]
    return sum(counted) if counted else None


def failed_share(before: SetView, after: SetView, server: str) -> tuple[int, int] | None:
    """Failed and all requests of a server between two views; None if the views cannot be compared."""
    first, last = before.servers.get(server), after.servers.get(server)
    if before.started != after.started or first is None or last is None:
        return None
    return last.failures - first.failures, last.requests - first.requests
