# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In which order a fleet's nodes have their turn, and why they must not. Private to the collection. Pure.

A node goes with all of its instances. No batch takes the last ones that serve a set, unless the set has no other: then
the gateways hold its requests, if that is for short.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .batches import BatchError, size_of
from .gateways import unheard


@dataclass
class Outages:
    """Batches, every problem, and words for those who watch.

    An item of a batch is {host, outage, alone, drain_seconds}: whether its requests are kept away, which sets have
    nobody else meanwhile, and how long requests may be waited for, so that those that are held meanwhile do not wait
    in vain; None where nobody is held.
    """

    batches: list[list[dict[str, Any]]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Terms:
    """What is allowed. `seconds` is how long the work on a node without a reboot keeps requests away at most."""

    sizes: Sequence[str | int]
    seconds: int
    allow_downtime: bool = False


def outages(hosts: Mapping[str, Mapping[str, Any]], terms: Terms) -> Outages:
    """The plan for all hosts of a run.

    Each host has `due`, what there is to do in words; `outage`, whether requests must be kept away meanwhile; `reboot`;
    `gateway`, whether it is one itself; `instances`, as the module engine_facts returns them; `gateways`, what
    gateway_facts saw of each at each gateway; and `unreachable`, the gateways that could not be asked.
    """
    made = Outages()
    made.problems += [problem for host, facts in hosts.items() for problem in _in_the_way(host, facts)]
    # Nobody else needs their word.
    if any(_outage(facts) for facts in hosts.values()) and (silent := unheard(hosts)):
        made.problems += silent
        return made
    serving = _serving(hosts)
    waiting = sorted(
        (host for host, facts in hosts.items() if facts["due"] or _interrupted(facts)),
        # Those that serve nobody come first: nobody loses by them, and they serve when the others' turn comes.
        key=lambda host: (any(host in up for up in serving.values()), host),
    )
    try:
        if not terms.sizes:
            raise BatchError("maintenance_batches names no size")
        wanted = [size_of(size, len(waiting)) for size in terms.sizes]
    except BatchError as error:
        made.problems.append(str(error).replace("update_batches", "maintenance_batches"))
        return made
    while waiting:
        batch = _fill(waiting, hosts, serving, wanted[min(len(made.batches), len(wanted) - 1)])
        made.batches.append([_item(host, hosts, serving, terms, made) for host in batch])
        made.lines += [f"batch {len(made.batches)}: {host}: {_words(host, hosts)}" for host in batch]
        waiting = [host for host in waiting if host not in batch]
        for host in batch:
            for name in _sets(hosts[host]):
                serving.setdefault(name, set()).add(host)
    made.lines += [
        f"nothing is due on {host}" for host, facts in hosts.items() if not facts["due"] and not _interrupted(facts)
    ]
    return made


def _interrupted(facts: Mapping[str, Any]) -> bool:
    """Whether a run was cut off on a node, or has failed there: its drains are left."""
    return any(item["drained_by"] == "maintenance" for item in facts["instances"])


def _outage(facts: Mapping[str, Any]) -> bool:
    return bool(facts["outage"]) or _interrupted(facts)


def _sets(facts: Mapping[str, Any]) -> list[str]:
    return [item["name"] for item in facts["instances"]]


def _serving(hosts: Mapping[str, Mapping[str, Any]]) -> dict[str, set[str]]:
    """Who serves each set: whom all gateways send requests to; without gateways, those whose engines serve."""
    found: dict[str, set[str]] = {}
    for host, facts in hosts.items():
        for item in facts["instances"]:
            found.setdefault(item["name"], set()).update({host} if item["serving"] else ())
    asked: dict[str, set[str]] = {}
    for facts in hosts.values():
        for seen in facts["gateways"]:
            up = set(seen["up"])
            asked[seen["name"]] = asked[seen["name"]] & up if seen["name"] in asked else up
    return found | asked


def _fill(
    waiting: Sequence[str], hosts: Mapping[str, Mapping[str, Any]], serving: Mapping[str, set[str]], limit: int
) -> list[str]:
    batch: list[str] = []
    for host in waiting:
        if len(batch) == limit:
            break
        if not batch or _bearable([*batch, host], hosts, serving):
            batch.append(host)
    return batch


def _bearable(batch: Sequence[str], hosts: Mapping[str, Mapping[str, Any]], serving: Mapping[str, set[str]]) -> bool:
    """Whether every set that the last host of a batch serves has somebody left without them all, or is its alone."""
    going = {host for host in batch if _outage(hosts[host])}
    if batch[-1] not in going:
        return True
    for name in _sets(hosts[batch[-1]]):
        up = serving.get(name, set())
        if up & going and not up - going and up != {batch[-1]}:
            return False
    return True


def _item(
    host: str,
    hosts: Mapping[str, Mapping[str, Any]],
    serving: Mapping[str, set[str]],
    terms: Terms,
    made: Outages,
) -> dict[str, Any]:
    facts = hosts[host]
    outage = _outage(facts)
    alone = [name for name in _sets(facts) if outage and serving.get(name) == {host}]
    drain_seconds: int | None = None
    if alone and not terms.allow_downtime:
        holds = [seen["hold_seconds"] for seen in facts["gateways"] if seen["name"] in alone]
        left = min(holds) - terms.seconds if holds else -1
        where = f"{', '.join(alone)} on {host} is the only replica that serves"
        way = "add a replica, or set allow_downtime=true"
        if facts["reboot"]:
            made.problems.append(f"{where}, and a reboot takes longer than any gateway holds requests: {way}")
        elif not holds:
            made.problems.append(f"{where}, and there is no gateway that would hold requests meanwhile: {way}")
        elif left < 0:
            made.problems.append(
                f"{where}; the work takes up to {terms.seconds} s (maintenance_work_seconds), gateway_hold_seconds is"
                f" {min(holds)}: raise that, {way}"
            )
        drain_seconds = max(left, 0)
    if facts["reboot"] and facts["gateway"] and not terms.allow_downtime:
        made.problems.append(
            f"{host} is a gateway, too, which its clients lose while it boots: set allow_downtime=true"
        )
    return {"host": host, "outage": outage, "alone": alone, "drain_seconds": drain_seconds}


def _in_the_way(host: str, facts: Mapping[str, Any]) -> list[str]:
    if not facts["due"] and not _interrupted(facts):
        return []
    return [
        f"{item['name']} on {host}: an update is at it, or was cut off: run update-model.yml first"
        for item in facts["instances"]
        if item["swapping"]
    ]


def _words(host: str, hosts: Mapping[str, Mapping[str, Any]]) -> str:
    facts = hosts[host]
    again = ["goes on where it was cut off, or failed"] if _interrupted(facts) else []
    drained = ", drained" if _outage(facts) and facts["instances"] else ""
    return "; ".join([*again, *facts["due"]]) + drained
