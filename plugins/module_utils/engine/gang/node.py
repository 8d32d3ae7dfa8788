# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gangs of this node: its place in each, its network, and mistakes that only the node sees.

Private to the collection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...core import files
from ...core.problems import Problem
from ...core.secrets import is_placeholder
from ...hardware.rdma.tools import Run
from ..adapters import ENGINES
from ..endpoints import address_problems
from ..instance import Instance
from . import network, site
from .declared import EPHEMERAL, PORT_RANGE
from .members import Gang
from .network import Network
from .plan import ONE_NODE, Span
from .site import Site

PORT_RANGE_FILE = f"proc/sys/{PORT_RANGE.replace('.', '/')}"
"""The file with the first and last port that the kernel gives to connections. Source: the kernel's ip-sysctl.rst."""

KEY_LENGTH = 16
"""The least number of characters of the channel's key."""


def problems(
    instances: Sequence[Any],
    shared: Site,
    key: str,
    environment: Mapping[str, str],
    secrets: Mapping[str, Any],
    root: Path,
) -> list[Problem]:
    """Every mistake of this node about its gangs. `instances` are declared for the node, also with mistakes. `key` is
    the channel's key; `environment` has the site's variables, and `secrets` the secret variables of single instances.
    """
    gangs = site.gangs_of(instances)
    if not gangs:
        return []
    found = [
        *_key_problems(key),
        *_variable_problems("vllm_environment", environment),
        *_address_problems(shared),
        *_range_problems(shared.node, shared.port_range or files.text(root / PORT_RANGE_FILE) or ""),
    ]
    for one in gangs:
        own = {**_variables(one.get("environment")), **_variables(secrets.get(str(one.get("name"))))}
        found += _variable_problems(f"instance {one.get('name')}", own)
    return found


def _key_problems(key: str) -> list[Problem]:
    if len(key) >= KEY_LENGTH and key.isprintable() and not is_placeholder(key):
        return []
    message = (
        f"(site variable gang_key) must be {KEY_LENGTH} characters or more on one line, no placeholder, and the same "
        "on all nodes: members of an instance over several nodes prove by it who they are. Make a key "
        "by `openssl rand -hex 32`, and keep it in the inventory's vault"
    )
    # Without the value, which is a secret.
    return [Problem("role vllm", message, "vllm_gang_key")]


def _variables(given: Any) -> Mapping[str, Any]:
    """The environment that an instance declares; empty where its form is wrong, which another check reports."""
    return given if isinstance(given, Mapping) else {}


def _variable_problems(where: str, environment: Mapping[str, Any]) -> list[Problem]:
    computed = {name: use for engine in ENGINES.values() for name, use in engine.gangs.computed.items()}
    return [
        Problem(where, f"is computed for instances over several nodes: set {use} instead", name)
        for name, use in computed.items()
        if name in environment
    ]


def _address_problems(shared: Site) -> list[Problem]:
    """Whether the address of this node for its gangs is an address of this node. site.problems checks its form."""
    host = shared.hosts.get(shared.node)
    if host is None or not site.usable(host.address) or not address_problems(host.address):
        return []
    message = "is no address of this node: set it to an address that `ip address` shows there"
    return [Problem(f"node {shared.node}", message, host.variable, host.address)]


def _range_problems(node: str, text: str) -> list[Problem]:
    """Whether the firewalls of all members open the ports that the kernel gives to engines of this node."""
    ports = [int(word) for word in text.split() if word.isdigit()]
    first, last = EPHEMERAL
    # Without a number, for example without /proc, nothing is known.
    if len(ports) != 2 or (first <= ports[0] and ports[1] <= last):
        return []
    message = (
        f"must be within {first} to {last}: engines of an instance over several nodes listen on such ports, and the "
        f"firewall opens only these to members. On the node, run sysctl -w {PORT_RANGE}='{first} {last}'; remove "
        "another value from common_sysctl and from /etc/sysctl.d"
    )
    return [Problem(f"node {node}", message, PORT_RANGE, f"{ports[0]} {ports[1]}")]


def member(instance: Instance, shared: Site, root: Path, run: Run = network.run) -> tuple[Gang | None, Network]:
    """This node's gang of an instance and its network; None for an instance on one node, and where a port or the
    address of a member is missing."""
    hosts = [shared.hosts.get(name) for name in instance.nodes]
    known = all(host is not None and host.address for host in hosts) and shared.node in instance.nodes
    if not instance.nodes or not known or instance.gang_port is None or instance.rendezvous_port is None:
        return None, Network()
    gang = site.gang(
        instance.name,
        instance.nodes,
        instance.gang_port,
        instance.rendezvous_port,
        shared,
        instance.executor,
        dashboard=instance.executor_dashboard,
    )
    return gang, network.find(gang.me.address, root, run)


def span(instance: Instance, shared: Site, found: Network) -> Span:
    """The nodes of an instance for its plan."""
    if not instance.nodes:
        return ONE_NODE
    rank = instance.nodes.index(shared.node) if shared.node in instance.nodes else 0
    return Span(len(instance.nodes), rank, found)
