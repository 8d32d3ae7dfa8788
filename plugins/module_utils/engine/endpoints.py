# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Address, port and keys of this node's engines, and ports that are taken. Private to the collection.

Address, port and keys are part of a release, so a swap may change them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..core import systemd
from ..core.addresses import refusal
from ..core.paths import Paths, unit_name
from ..core.problems import Problem
from . import environment, listeners
from .gang import declared as gangs
from .gang import executors
from .instance import Instance
from .instance_facts import Endpoint
from .inventory import bridge_name, bridged_instance
from .state import gangs as gang_states
from .state import releases, swaps

PORT = "port"

_INSTANCE, _PROCESS = "instance", "process"


@dataclass(frozen=True)
class _Holder:
    """The instance or process that has a port."""

    text: str
    """The holder in messages, after the port."""
    kind: str
    """What to stop: _INSTANCE or _PROCESS."""


def address_problems(address: str) -> list[Problem]:
    """An address that no engine of this node can listen on."""
    try:
        reason = refusal(address)
    except ValueError:
        return [Problem("engines", "must be an IP address of the node (inference_address)", "address", address)]
    if reason is None:
        return []
    return [Problem("engines", f"is no address of this node ({reason}): correct inference_address", "address", address)]


def endpoint(paths: Paths, name: str, number: int) -> Endpoint:
    """The endpoint of a release. Raises ReleaseError and OSError."""
    release = releases.load(paths, name, number)
    keys = environment.keys(environment.read_file(paths.release(name, number) / releases.ENV_FILE))
    return Endpoint(release.address, release.port, tuple(environment.mark(key) for key in keys))


def of(paths: Paths, name: str, numbers: Sequence[int | None]) -> tuple[Endpoint, ...]:
    """The endpoints of releases, each once. A release that cannot be read is left out. Raises OSError."""
    found = []
    for number in numbers:
        try:
            found += [] if number is None else [endpoint(paths, name, number)]
        except releases.ReleaseError:
            continue
    return tuple(dict.fromkeys(found))


def in_use(paths: Paths, name: str) -> tuple[Endpoint, ...]:
    """The endpoint of the release that runs, and of both releases of a swap. Empty if there is neither.

    A follower of a gang has none: the leader alone gets requests. Raises SystemdError and OSError.
    """
    swap = swaps.read(paths, name)
    if gang_states.follows(paths, name):
        return ()
    if swap is None and systemd.active_state(unit_name(name)) not in systemd.RUNNING:
        return ()
    numbers = [releases.active_number(paths, name), *([swap.origin, swap.target] if swap else [])]
    return of(paths, name, numbers)


def running_instances(paths: Paths) -> dict[str, Endpoint | None]:
    """The instances that run on this node, with their endpoints; None where the release cannot be read.

    Raises SystemdError and OSError.
    """
    endpoints: dict[str, Endpoint | None] = {}
    for name in releases.names(paths):
        number = releases.active_number(paths, name)
        if number is None or systemd.active_state(unit_name(name)) not in systemd.RUNNING:
            continue
        endpoints[name] = next(iter(of(paths, name, [number])), None)
    return endpoints


def port_problems(
    instances: Sequence[Instance], address: str, running: Mapping[str, Endpoint | None], gang_address: str = ""
) -> list[Problem]:
    """Ports of instances that another instance or process has already. `gang_address` is the address of this node
    for its gangs."""
    problems = []
    declared = {instance.name for instance in instances}
    for instance in instances:
        serves = running.get(instance.name)
        if instance.name not in running or (serves and serves.port != instance.port):
            problems += _taken(instance.name, PORT, instance.port, address, running, declared)
        if instance.bridge_port and bridge_name(instance.name) not in running:
            problems += _taken(instance.name, "bridge_port", instance.bridge_port, address, running, declared)
        if instance.nodes and instance.name not in running:
            for key in gangs.PORTS:
                problems += _taken(instance.name, key, getattr(instance, key), gang_address, running, declared)
            problems += _taken_from_executor(instance, gang_address, running, declared)
    return problems


def _taken(
    name: str, key: str, port: int, address: str, running: Mapping[str, Endpoint | None], declared: set[str]
) -> list[Problem]:
    """Why the port of an instance that would be started is taken."""
    holder = _holder(port, address, running, declared)
    if holder is None:
        return []
    other = "take another port" if holder.kind == _INSTANCE else "give the instance another port"
    return [Problem(f"instance {name}", f"{holder.text}: stop that {holder.kind}, or {other}", key, port)]


def _taken_from_executor(
    instance: Instance, address: str, running: Mapping[str, Endpoint | None], declared: set[str]
) -> list[Problem]:
    """Why ports of a gang's executor are taken: one problem for each instance or process that has such ports, with the
    first of them. A holder of the rendezvous port is left out, because _taken reports that port."""
    raw = vars(instance)
    first: dict[_Holder, int] = {}
    # An executor may need more than a hundred ports, and ownership() reads the table of all sockets for each port.
    taken = listeners.ports() | {held.port for held in running.values() if held}
    for port in filter(taken.__contains__, executors.ports(raw)):
        holder = _holder(port, address, running, declared)
        if holder is not None:
            first.setdefault(holder, port)
    return [
        executors.port_problem(
            f"instance {instance.name}",
            raw,
            port,
            f"{holder.text}: stop that {holder.kind}, or take another {gangs.RENDEZVOUS_PORT}",
        )
        for holder, port in first.items()
        if port != instance.rendezvous_port
    ]


def _holder(port: int, address: str, running: Mapping[str, Endpoint | None], declared: set[str]) -> _Holder | None:
    """Who has a port; None where the port is free."""
    holders = [holder for holder, held in running.items() if held and held.port == port]
    if holders:
        # The inventory does not declare bridges.
        gone = (
            ""
            if (bridged_instance(holders[0]) or holders[0]) in declared
            else ", which the inventory no longer declares"
        )
        return _Holder(f"is held by instance {holders[0]}{gone}", _INSTANCE)
    owners = listeners.ownership(port, address, init_pid=None)
    if owners.strangers or owners.unknown:
        who = ", ".join(map(str, owners.strangers)) or "a process that cannot be seen from here"
        return _Holder(f"is taken by {who}", _PROCESS)
    return None
