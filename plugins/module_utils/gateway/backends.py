# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which engines answer to which name, over all nodes. Private to the collection.

A replica set is the instances of one name on different nodes. Clients reach the set by this name, which stays, and by
the name of the model that it serves. Model, address, port and keys of each engine come from the nodes' reports, since
the inventory may already ask for others. If the next release has another address or port, the engine has two servers,
and the node's agent reports which of them runs.
"""

from __future__ import annotations

import ipaddress
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..core.addresses import VARIABLES, AddressError, host_addresses, in_url, resolve
from ..core.problems import Problem
from ..engine.environment import api_key, mark
from ..engine.instance_facts import Endpoint, UpdateFacts
from ..engine.inventory import bridge_name, bridged_instance, led_instances, next_instance, next_name, present_instances
from ..engine.reported import running
from ..models.registry import routing
from ..models.registry.adapters import of as adapters_of
from ..models.registry.routing import Routing
from .names import MODEL, SET

SERVED_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@+-]{0,127}")
"""A name that can stand in HAProxy's maps, which separate key and value by blanks."""

COMING = "update_coming"
"""A host variable of the role update: UpdateFacts of instances whose next release has another address, port or key.
Needed because the inventory does not contain the next release of a rollback."""

SERVER_NAME = re.compile(r"[A-Za-z0-9_.:-]+")
"""The characters that HAProxy allows in a server's name. Source: HAProxy's configuration manual, 4.2, "server"."""


@dataclass(frozen=True)
class Place:
    """Where gateways reach a release of an engine."""

    address: str
    port: int
    words: str = ""
    """Where the release listens (Endpoint.words), with a blank between several."""

    @property
    def endpoint(self) -> str:
        return f"{in_url(self.address)}:{self.port}"


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
    """The key that the inventory asks for; empty if the engine requires none."""
    bridge_port: int | None = None
    """Port of the bridge, which serves while an update swaps this engine; None if there is no bridge."""
    declared: str = ""
    """The model that the inventory asks for. The engine may serve another one until the next update."""
    other_keys: tuple[str, ...] = ()
    """Other keys of the inventory, for engines that do not accept engine_key."""
    running_marks: tuple[str, ...] | None = None
    """Marks of the keys that the engine accepts now, empty if it requires none;
    None if the node has not reported them."""
    coming_marks: tuple[str, ...] | None = None
    """Marks of the keys that the next release accepts; None if they stay the same."""
    words: str = ""
    """Where this release listens (Endpoint.words); empty if the engine has one server."""
    coming: Place | None = None
    """Where gateways reach the next release; None if address and port stay."""
    agent_address: str = ""
    """Address of the node's agent; empty if it is the engine's address."""
    adapters: tuple[str, ...] = ()
    """The LoRA adapters that the engine serves in addition to its model."""
    declared_adapters: tuple[str, ...] = ()
    """The adapters that the inventory asks for. The engine may serve others until the next update."""
    tasks: tuple[str, ...] = ()
    """The tasks of the model that the engine serves; empty if the node has not reported them."""
    routing: Routing | None = None
    """How a gateway chooses an engine for requests to this model; None if the model's entry has no key `routing`."""

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Replica:
        """The replica from which asdict() has made `value`. Raises TypeError."""
        coming = value.get("coming")
        names = {key: tuple(value.get(key, ())) for key in ("other_keys", "adapters", "declared_adapters", "tasks")}
        given = {key: value.get(key) for key in ("running_marks", "coming_marks")}
        marks = {key: None if found is None else tuple(found) for key, found in given.items()}
        asked = value.get("routing")
        made = {
            "coming": Place(**coming) if coming else None,
            "routing": Routing.from_dict(asked) if asked else None,
        }
        return cls(**{**value, **names, **marks, **made})

    @property
    def endpoint(self) -> str:
        return Place(self.address, self.port).endpoint

    @property
    def next(self) -> Replica | None:
        """The next server of the engine, for its next release; None if address and port stay."""
        if self.coming is None:
            return None
        return replace(
            self,
            name=next_name(self.name),
            address=self.coming.address,
            port=self.coming.port,
            words=self.coming.words,
            coming=None,
            bridge_port=None,
            agent_address=self._agent_seen_from(self.coming.address),
        )

    @property
    def bridge(self) -> Replica | None:
        """The bridge of this engine, which runs the next release; None if there is no bridge."""
        if self.bridge_port is None:
            return None
        address = self.coming.address if self.coming else self.address
        return replace(
            self,
            name=bridge_name(self.name),
            address=address,
            port=self.bridge_port,
            words="",
            coming=None,
            bridge_port=None,
            agent_address=self._agent_seen_from(address),
        )

    def _agent_seen_from(self, address: str) -> str:
        agent = self.agent_address or self.address
        return "" if agent == address else agent

    def accepts(self, key: str, *, soon: bool) -> bool:
        """Whether the engine accepts a key; with `soon`, whether its next release accepts the key as well."""
        marks = [self.running_marks, self.coming_marks if soon else None]
        known = [each for each in marks if each is not None]
        if not known:
            # The node has reported no marks:
            # the inventory decides, so that a node that does not answer does not stop the others.
            return key in (self.engine_key, *self.other_keys)
        return all(not each or (key != "" and mark(key) in each) for each in known)

    @property
    def agent_name(self) -> str:
        """The name by which the node's agent knows the engine."""
        return next_instance(self.name) or self.name

    @property
    def set(self) -> str:
        """The name of the replica set."""
        return bridged_instance(self.name) or self.agent_name

    @property
    def server(self) -> str:
        """The name of this engine's server in its own set."""
        return self.host if self.name == self.set else self.alias

    @property
    def alias(self) -> str:
        """The name of this engine's server in backends that may have several servers of its host."""
        return f"{self.name}.{self.host}"


