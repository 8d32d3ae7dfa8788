# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gangs in the plans of updates and maintenance: a gang is one instance, of its leader's node. Private to the
collection. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from ...engine.instance_facts import UpdateFacts

Known = Mapping[str, Mapping[str, UpdateFacts]]
"""The facts of all nodes: by node, then by instance."""


@dataclass(frozen=True)
class Missing:
    """A gang that this run cannot swap."""

    name: str
    model: str
    problem: str


@dataclass
class Folded:
    """The facts without followers: their part is in the facts of the leader."""

    known: dict[str, dict[str, UpdateFacts]] = field(default_factory=dict)
    missing: list[Missing] = field(default_factory=list)
    """Gangs that are due, and whose members are not all in the run."""
    lines: dict[tuple[str, str], str] = field(default_factory=dict)
    """Gangs that are left out because a member cannot be reached, with a line for the operator."""


def fold(known: Known, left_out: Collection[str] = ()) -> Folded:
    """Make one instance of each gang. `left_out`: nodes that cannot be reached, and are not in `known`."""
    found = Folded(
        {host: {name: item for name, item in items.items() if not item.gang} for host, items in known.items()}
    )
    gangs = {(item.gang, name) for items in known.values() for name, item in items.items() if item.gang}
    for nodes, name in sorted(gangs):
        leader = nodes[0]
        there = {node: known[node][name] for node in nodes if node in known and name in known[node]}
        away = [node for node in nodes if node not in there]
        if away:
            words = f"{name} spans {', '.join(nodes)}, and {', '.join(away)}"
            due = [item for item in there.values() if item.due]
            if set(away) <= set(left_out):
                found.lines[leader, name] = f"{words} cannot be reached: {name} is left out"
            elif due:
                problem = f"{words} is not in this run: run the playbook for all members (-l {','.join(nodes)})"
                found.missing.append(Missing(name, due[0].model, problem))
        if leader in there:
            found.known[leader][name] = _one(there, leader)
    return found


def _one(there: Mapping[str, UpdateFacts], leader: str) -> UpdateFacts:
    """The facts of a gang: the leader's, and what its followers add."""
    item = there[leader]
    followers = {node: facts for node, facts in there.items() if node != leader}
    problems = [f"{node}: {problem}" for node, facts in followers.items() for problem in facts.problems]
    problems += [
        f"{node} must run {facts.runs}, and {leader} must run {item.runs}: run baremetal.inference.site on all members"
        for node, facts in followers.items()
        if facts.due and item.runs and facts.runs and facts.runs != item.runs
    ]
    return replace(
        item,
        due=item.due or (item.target is not None and any(facts.due for facts in followers.values())),
        interrupted=item.interrupted or any(facts.interrupted for facts in followers.values()),
        problems=(*item.problems, *problems),
    )


def server(host: str, name: str, gang: tuple[str, ...]) -> tuple[str, str]:
    """The set and the server that clients lose when an instance on a node ends. The server of a gang is its leader."""
    return name, gang[0] if gang else host
