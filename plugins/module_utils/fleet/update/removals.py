# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans removals: the instances to remove, and the problems that forbid it. Private to the collection. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.records import plain
from ...engine.instance_facts import InstanceFacts
from ...engine.inventory import bridge_name, present_instances
from ...gateway.view import GatewayView
from .gangs import server
from .gateways import unanswered
from .serving import NODES, Serving


@dataclass(frozen=True)
class Selection:
    """Which instances to remove: by name, by model, all, or those that the inventory does not declare (`orphans`)."""

    instance: str = ""
    model: str = ""
    everything: bool = False
    orphans: bool = False

    @property
    def asked(self) -> bool:
        return bool(self.instance or self.model or self.everything or self.orphans)


@dataclass(frozen=True)
class Host:
    """The facts of a node before a removal."""

    instances: tuple[InstanceFacts, ...]
    declared: tuple[Any, ...]
    """The instances in the inventory, as written there."""
    gateways: tuple[GatewayView, ...]
    """The state of each instance at each gateway."""
    unreachable: tuple[str, ...]
    """The gateways that did not answer the run."""

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Host:
        return cls(
            tuple(map(InstanceFacts.from_dict, value["instances"])),
            tuple(value["declared"]),
            tuple(map(GatewayView.from_dict, value["gateways"])),
            tuple(value["unreachable"]),
        )


@dataclass
class RemovalPlan:
    """The instances to remove, problems that forbid the removal, and lines for the operator."""

    names: dict[str, list[str]] = field(default_factory=dict)
    """Instances by host. Includes instances that only the inventory has: gateways may have servers for them."""
    problems: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return dict(plain(self))


def plan_removals(hosts: Mapping[str, Host], wanted: Selection, *, allow_downtime: bool) -> RemovalPlan:
    """Make the plan for all hosts of a run."""
    made = RemovalPlan()
    for host, facts in hosts.items():
        there = {item.name: item.model for item in facts.instances}
        declared = {name: str(item.get("model", "")) for name, item in _named(facts.declared)}
        present = {name for name, _item in _named(present_instances(facts.declared))}
        orphans = sorted(set(there) - present)
        made.names[host] = _chosen(there, declared, orphans, wanted)
        if not wanted.asked:
            made.lines += [f"{host}: {name} is on the node, and the inventory does not declare it" for name in orphans]
        made.lines += [f"{host}: {_line(name, there, present)}" for name in made.names[host]]
        made.problems += [
            f"{name} on {host}: a swap runs, is stuck, or was cut off: run baremetal.inference.update_model first"
            for name in made.names[host]
            if any(item.name == name and item.swapping for item in facts.instances)
        ]
    if not made.lines:
        made.lines.append(
            "no instance matches: nothing is removed"
            if wanted.asked
            else "the inventory declares all instances on the nodes"
        )
    if any(made.names.values()):
        views = [view for facts in hosts.values() for view in facts.gateways]
        made.problems += unanswered(views, [name for facts in hosts.values() for name in facts.unreachable])
    made.problems += [] if allow_downtime else _last(hosts, made.names)
    return made


def _named(instances: Iterable[Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The declared instances with their names. Skips items without a name: baremetal.inference.site reports them."""
    for item in instances:
        if isinstance(item, Mapping) and isinstance(name := item.get("name"), str):
            yield name, item


def _chosen(
    there: Mapping[str, str], declared: Mapping[str, str], orphans: Sequence[str], wanted: Selection
) -> list[str]:
    known = {**declared, **there}
    if wanted.everything:
        return sorted(known)
    if wanted.orphans:
        return list(orphans)
    if wanted.instance:
        return [wanted.instance] if wanted.instance in known else []
    return sorted(name for name, model in known.items() if wanted.model and model == wanted.model)


def _line(name: str, there: Mapping[str, str], present: Collection[Any]) -> str:
    """A line that says what happens to an instance."""
    declared = (
        "; the inventory still declares it: baremetal.inference.site would start it again" if name in present else ""
    )
    if name not in there:
        return f"{name} is not on the node; gateways remove its server{declared}"
    return f"{name} ({there[name] or 'unknown model'}) is removed{declared}"


def _last(hosts: Mapping[str, Host], names: Mapping[str, Collection[str]]) -> list[str]:
    """A problem for each set that some gateway could no longer serve after the removal."""
    found = []
    for name in sorted({name for chosen in names.values() for name in chosen}):
        # A gang ends with any of its members, and gateways send its requests to the leader.
        going = {_server(host, name, hosts[host]) for host, chosen in names.items() if name in chosen}
        going |= {f"{bridge_name(name)}.{host}" for host in going}
        for view in _serving(hosts).lost(name, going):
            who = "no other node serves it" if view.gateway == NODES else f"{view.gateway} has no other server for it"
            found.append(
                f"{name} on {', '.join(sorted(view.up))}: {who}, so clients would get errors: add a replica, or"
                " add -e allow_downtime=true"
            )
    return found


def _server(host: str, name: str, facts: Host) -> str:
    """The server that an instance on a host takes away from clients."""
    gang = next((item.gang for item in facts.instances if item.name == name), ())
    return server(host, name, gang)[1]


def _serving(hosts: Mapping[str, Host]) -> Serving:
    """The servers that are up, by gateway. Without a gateway, by the nodes' own reports."""
    engines: dict[str, set[str]] = {}
    for host, facts in hosts.items():
        for item in facts.instances:
            engines.setdefault(item.name, set()).update({_server(host, item.name, facts)} if item.serving else ())
    return Serving.of([view for facts in hosts.values() for view in facts.gateways], engines)
