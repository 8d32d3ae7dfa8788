# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The addresses and ports that engines of this node would listen on. Private to the collection."""

from __future__ import annotations

import contextlib
import ipaddress
import socket

from .node import identity, releases, systemd
from .paths import Paths, unit_name
from .problems import Problem
from .registry.instances import Instance, bridge_name


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


def running_instances(paths: Paths) -> dict[str, int | None]:
    """The instances that run on this node, with their ports; None where the release cannot be read."""
    ports: dict[str, int | None] = {}
    for name in releases.names(paths):
        number = releases.active_number(paths, name)
        if number is None or systemd.active_state(unit_name(name)) not in systemd.RUNNING:
            continue
        ports[name] = None
        with contextlib.suppress(releases.ReleaseError):
            ports[name] = releases.load(paths, name, number).port
    return ports


def port_problems(instances: list[Instance], address: str, running: dict[str, int | None]) -> list[Problem]:
    """Ports of instances that would be started, which somebody has already; and of those that serve on another one."""
    problems = []
    declared = {instance.name for instance in instances}
    wanted = [(instance.name, instance, "port", instance.port) for instance in instances]
    wanted += [
        (bridge_name(instance.name), instance, "bridge_port", instance.bridge_port)
        for instance in instances
        if instance.bridge_port
    ]
    for engine, instance, key, port in wanted:
        if engine in running:
            held = running[engine]
            if key == "port" and held not in (None, port):
                message = (
                    f"is not the one on which it serves, {held}: firewall and gateways would take the new one at once,"
                    f" the engine only with its next release. Leave {held}; or, on the node, inferctl drain {engine},"
                    f" systemctl stop {unit_name(engine)}, and run site.yml again, which starts it on the new one"
                )
                problems.append(Problem(f"instance {instance.name}", message, key, port))
            continue
        holders = [name for name, held in running.items() if held == port]
        owners = identity.ownership(port, address, init_pid=None)
        if holders:
            gone = "" if holders[0] in declared else ", which the inventory no longer declares"
            message = f"is held by instance {holders[0]}{gone}: stop that one, or take another port"
        elif owners.strangers or owners.unknown:
            who = ", ".join(map(str, owners.strangers)) or "a process that cannot be seen from here"
            message = f"is taken by {who}: stop that, or give the instance another port"
        else:
            continue
        problems.append(Problem(f"instance {instance.name}", message, key, port))
    return problems