@dataclass(frozen=True)
class Backend:
    """Engines among which HAProxy balances requests."""

    name: str
    replicas: tuple[Replica, ...]

    @property
    def own(self) -> bool:
        """Whether this backend is a replica set.
        Other backends borrow engines of sets: their servers follow the state of the sets' servers."""
        return self.name.startswith(SET)

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that at least one engine answers; empty if the tasks of any engine are unknown."""
        if not all(replica.tasks for replica in self.replicas):
            return ()
        return tuple(dict.fromkeys(task for replica in self.replicas for task in replica.tasks))

    def routing(self, default: Routing) -> Routing:
        """The routing of the engines' models; no affinity if the models have different routings."""
        (first, *others) = {replica.routing or default for replica in self.replicas}
        return Routing() if others else first


@dataclass(frozen=True)
class Fleet:
    """All backends, and the backend behind each served name."""

    backends: tuple[Backend, ...]
    routes: Mapping[str, Backend]
    declared: frozenset[str] = frozenset()
    """All models of the inventory, also those that no engine serves.
    A key may name a model before an engine serves it."""


def replicas_of(
    hosts: Iterable[str],
    hostvars: Mapping[str, Any],
    own: str,
    resolver: Callable[[str], list[str]] = resolve,
    leaving: Mapping[str, Collection[str]] | None = None,
) -> list[Replica]:
    """The engines that `hosts` declare, with addresses as the gateway on host `own` reaches them.

    `leaving` names instances to leave out, by host. Each engine has the model that its node reports, or else the
    declared one. Skips items that are no instance, since the check on the node reports them. Raises AddressError with
    all hosts whose engines cannot be reached, or whose instances are no list.
    """
    found, unreachable = [], []
    for host in hosts:
        variables = hostvars.get(host, {})
        gone = (leaving or {}).get(host, ())
        declared = variables.get("instances") or []
        if not isinstance(declared, Iterable):
            unreachable.append(f"{host}: instances is {declared!r}: it must be a list")
            continue
        instances = [
            item
            for item in present_instances(led_instances(list(declared), host))
            if isinstance(item, Mapping) and item.get("name") not in gone
        ]
        if not instances:
            continue
        node = _Node(host, variables, host == own, resolver)
        try:
            address = node.address(node.listens)
        except AddressError as error:
            unreachable.append(str(error))
            continue
        found += [node.replica(item, address) for item in instances]
    if unreachable:
        raise AddressError("; ".join(unreachable))
    return found


class _Node:
    """A node's variables, and how the gateway reaches the node."""

    def __init__(
        self, host: str, variables: Mapping[str, Any], own: bool, resolver: Callable[[str], list[str]]
    ) -> None:
        self._host, self._variables, self._own, self._resolver = host, variables, own, resolver
        self.listens = str(variables.get("inference_address") or "127.0.0.1")
        """The address on which the node's engines listen, by the inventory."""
        self._ran = running(variables)
        coming = map(UpdateFacts.from_dict, variables.get(COMING) or ())
        self._coming = {item.name: item.coming for item in coming if item.coming}
        self._keys = _keys(variables)

    def address(self, listens: str) -> str:
        """The address at which the gateway reaches a service that listens on `listens`. Raises AddressError."""
        return _engine_address(self._host, self._variables, listens, self._own, self._resolver)

    def replica(self, item: Mapping[str, Any], address: str) -> Replica:
        """An engine. `address` is where the gateway reaches it by the inventory."""
        name, declared = str(item.get("name", "")), str(item.get("model", ""))
        ran = self._ran.get(name)
        asked = Place(address, item.get("port", 0), self._words(item))
        endpoints = [*(ran.endpoints if ran else ()), *filter(None, [self._coming.get(name)])]
        places = [*(place for each in endpoints if (place := self._place(each))), asked]
        here = _merged(places, places[0])
        there = next((place for place in places if place.endpoint != here.endpoint), None)
        coming = _merged(places, there) if there else None
        adapters = tuple(adapters_of(self._variables.get("models") or {}, [declared]))
        marks = ran.endpoints[0].marks if ran and ran.endpoints else None
        serves = ran.model if ran else declared
        return Replica(
            host=self._host,
            address=here.address,
            name=name,
            model=serves,
            port=here.port,
            engine_key=self._keys[0],
            bridge_port=item.get("bridge_port"),
            declared=declared,
            other_keys=self._keys[1:],
            running_marks=marks,
            coming_marks=next((each.marks for each in reversed(endpoints) if each.marks != marks), None),
            words=here.words if coming else "",
            coming=coming,
            agent_address="" if here.address == address else address,
            adapters=ran.adapters if ran else adapters,
            declared_adapters=adapters,
            tasks=ran.tasks if ran else (),
            routing=routing.of(self._variables.get("models") or {}, serves),
        )

    def _words(self, item: Mapping[str, Any]) -> str:
        return Endpoint(self.listens, item.get("port", 0)).words

    def _place(self, endpoint: Endpoint) -> Place | None:
        """Where the gateway reaches an engine; None if the gateway cannot reach the engine."""
        try:
            return Place(self.address(endpoint.address), endpoint.port, endpoint.words)
        except AddressError:
            return None


