# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans maintenance: the batches of nodes, and the problems that forbid a run. Private to the collection. Pure.

If work needs a drained node, all instances of the node are drained together. If a gateway has several servers of a
set, a batch leaves it at least one of them. If it has only one, the gateways hold the set's requests, provided that
the work is short enough.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.records import plain
from ...engine.instance_facts import InstanceFacts
from ...gateway.view import GatewayView
from .batches import BatchError, size_of
from .gangs import server
from .gateways import holds, too_short, unanswered
from .serving import Serving, gateways
from .serving import left_out as left_out_lines


@dataclass(frozen=True)
class Host:
    """The facts of a node before maintenance."""

    due: tuple[str, ...]
    """The work that is due, as texts."""
    drain: bool
    """Whether the work needs a drained node."""
    reboot: bool
    gateway: bool
    """Whether the node is a gateway itself."""
    instances: tuple[InstanceFacts, ...]
    gateways: tuple[GatewayView, ...]
    """The state of each instance at each gateway."""
    unreachable: tuple[str, ...]
    """The gateways that did not answer the run."""
    holds: Mapping[str, int] = field(default_factory=dict)
    """gateway_hold_seconds in the inventory, by gateway: the gateway may still run with another value."""

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Host:
        return cls(
            due=tuple(value["due"]),
            drain=bool(value["drain"]),
            reboot=bool(value["reboot"]),
            gateway=bool(value["gateway"]),
            instances=tuple(map(InstanceFacts.from_dict, value["instances"])),
            gateways=tuple(map(GatewayView.from_dict, value["gateways"])),
            unreachable=tuple(value["unreachable"]),
            holds=value.get("holds", {}),
        )

    @property
    def interrupted(self) -> bool:
        """Whether an earlier run was cut off or failed on the node, and has left its drains."""
        return any(item.drained_by == "maintenance" for item in self.instances)

    @property
    def drains(self) -> bool:
        """Whether the node's instances are drained during its turn."""
        return self.drain or self.interrupted

    @property
    def has_turn(self) -> bool:
        return bool(self.due) or self.interrupted

    def servers(self, host: str) -> list[tuple[str, str]]:
        """The servers that go when this node goes, with their sets: its own, and the leaders of gangs it follows."""
        return [server(host, item.name, item.gang) for item in self.instances]

    def followed(self, host: str) -> list[Followed]:
        return [Followed(item.name, item.gang[0]) for item in self.instances if item.gang and item.gang[0] != host]


@dataclass(frozen=True)
class Followed:
    """A gang that a node follows."""

    name: str
    leader: str


@dataclass(frozen=True)
class PlannedNode:
    """A node in a batch."""

    host: str
    drain: bool
    """Whether the node is drained."""
    alone: list[str]
    """The sets for which some gateway has no other server than this node."""
    drain_seconds: int | None
    """How many seconds the node's requests may take to end. Held requests must not wait longer than the gateways allow.
    None if no requests are held."""
    gangs: list[Followed] = field(default_factory=list)
    """The gangs that the node follows. They are drained on their leaders."""


