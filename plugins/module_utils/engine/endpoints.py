# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where engines of this node listen, or would, and the key that they want. Private to the collection.

Firewall and gateways go by the inventory at once, an engine only with its next release: under one that serves, neither
port nor address nor key may change.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..core import systemd
from ..core.paths import Paths, unit_name
from ..core.problems import Problem
from . import environment, listeners
from .instances import Instance
from .inventory import bridge_name
from .state import releases

PORT, ADDRESS, KEY = "port", "address", "vllm_api_key"
"""What an engine is reached by, under the names that messages give them."""


@dataclass(frozen=True)
class Endpoint:
    """What an engine is reached by."""

    address: str
    port: int
    key: str = field(default="", repr=False)
    """What its clients must send, a secret; an engine without one answers everybody."""


def address_problems(address: str) -> list[Problem]:
    """An address that no engine of this node can listen on."""
    try:
        family = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((address, 0))
    except ValueError:
        return [Problem("engines", "must be an IP address of the node (inference_address)", "address", address)]
    except OSError as error:
        message = f"is no address of this node ({error.strerror}): correct inference_address"
        return [Problem("engines", message, "address", address)]
    return []


def endpoint(paths: Paths, name: str, number: int) -> Endpoint:
    """Of a release. Raises ReleaseError and OSError."""
    release = releases.load(paths, name, number)
    variables = environment.read_file(paths.release(name, number) / releases.ENV_FILE)
    return Endpoint(release.address, release.port, variables.get(environment.API_KEY, ""))


def running_instances(paths: Paths) -> dict[str, Endpoint | None]:
    """The instances that run on this node, with their endpoints; None where the release cannot be read.

    Raises SystemdError and OSError.
    """
    endpoints: dict[str, Endpoint | None] = {}
    for name in releases.names(paths):
        number = releases.active_number(paths, name)
        if number is None or systemd.active_state(unit_name(name)) not in systemd.RUNNING:
            continue
        endpoints[name] = None
        with contextlib.suppress(releases.ReleaseError):
            endpoints[name] = endpoint(paths, name, number)
    return endpoints


def endpoint_problems(
    instances: Sequence[Instance], address: str, key: str, running: Mapping[str, Endpoint | None], *, gateways: bool
) -> list[Problem]:
    """Ports of instances to be started that another process has already, and what would move under serving instances.

    `gateways` says whether there are any in front of the engines.
    """
    problems = []
    declared = {instance.name for instance in instances}
    for instance in instances:
        if instance.name in running:
            asked = Endpoint(address, instance.port, key)
            problems += moved(instance.name, running[instance.name], asked, gateways=gateways)
        else:
            problems += _taken(instance.name, PORT, instance.port, address, running, declared)
        if instance.bridge_port and bridge_name(instance.name) not in running:
            problems += _taken(instance.name, "bridge_port", instance.bridge_port, address, running, declared)
    return problems


def _taken(
    name: str, key: str, port: int, address: str, running: Mapping[str, Endpoint | None], declared: set[str]
) -> list[Problem]:
    """Who has the port of an instance that would be started."""
    holders = [holder for holder, held in running.items() if held and held.port == port]
    owners = listeners.ownership(port, address, init_pid=None)
    if holders:
        gone = "" if holders[0] in declared else ", which the inventory no longer declares"
        message = f"is held by instance {holders[0]}{gone}: stop that one, or take another port"
    elif owners.strangers or owners.unknown:
        who = ", ".join(map(str, owners.strangers)) or "a process that cannot be seen from here"
        message = f"is taken by {who}: stop that, or give the instance another port"
    else:
        return []
    return [Problem(f"instance {name}", message, key, port)]


def differing(engine: Endpoint, asked: Endpoint, *, gateways: bool) -> list[str]:
    """What of an engine differs so that a client of the other endpoint does not reach the engine."""
    found = [PORT] if engine.port != asked.port else []
    # Only gateways use these two. Without gateways, an update may change them.
    if gateways and not _accepts(engine.address, asked.address):
        found.append(ADDRESS)
    if gateways and engine.key not in ("", asked.key):
        found.append(KEY)
    return found


def _accepts(listens: str, asked: str) -> bool:
    """Whether who listens on one address answers on another. A wildcard of IPv6 takes IPv4 as well."""
    ours, other = ipaddress.ip_address(listens), ipaddress.ip_address(asked)
    return ours == other or (ours.is_unspecified and ours.version >= other.version)


def moved(name: str, serves: Endpoint | None, asked: Endpoint, *, gateways: bool) -> list[Problem]:
    """What the inventory says of a serving engine that would make it unreachable. Shows no key."""
    if serves is None:
        return []
    stop, later = f"inferctl drain {name}, systemctl stop {unit_name(name)}", "the engine only with its next release"
    again = "run baremetal.inference.site again, which starts it on the new one"
    problems = {
        PORT: Problem(
            f"instance {name}",
            f"is not the one on which it serves, {serves.port}: firewall and gateways would take the new one at once,"
            f" {later}. Leave {serves.port}; or, on the node, {stop}, and {again}",
            PORT,
            asked.port,
        ),
        ADDRESS: Problem(
            f"instance {name}",
            f"is not the one on which it serves, {serves.address}: gateways would take the new one at once, {later}."
            f" Leave {serves.address} (inference_address); or, on the node, {stop}, and {again}",
            ADDRESS,
            asked.address,
        ),
        KEY: Problem(
            f"instance {name}",
            f"is not the one that it serves with: gateways would send the new one at once, {later}, and every request"
            " would get a 401 until then. Leave the old one; or, on all nodes of the replica set, since a gateway has"
            f" one key for it, {stop}, and run baremetal.inference.site again,"
            " which starts them with the new one. There is no way"
            " without that interruption",
            KEY,
        ),
    }
    return [problems[what] for what in differing(serves, asked, gateways=gateways)]
