# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The targets of Prometheus, from the inventory and the nodes' reports. Private to the collection.
Pure, except for the resolver."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.addresses import AddressError, host_addresses, in_url, resolve
from ..core.defaults import BY_VARIABLE
from ..engine.instance_facts import InstanceFacts
from ..engine.inventory import led_instances, node_instances, present_instances, want_gpus
from ..engine.reported import running

JOBS = ("node", "engine", "gateway", "dcgm", "prometheus", "alertmanager")
"""All jobs that rules and dashboards use. Each has a file of targets, which may be empty."""

LOOPBACK = "127.0.0.1"

PORT = re.compile(r"[1-9][0-9]{0,4}")


@dataclass(frozen=True)
class Inventory:
    """The inventory of a site: the host names of each group, and the hosts' variables."""

    nodes: tuple[str, ...]
    gateways: tuple[str, ...]
    monitors: tuple[str, ...]
    hostvars: Mapping[str, Any]

    @property
    def hosts(self) -> list[str]:
        """Every host, once."""
        return list(dict.fromkeys((*self.nodes, *self.gateways, *self.monitors)))

    def variables(self, host: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.hostvars.get(host, {})
        return found


@dataclass
class Targets:
    """The targets of all jobs, the engines that Prometheus cannot reach, and the mistakes in the inventory."""

    groups: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {job: [] for job in JOBS})
    """By job, in the form of file_sd: `targets` and `labels`."""
    unreachable: list[str] = field(default_factory=list)
    """Engines that only their own node reaches: one sentence for each host."""
    problems: list[str] = field(default_factory=list)
    """Mistakes that the operator must correct first."""

    def add(self, job: str, address: str, port: object, labels: Mapping[str, str]) -> None:
        """Add one target, or the problem with its port."""
        if not (PORT.fullmatch(str(port)) and int(str(port)) < 65536):
            self.problems.append(f"{labels['node']}: the port of its target {job} is {port!r}: it must be 1 to 65535")
            return
        where = f"{in_url(address)}:{port}"
        self.groups[job].append({"targets": [where], "labels": dict(labels)})


def targets(inventory: Inventory, own: str, resolver: Callable[[str], list[str]] = resolve) -> Targets:
    """All targets of the Prometheus on host `own`. For a Prometheus elsewhere, `own` is empty.

    A bridge is no target, since it exists for minutes only.
    """
    found = Targets()
    addresses: dict[str, str] = {}
    for host in inventory.hosts:
        try:
            addresses[host] = LOOPBACK if host == own else host_addresses([host], inventory.hostvars, resolver)[0]
        except AddressError as error:
            found.problems.append(str(error))
    for host, address in addresses.items():
        variables = inventory.variables(host)
        labels = _labels(host, variables)
        exporters = _listening(variables, "monitoring_exporter_address", address)
        found.add("node", exporters, _port(variables, "monitoring_node_exporter_port"), labels)
        if host in inventory.nodes:
            declared = variables.get("instances") or []
            if not isinstance(declared, Iterable):
                found.problems.append(f"{host}: instances is {declared!r}: it must be a list")
            else:
                _engines(found, host, address, variables, labels)
                if variables.get("monitoring_dcgm_exporter_image") and want_gpus(node_instances(list(declared), host)):
                    found.add("dcgm", exporters, _port(variables, "monitoring_dcgm_exporter_port"), labels)
        if host in inventory.gateways:
            found.add(
                "gateway",
                _listening(variables, "gateway_bind_address", address),
                _port(variables, "gateway_metrics_port"),
                labels,
            )
    # Each Prometheus monitors only itself, since its password is on its own host.
    if own:
        variables = inventory.variables(own)
        address = _listening(variables, "monitoring_bind_address", LOOPBACK)
        for job, variable in (("prometheus", "monitoring_port"), ("alertmanager", "monitoring_alertmanager_port")):
            found.add(job, address, _port(variables, variable), _labels(own, variables))
    return found


def _engines(found: Targets, host: str, address: str, variables: Mapping[str, Any], labels: Mapping[str, str]) -> None:
    """Add the engines of a node, if Prometheus can reach them."""
    # Skips items that are no instance: the check on the node reports them.
    led = led_instances(variables.get("instances") or [], host)
    instances = [item for item in present_instances(led) if isinstance(item, Mapping)]
    listens = str(variables.get("inference_address") or LOOPBACK)
    if instances and address != LOOPBACK and _is(listens, "is_loopback"):
        names = ", ".join(str(item.get("name", "")) for item in instances)
        found.unreachable.append(
            f"{host}: {names} on {listens}, which only the node itself reaches: set inference_address to the node's"
            " address in the internal network, or make it a monitoring host"
        )
        return
    if address == LOOPBACK and not (_is(listens, "is_loopback") or _is(listens, "is_unspecified")):
        address = listens
    ran = running(variables)
    for item in instances:
        name = str(item.get("name", ""))
        runs = {"model": str(item.get("model", ""))}
        where, port = address, item.get("port", 0)
        if name in ran:
            runs = _running(ran[name])
            for endpoint in ran[name].endpoints[:1]:
                port = endpoint.port
                if not (_is(endpoint.address, "is_loopback") or _is(endpoint.address, "is_unspecified")):
                    where = endpoint.address
        found.add("engine", where, port, {**labels, "instance_name": name, **runs})


def _running(facts: InstanceFacts) -> dict[str, str]:
    """The labels of what an engine runs. Its first task stands for all, and a label without a value is left out."""
    labels = {
        "model": facts.model,
        "release": str(facts.release),
        "task": (*facts.tasks, "")[0],
        "adapters": ",".join(facts.adapters),
    }
    return {label: value for label, value in labels.items() if value}


def _labels(host: str, variables: Mapping[str, Any]) -> dict[str, str]:
    rack = str(variables.get("monitoring_rack") or "")
    return {"node": host, **({"rack": rack} if rack else {})}


def _port(variables: Mapping[str, Any], name: str) -> object:
    """The port that a variable sets, or the default."""
    return variables.get(name, BY_VARIABLE[name])


def _listening(variables: Mapping[str, Any], name: str, address: str) -> str:
    """The address where Prometheus reaches a service: the variable's value, or else `address` of the host.

    The value does not count if it is empty, stands for all addresses, or is a loopback address of another host.
    """
    listens = str(variables.get(name) or "")
    if not listens or _is(listens, "is_unspecified") or (_is(listens, "is_loopback") and address != LOOPBACK):
        return address
    return listens


def _is(text: str, what: str) -> bool:
    """Whether a text is an address with this property of ipaddress."""
    try:
        return bool(getattr(ipaddress.ip_address(text), what))
    except ValueError:
        return False