@dataclass
class MaintenancePlan:
    """Batches, problems that forbid the run, and lines for the operator."""

    batches: list[list[PlannedNode]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return dict(plain(self))


@dataclass(frozen=True)
class Terms:
    """The limits of a run. `seconds`: the longest time that the work on a node takes without a reboot."""

    sizes: Sequence[str | int]
    seconds: int
    allow_downtime: bool = False


def plan_maintenance(hosts: Mapping[str, Host], terms: Terms, left_out: Collection[str] = ()) -> MaintenancePlan:
    """Make the plan for all hosts of a run. `left_out`: nodes that cannot be reached, and are not in `hosts`."""
    made = MaintenancePlan()
    made.problems += [problem for host, facts in hosts.items() for problem in _in_the_way(host, facts)]
    made.problems += [
        f"{gang.name} on {host} follows {gang.leader}, where the gang is drained, and {gang.leader} is not in this run:"
        f" run the playbook with -l {gang.leader},{host}"
        for host, facts in hosts.items()
        if facts.has_turn and facts.drains
        for gang in facts.followed(host)
        if gang.leader not in hosts
    ]
    views = [view for facts in hosts.values() for view in facts.gateways]
    unreachable = [name for facts in hosts.values() for name in facts.unreachable]
    serving = Serving.of(views, _serving(hosts))
    made.lines += left_out_lines(serving, left_out)
    # A run that drains no node does not need the gateways' answers.
    if any(facts.drains for facts in hosts.values()) and (silent := unanswered(views, unreachable)):
        made.problems += silent
        return made
    waiting = sorted(
        (host for host, facts in hosts.items() if facts.has_turn),
        # Nodes that do not serve come first: no client notices, and they may serve during the turns of other nodes.
        key=lambda host: (_serves(host, hosts[host], serving), host),
    )
    try:
        if not terms.sizes:
            raise BatchError("maintenance_batches is empty: set at least one size, such as 1 or 25%")
        wanted = [size_of(size, len(waiting)) for size in terms.sizes]
    except BatchError as error:
        made.problems.append(str(error).replace("update_batches", "maintenance_batches"))
        return made
    while waiting:
        batch = _fill(waiting, hosts, serving, wanted[min(len(made.batches), len(wanted) - 1)])
        made.batches.append([_turn(host, hosts[host], serving, terms, made) for host in batch])
        made.lines += [f"batch {len(made.batches)}: {host}: {_words(hosts[host])}" for host in batch]
        waiting = [host for host in waiting if host not in batch]
        for host in batch:
            for name, one in hosts[host].servers(host):
                serving.back(name, [one])
    made.lines += [f"nothing is due on {host}" for host, facts in hosts.items() if not facts.has_turn]
    return made


def _serves(host: str, facts: Host, serving: Serving) -> bool:
    """Whether clients may notice that a node goes."""
    gone = [*((name, host) for name in serving.views), *facts.servers(host)]
    return any(serving.count(name, one) for name, one in gone)


def _serving(hosts: Mapping[str, Host]) -> dict[str, set[str]]:
    """The hosts with a serving engine, by set."""
    found: dict[str, set[str]] = {}
    for host, facts in hosts.items():
        for item in facts.instances:
            leads = not item.gang or item.gang[0] == host
            found.setdefault(item.name, set()).update({host} if item.serving and leads else ())
    return found


def _fill(waiting: Sequence[str], hosts: Mapping[str, Host], serving: Serving, limit: int) -> list[str]:
    batch: list[str] = []
    for host in waiting:
        if len(batch) == limit:
            break
        if _bearable(batch, host, hosts, serving):
            batch.append(host)
    return batch


def _bearable(batch: Sequence[str], host: str, hosts: Mapping[str, Host], serving: Serving) -> bool:
    """Whether a host may join a batch: several nodes of a batch must not take a gateway's last server of a set."""
    if not hosts[host].drains:
        return True
    drained = [one for other in batch if hosts[other].drains for one in hosts[other].servers(other)]
    for name, own in hosts[host].servers(host):
        # With two members of a gang in one batch, the member that is done first could not undrain the gang.
        if (name, own) in drained:
            return False
        fellows = [one for fellow, one in drained if fellow == name]
        if fellows and serving.lost(name, [*fellows, own]):
            return False
    return True


def _turn(host: str, facts: Host, serving: Serving, terms: Terms, made: MaintenancePlan) -> PlannedNode:
    """Make the turn of a node. Problems of the turn are added to the plan `made`."""
    last = {name: serving.lost(name, [one]) for name, one in facts.servers(host) if facts.drains}
    alone = [name for name, views in last.items() if views]
    drain_seconds: int | None = None
    if alone and not terms.allow_downtime:
        seconds = holds(facts.gateways, alone)
        left = min(seconds.values()) - terms.seconds if seconds else -1
        at = f" at {gateways(view for views in last.values() for view in views)}" if seconds else ""
        where = f"{', '.join(alone)} on {host} is the only replica that serves{at}"
        way = "add a replica, or add -e allow_downtime=true"
        if facts.reboot:
            made.problems.append(f"{where}, and a reboot takes longer than gateways hold requests: {way}")
        elif not seconds:
            made.problems.append(f"{where}, and no gateway holds its requests meanwhile: {way}")
        elif left < 0:
            made.problems.append(
                f"{where}, and the work takes up to {terms.seconds} s (maintenance_work_seconds)."
                f" {too_short(seconds, terms.seconds, facts.holds)}. Or {way}"
            )
        drain_seconds = max(left, 0)
    if facts.reboot and facts.gateway and not terms.allow_downtime:
        made.problems.append(
            f"{host} is also a gateway, which serves no client during the reboot: add -e allow_downtime=true"
        )
    return PlannedNode(host, facts.drains, alone, drain_seconds, facts.followed(host) if facts.drains else [])


def _in_the_way(host: str, facts: Host) -> list[str]:
    if not facts.has_turn:
        return []
    return [
        f"{item.name} on {host}: a swap runs, is stuck, or was cut off: run baremetal.inference.update_model first"
        for item in facts.instances
        if item.swapping
    ]


def _words(facts: Host) -> str:
    again = ["continues an earlier run that was cut off or failed"] if facts.interrupted else []
    drained = ", drained" if facts.drains and facts.instances else ""
    return "; ".join([*again, *facts.due]) + drained