def _merged(places: Iterable[Place], one: Place) -> Place:
    """`one`, with the words of all places that have the same endpoint."""
    words = dict.fromkeys(place.words for place in places if place.endpoint == one.endpoint)
    return replace(one, words=" ".join(words))


def _keys(variables: Mapping[str, Any]) -> tuple[str, ...]:
    """The keys that engines of a host may require: first the key that the inventory asks for, then earlier ones."""
    environment = {**(variables.get("vllm_environment") or {}), **(variables.get("vllm_secret_environment") or {})}
    key = variables.get("vllm_api_key") or api_key(environment)
    return tuple(dict.fromkeys(map(str, [key, *(variables.get("vllm_accepted_keys") or ())])))


def _engine_address(
    host: str, variables: Mapping[str, Any], listens: str, own: bool, resolver: Callable[[str], list[str]]
) -> str:
    """The address at which a gateway reaches engines that listen on `listens`. Raises AddressError."""
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
    named = {name: variables[name] for name in VARIABLES if name in variables}
    return host_addresses([host], {host: {**named, "inference_address": listens}}, resolver)[0]


def check_replicas(replicas: Iterable[Replica]) -> list[Problem]:
    """A problem for each name that HAProxy cannot route, or would route to the wrong engine."""
    replicas = list(replicas)
    problems = []
    models: dict[str, str] = {}
    for replica in replicas:
        for model in (replica.model, *replica.adapters):
            models.setdefault(model, replica.name)
    for replica in replicas:
        where = f"{replica.name or 'an instance'} on {replica.host}"
        if not SERVER_NAME.fullmatch(replica.host):
            message = (
                "cannot name a server of HAProxy: rename the host in the inventory, with letters, digits and . _ : -"
            )
            problems.append(Problem(where, message, "host", replica.host))
        adapters = (*replica.adapters, *replica.declared_adapters)
        models_of = sorted({replica.model, replica.declared or replica.model, *adapters})
        for key, value in [("name", replica.name), *(("model", model) for model in models_of)]:
            if not SERVED_NAME.fullmatch(value):
                message = "cannot be the name of a model in a request: use up to 128 letters, digits and . _ / : @ + -"
                problems.append(Problem(where, message, key, value))
        other = models.get(replica.name, replica.name)
        if other != replica.name and replica.model != replica.name:
            message = (
                f"is also the model that {other} serves, and clients could not tell them apart: choose another name"
            )
            problems.append(Problem(where, message, "name", replica.name))
    return problems


def fleet_of(replicas: Iterable[Replica], models: Iterable[str] = ()) -> Fleet:
    """The backends, and the routes from served names to backends. Keys may name the other `models`, too.

    The name of a model or adapter leads to the replica set that serves it. If several sets serve it, or only some
    nodes of a set, the name gets its own backend with just the engines that serve it.
    """
    replicas = list(replicas)
    by_set: dict[str, list[Replica]] = defaultdict(list)
    by_model: dict[str, list[Replica]] = defaultdict(list)
    for replica in replicas:
        by_set[replica.name].append(replica)
        for model in dict.fromkeys((replica.model, *replica.adapters)):
            by_model[model].append(replica)
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
    declared = {name for replica in replicas for name in (replica.declared, *replica.declared_adapters) if name}
    return Fleet((*sets.values(), *shared), dict(sorted(routes.items())), frozenset({*declared, *models}))


def _letters(name: str) -> str:
    """A served name as part of a backend's name. Other characters become _CODE, so that names stay distinct."""
    return "".join(letter if re.match(r"[A-Za-z0-9.-]", letter) else f"_{ord(letter):02x}" for letter in name)
