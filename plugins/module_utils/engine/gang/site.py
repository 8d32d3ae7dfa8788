# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the members of a node's gangs declare, and every mistake between them. Private to the collection. Pure.

The controller collects the declarations (`collect`), and the node checks its own gangs with them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.problems import Problem, nearest
from ..inventory import node_instances, present_instances, without_secrets
from . import executors
from .declared import EPHEMERAL, GANG_PORT, NODES, PORT_RANGE, PORTS
from .members import Gang, Member

ADDRESSES = ("inference_fabric_address", "inference_address")
"""Host variables with the address at which other members of a gang reach a node, in this order."""

_LOOPBACK = ("127.0.0.1", "::1")

_PORT_KEYS = ("port", "bridge_port", *PORTS)


@dataclass(frozen=True)
class Host:
    """What a member of a gang declares."""

    address: str = ""
    """Empty if no variable has an address."""
    variable: str = ADDRESSES[0]
    """The variable that has the address."""
    instances: tuple[Any, ...] = ()
    """The instances that the inventory declares for the host."""


@dataclass(frozen=True)
class Site:
    """The hosts that a node shares gangs with."""

    node: str = ""
    """The name of the node itself in the inventory."""
    group: tuple[str, ...] = ()
    """All nodes of the inventory."""
    hosts: Mapping[str, Host] = field(default_factory=dict)
    """The members of the node's gangs, and the node itself. A name that is no node is missing."""
    port_range: str = ""
    """The net.ipv4.ip_local_port_range that this run sets on the node; empty if the run leaves the range as it is."""

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Site:
        """A site from the form of collect(). Raises ValueError where the value is damaged."""
        try:
            hosts = {
                str(name): Host(str(host["address"]), str(host["variable"]), tuple(host["instances"]))
                for name, host in value.get("hosts", {}).items()
            }
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"the hosts of gangs are damaged: {error!r}") from error
        group = tuple(map(str, value.get("group", ())))
        return cls(str(value.get("node", "")), group, hosts, str(value.get("port_range", "")))


def spans(raw: Any) -> bool:
    """Whether a declared instance spans several nodes."""
    nodes = raw.get(NODES) if isinstance(raw, Mapping) else None
    return isinstance(nodes, list) and all(isinstance(node, str) for node in nodes)


def gangs_of(instances: Sequence[Any]) -> list[Mapping[str, Any]]:
    """The instances that are declared present and span several nodes."""
    return [raw for raw in present_instances(instances) if spans(raw)]


