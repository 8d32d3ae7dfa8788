# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which instances shall leave which nodes, and why they must not. Private to the collection. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...engine.instances import bridge_name, present_instances


@dataclass(frozen=True)
class Wish:
    """What shall leave: instances by name, by the model that they serve, all, or those that are not declared."""

    instance: str = ""
    model: str = ""
    everything: bool = False
    orphans: bool = False

    @property
    def asked(self) -> bool:
        return bool(self.instance or self.model or self.everything or self.orphans)


@dataclass
class Leaving:
    """What leaves each host, every reason against it, and words for those who watch."""

    names: dict[str, list[str]] = field(default_factory=dict)
    """By host, those that are there and those that only the inventory knows, which gateways may still have."""
    problems: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def leaving(hosts: Mapping[str, Mapping[str, Any]], wish: Wish, *, allow_downtime: bool) -> Leaving:
    """The plan for all hosts of a run.

    Each host has `instances`, as the module engine_facts returns them, `declared`, the inventory's, and `gateways`:
    what gateway_facts saw of each instance at each gateway, with `name`, `gateway` and `up`.
    """
    made = Leaving()
    for host, facts in hosts.items():
        there = {item["name"]: item["model"] for item in facts["instances"]}
        declared = {
            str(item.get("name", "")): str(item.get("model", ""))
            for item in facts["declared"]
            if isinstance(item, Mapping)
        }
        wanted = {item.get("name") for item in present_instances(facts["declared"]) if isinstance(item, Mapping)}
        orphans = sorted(set(there) - wanted)
        made.names[host] = _chosen(there, declared, orphans, wish)
        if not wish.asked:
            made.lines += [f"{host}: {name} is on the node, and the inventory does not declare it" for name in orphans]
        made.lines += [f"{host}: {_line(name, there, wanted)}" for name in made.names[host]]
        made.problems += [
            f"{name} on {host}: an update is at it, or was cut off: run update-model.yml first"
            for name in made.names[host]
            if any(item["name"] == name and item["swapping"] for item in facts["instances"])
        ]
    if not made.lines:
        made.lines.append("nothing of it is there" if wish.asked else "every node has what the inventory declares")
    made.problems += [] if allow_downtime else _last(hosts, made.names)
    return made


def _chosen(there: Mapping[str, str], declared: Mapping[str, str], orphans: Sequence[str], wish: Wish) -> list[str]:
    known = {**declared, **there}
    if wish.everything:
        return sorted(known)
    if wish.orphans:
        return list(orphans)
    if wish.instance:
        return [wish.instance] if wish.instance in known else []
    return sorted(name for name, model in known.items() if wish.model and model == wish.model)


def _line(name: str, there: Mapping[str, str], wanted: Collection[Any]) -> str:
    """What becomes of an instance."""
    declared = "; the inventory still declares it, and site.yml would bring it back" if name in wanted else ""
    if name not in there:
        return f"{name} is not on the node; gateways forget it{declared}"
    return f"{name} ({there[name] or 'unknown model'}) leaves{declared}"


def _last(hosts: Mapping[str, Mapping[str, Any]], names: Mapping[str, Collection[str]]) -> list[str]:
    """Sets that nobody would serve any more, though somebody does now."""
    found = []
    for name in sorted({name for chosen in names.values() for name in chosen}):
        going = {host for host, chosen in names.items() if name in chosen}
        going |= {f"{bridge_name(name)}.{host}" for host in going}
        for where, up in _serving(hosts, name).items():
            if up and not up - going:
                found.append(
                    f"{name} on {', '.join(sorted(up))}: {where} has nobody else for it, and clients would get errors:"
                    " add a replica, or set allow_downtime=true"
                )
    return found


def _serving(hosts: Mapping[str, Mapping[str, Any]], name: str) -> dict[str, set[str]]:
    """Who serves a set, by who says so: each gateway, or the nodes themselves where there is none."""
    asked: dict[str, set[str]] = {}
    for facts in hosts.values():
        for seen in facts["gateways"]:
            if seen["name"] == name:
                asked.setdefault(f"the gateway {seen['gateway']}", set()).update(seen["up"])
    if asked:
        return asked
    return {
        "the inventory": {
            host
            for host, facts in hosts.items()
            for item in facts["instances"]
            if item["name"] == name and item["serving"]
        }
    }
