# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which engines answer to which name, over all nodes. Private to the collection.

A replica set is the instances of one name on different nodes. It answers to that name, which stays, and to the name of
the model that it serves: by the word of its nodes, for the inventory may be ahead of them.
"""

from __future__ import annotations

import ipaddress
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..core.addresses import AddressError, host_addresses, in_url, resolve
from ..core.problems import Problem
from ..engine.inventory import bridge_name, present_instances
from ..engine.reported import running
from .names import MODEL, SET

SERVED_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@+-]{0,127}")
"""What may stand in HAProxy's maps, which separate key and value by blanks."""

SERVER_NAME = re.compile(r"[A-Za-z0-9_.:-]+")
"""Letters of a server's name. Source: HAProxy's configuration manual, 4.2, "server"."""


@dataclass(frozen=True)
class Replica:
    """One engine of one node, as the gateway reaches it."""

    host: str
    address: str
    name: str
    """The instance's, and so the replica set's."""
    model: str
    """What it serves."""
    port: int
    engine_key: str = ""
    """What the engine wants as a bearer; empty for nothing."""
    bridge_port: int | None = None
    """Where the engine would listen that stands in for this one while an update swaps it."""
    declared: str = ""
    """The model that the inventory asks for, which an update may have yet to bring."""

    @property
    def endpoint(self) -> str:
        return f"{in_url(self.address)}:{self.port}"

    @property
    def bridge(self) -> Replica | None:
        """The engine that may stand in for this one."""
        if self.bridge_port is None:
            return None
        return replace(self, name=bridge_name(self.name), port=self.bridge_port, bridge_port=None)

    @property
    def alias(self) -> str:
        """The name of its server wherever its host's alone would not tell which engine it is."""
        return f"{self.name}.{self.host}"


@dataclass(frozen=True)
class Backend:
    """Engines that requests are balanced over."""

    name: str
    replicas: tuple[Replica, ...]

    @property
    def own(self) -> bool:
        """Whether this is a replica set. Otherwise it borrows engines from several, and follows their state there."""
        return self.name.startswith(SET)


@dataclass(frozen=True)
class Fleet:
    """All backends, and the backend behind each served name."""

    backends: tuple[Backend, ...]
    routes: Mapping[str, Backend]
    declared: frozenset[str] = frozenset()
    """Models that the inventory knows, whether they are served or not: a key may name them before, and after."""


def replicas_of(
    hosts: Iterable[str],
    hostvars: Mapping[str, Any],
    own: str,
    resolver: Callable[[str], list[str]] = resolve,
    leaving: Mapping[str, Collection[str]] | None = None,
) -> list[Replica]:
    """The engines that a site's variables declare on hosts, as the gateway on host `own` reaches them, but for those
    that are `leaving`: names by host. Each with the model that it runs, if its node has reported it.

    What is no instance is passed over, since the node's own check reports it. Raises AddressError with all hosts whose
    engines cannot be reached.
    """
    found, unreachable = [], []
    for host in hosts:
        variables = hostvars.get(host, {})
        gone = (leaving or {}).get(host, ())
        instances = [
            item
            for item in present_instances(variables.get("instances") or [])
            if isinstance(item, Mapping) and item.get("name") not in gone
        ]
        if not instances:
            continue
        try:
            address = _engine_address(host, variables, host == own, resolver)
        except AddressError as error:
            unreachable.append(str(error))
            continue
        ran = running(variables)
        for item in instances:
            name, declared = str(item.get("name", "")), str(item.get("model", ""))
            found.append(
                Replica(
                    host=host,
                    address=address,
                    name=name,
                    model=ran[name].model if name in ran else declared,
                    port=item.get("port", 0),
                    engine_key=str(variables.get("vllm_api_key") or ""),
                    bridge_port=item.get("bridge_port"),
                    declared=declared,
                )
            )
    if unreachable:
        raise AddressError("; ".join(unreachable))
    return found


def _engine_address(host: str, variables: Mapping[str, Any], own: bool, resolver: Callable[[str], list[str]]) -> str:
    """Where the engines of a host answer. Raises AddressError."""
    listens = str(variables.get("inference_address") or "127.0.0.1")
    try:
        address = ipaddress.ip_address(listens)
    except ValueError:
        return host_addresses([host], {host: variables}, resolver)[0]
    if own and (address.is_loopback or address.is_unspecified):
        return "::1" if listens in ("::1", "::") else "127.0.0.1"
    if address.is_loopback:
        raise AddressError(
            f"{host}: its engines listen on {listens}, which no gateway on another machine reaches: set"
            " inference_address to the node's address in the network of the gateways"
        )
    return host_addresses([host], {host: variables}, resolver)[0]


def check_replicas(replicas: Iterable[Replica]) -> list[Problem]:
    """What HAProxy could not route, or would route to the wrong engine."""
    replicas = list(replicas)
    problems = []
    models: dict[str, str] = {}
    for replica in replicas:
        models.setdefault(replica.model, replica.name)
    for replica in replicas:
        where = f"{replica.name or 'an instance'} on {replica.host}"
        if not SERVER_NAME.fullmatch(replica.host):
            message = "cannot name a server of HAProxy: use letters, digits and . _ : - in the inventory"
            problems.append(Problem(where, message, "host", replica.host))
        models_of = sorted({replica.model, replica.declared or replica.model})
        for key, value in [("name", replica.name), *(("model", model) for model in models_of)]:
            if not SERVED_NAME.fullmatch(value):
                message = "cannot be asked for: use up to 128 letters, digits and . _ / : @ + -"
                problems.append(Problem(where, message, key, value))
        other = models.get(replica.name, replica.name)
        if other != replica.name and replica.model != replica.name:
            message = f"is also the model that {other} serves: clients that ask for that model would get this one"
            problems.append(Problem(where, message, "name", replica.name))
    return problems


def fleet_of(replicas: Iterable[Replica], models: Iterable[str] = ()) -> Fleet:
    """Backends and routes, and what else may be named: `models`.

    A model's own name leads to the replica set that serves it. Where several sets do, or only some of a set's nodes,
    the name has a backend of its own over just those engines.
    """
    replicas = list(replicas)
    by_set: dict[str, list[Replica]] = defaultdict(list)
    by_model: dict[str, list[Replica]] = defaultdict(list)
    for replica in replicas:
        by_set[replica.name].append(replica)
        by_model[replica.model].append(replica)
    sets = {name: Backend(SET + name, tuple(members)) for name, members in sorted(by_set.items())}
    routes = dict(sets)
    shared = []
    for model, members in sorted(by_model.items()):
        if model in routes:
            continue
        whole = sets[members[0].name]
        if whole.replicas == tuple(members):
            routes[model] = whole
        else:
            shared.append(Backend(f"{MODEL}{_letters(model)}", tuple(members)))
            routes[model] = shared[-1]
    declared = {replica.declared for replica in replicas if replica.declared}
    return Fleet((*sets.values(), *shared), dict(sorted(routes.items())), frozenset({*declared, *models}))


def _letters(name: str) -> str:
    """A served name in the letters of a backend's name; what else it has becomes its code, so that none are alike."""
    return "".join(letter if re.match(r"[A-Za-z0-9.-]", letter) else f"_{ord(letter):02x}" for letter in name)
