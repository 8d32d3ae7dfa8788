# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which engines answer to which name, over all nodes. Private to the collection.

A replica set is the instances of one name on different nodes. Clients reach it by that name, which stays, and by the
name of the model that it serves. The nodes report that model: the inventory may already ask for another one.
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
"""A name that can stand in HAProxy's maps, which separate key and value by blanks."""

SERVER_NAME = re.compile(r"[A-Za-z0-9_.:-]+")
"""The characters that HAProxy allows in a server's name. Source: HAProxy's configuration manual, 4.2, "server"."""


@dataclass(frozen=True)
class Replica:
    """One engine of one node, as the gateway reaches it."""

    host: str
    address: str
    name: str
    """Name of the instance, and so of the replica set."""
    model: str
    """The model that the engine serves."""
    port: int
    engine_key: str = ""
    """The key that the engine requires; empty where the engine requires none."""
    bridge_port: int | None = None
    """Port of the bridge, which serves while an update swaps this engine; None where there is no bridge."""
    declared: str = ""
    """The model that the inventory asks for. The engine may still serve another one, until an update."""

    @property
    def endpoint(self) -> str:
        return f"{in_url(self.address)}:{self.port}"

    @property
    def bridge(self) -> Replica | None:
        """The bridge of this engine; None where there is none."""
        if self.bridge_port is None:
            return None
        return replace(self, name=bridge_name(self.name), port=self.bridge_port, bridge_port=None)

    @property
    def alias(self) -> str:
        """The name of its server in backends where the host's name alone would be ambiguous."""
        return f"{self.name}.{self.host}"


@dataclass(frozen=True)
class Backend:
    """Engines that requests are balanced over."""

    name: str
    replicas: tuple[Replica, ...]

    @property
    def own(self) -> bool:
        """Whether this backend is a replica set. Other backends borrow engines of sets, with their state there."""
        return self.name.startswith(SET)


@dataclass(frozen=True)
class Fleet:
    """All backends, and the backend behind each served name."""

    backends: tuple[Backend, ...]
    routes: Mapping[str, Backend]
    declared: frozenset[str] = frozenset()
    """All models of the inventory, also those that no engine serves: a key may name a model before and after."""


def replicas_of(
    hosts: Iterable[str],
    hostvars: Mapping[str, Any],
    own: str,
    resolver: Callable[[str], list[str]] = resolve,
    leaving: Mapping[str, Collection[str]] | None = None,
) -> list[Replica]:
    """The engines that `hosts` declare, with addresses as the gateway on host `own` reaches them.

    `leaving` has names of instances by host, which are left out. Each engine has the model that its node reports, or
    the declared one. Skips items that are no instance: the node's own check reports them. Raises AddressError with all
    hosts whose engines cannot be reached.
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
    """The address at which the engines of a host answer. Raises AddressError."""
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
    """Names that HAProxy cannot route, or would route to the wrong engine."""
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
    """The backends, and the routes from served names to them. `models`: other models that keys may name.

    A model's own name leads to the replica set that serves it. If several sets serve the model, or only some nodes of a
    set, the model gets a backend of its own with just those engines.
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
    """A served name in characters that a backend's name may have: others become _CODE, so that names stay distinct."""
    return "".join(letter if re.match(r"[A-Za-z0-9.-]", letter) else f"_{ord(letter):02x}" for letter in name)