def collect(
    instances: Sequence[Any],
    variables: Mapping[str, Any],
    group: Sequence[str],
    node: str,
    sysctl: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The site of a node, in plain values; empty where the node has no gang.

    `variables` are the variables of hosts by name. Only those of members are read. `sysctl` has the kernel parameters
    that this run sets on the node. Raises ValueError if a member's instances cannot be listed.
    """
    wanted = [member for raw in gangs_of(node_instances(instances, node)) for member in raw[NODES]]
    if not wanted:
        return {}
    hosts = {}
    for name in dict.fromkeys([node, *wanted]):
        if name not in group:
            continue
        host = variables[name]
        found = next((key for key in ADDRESSES if host.get(key)), ADDRESSES[0])
        instances_there = host.get("instances") or []
        if isinstance(instances_there, (str, Mapping)) or not isinstance(instances_there, Iterable):
            raise ValueError(f"{name}: instances is {instances_there!r}: it must be a list")
        declared = without_secrets(node_instances(list(instances_there), name))
        hosts[name] = {"address": str(host.get(found) or ""), "variable": found, "instances": declared}
    wanted_range = {str(key).replace("/", "."): value for key, value in (sysctl or {}).items()}.get(PORT_RANGE)
    return {"node": node, "group": list(group), "hosts": hosts, "port_range": str(wanted_range or "")}


def gang(
    name: str,
    nodes: Sequence[str],
    gang_port: int,
    rendezvous_port: int,
    site: Site,
    executor: str = "",
    *,
    dashboard: bool = False,
) -> Gang:
    """The gang of an instance without mistakes, without its digest."""
    members = tuple(Member(node, rank, site.hosts[node].address) for rank, node in enumerate(nodes))
    rank = list(nodes).index(site.node)
    return Gang(name, rank, members, gang_port, rendezvous_port, executor=executor, dashboard=dashboard)


def problems(instances: Sequence[Any], site: Site) -> list[Problem]:
    """Every mistake between this node's gangs and what other members declare. `instances` are those of this node.

    The keys of each gang by itself are checked elsewhere.
    """
    found: list[Problem] = []
    for raw in gangs_of(instances):
        where = f"instance {raw.get('name')}"
        unknown = [node for node in raw[NODES] if node not in site.group]
        found += [
            Problem(where, f"{node} is no node of the group inference: {nearest(str(node), site.group)}", NODES)
            for node in unknown
        ]
        names = [node for node in dict.fromkeys(raw[NODES]) if node in site.hosts]
        found += _address_problems(where, names, site)
        found += _member_problems(where, raw, names, site)
        found += _port_problems(where, raw, names, site)
    return list(dict.fromkeys(found))


def usable(text: str) -> bool:
    """Whether a text is an IP address that another node can reach."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified or address.is_multicast or address.is_link_local)


def _address_problems(where: str, names: Sequence[str], site: Site) -> Iterator[Problem]:
    known: dict[str, str] = {}
    versions: dict[int, str] = {}
    for name in names:
        host = site.hosts[name]
        advice = f"set {ADDRESSES[0]} of {name} to the address at which the other nodes of the instance reach it"
        if not host.address:
            yield Problem(where, f"{name} has no address for other nodes: {advice}", ADDRESSES[0])
            continue
        if not usable(host.address):
            message = f"is set for {name}, and is no IP address that other nodes can reach: {advice}"
            yield Problem(where, message, host.variable, host.address)
            continue
        address = ipaddress.ip_address(host.address)
        if other := known.get(address.compressed):
            yield Problem(where, f"is the address of {other} and of {name}: {advice}", host.variable, host.address)
        known.setdefault(address.compressed, name)
        versions.setdefault(address.version, name)
    if len(versions) > 1:
        message = f"{versions[4]} has an IPv4 and {versions[6]} an IPv6 address: give all members addresses of one kind"
        yield Problem(where, message, ADDRESSES[0])


def _member_problems(where: str, raw: Mapping[str, Any], names: Sequence[str], site: Site) -> Iterator[Problem]:
    """Members that do not declare the gang, or declare it otherwise."""
    own = dict(raw)
    for name in names:
        if name == site.node:
            continue
        there = [each for each in gangs_of(site.hosts[name].instances) if each.get("name") == raw.get("name")]
        if not there:
            message = f"{name} does not declare this instance: declare it in group_vars, for all of its nodes"
            yield Problem(where, message, NODES)
            continue
        keys = sorted(str(key) for key in {*own, *there[0]} if own.get(key) != there[0].get(key))
        if keys:
            message = f"differs between {site.node} and {name}: declare the instance once, in group_vars"
            yield Problem(where, message, ", ".join(keys))


def _port_problems(where: str, raw: Mapping[str, Any], names: Sequence[str], site: Site) -> Iterator[Problem]:
    """Ports of the gang that another instance of another member has. Another check covers the ports of this node."""
    ports = {raw[key]: key for key in _PORT_KEYS if isinstance(raw.get(key), int)}
    for name in names:
        if name == site.node:
            continue
        there = [each for each in present_instances(site.hosts[name].instances) if isinstance(each, Mapping)]
        # The gang itself is checked with the other instances of this node.
        labelled = [(f"instance {each.get('name')} on {name}", each) for each in there]
        others = [each for each in labelled if each[1].get("name") != raw.get("name")]
        yield from executors.conflicts(where, raw, others, _PORT_KEYS)
        for other in present_instances(site.hosts[name].instances):
            if not isinstance(other, Mapping) or other.get("name") == raw.get("name"):
                continue
            for key in _PORT_KEYS:
                if isinstance(port := other.get(key), int) and port in ports:
                    message = f"is {key} of instance {other.get('name')} on {name}: take another port"
                    yield Problem(where, message, ports[port], port)


def rules(instances: Sequence[Any], site: Site) -> list[dict[str, Any]]:
    """The firewall's rules of this node for its gangs, in the form of common_firewall_allow: one for each gang.

    Engines connect in both directions, so each member opens the same ports. Wrong addresses are left out, because the
    checks refuse them.
    """
    found = []
    for raw in gangs_of(instances):
        nodes = [node for node in raw[NODES] if node != site.node and node in site.hosts]
        sources = [site.hosts[node].address for node in nodes if usable(site.hosts[node].address)]
        if not sources:
            continue
        ports = [*([raw[GANG_PORT]] if raw.get(GANG_PORT) else []), *executors.opened(raw)]
        rule = {
            "name": f"gang {raw.get('name')}",
            "port": [*ports, f"{EPHEMERAL[0]}-{EPHEMERAL[1]}"],
            "sources": sources,
        }
        found.append(rule)
    return found


def engine_rules(instances: Sequence[Any], site: Site) -> list[dict[str, Any]]:
    """The connections that engines of this node's gangs open, in the form of common_firewall_engine_allow.

    Engines also connect to engines of their own node, but not to `gang_port`, where supervisors listen.
    """
    found: list[dict[str, Any]] = []
    for raw in gangs_of(instances):
        name = f"gang {raw.get('name')}"
        members = {node: site.hosts[node].address for node in raw[NODES] if node in site.hosts}
        usable_ones = {node: address for node, address in members.items() if usable(address)}
        if usable_ones:
            port = [*executors.opened(raw), f"{EPHEMERAL[0]}-{EPHEMERAL[1]}"]
            found.append({"name": name, "port": port, "destinations": list(usable_ones.values())})
        if own := executors.ports(raw):
            here = [*_LOOPBACK, *(address for node, address in usable_ones.items() if node == site.node)]
            found.append({"name": f"{name} on this node", "port": f"{own[0]}-{own[-1]}", "destinations": here})
    return found
