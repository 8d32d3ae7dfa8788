# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans an update: the batches of swaps, and the problems that forbid a run. Private to the collection. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.problems import nearest
from ...core.records import plain
from ...engine import load_time
from ...engine.instance_facts import UpdateFacts
from ...gateway.view import GatewayView
from . import gangs
from .batches import Batch, BatchError, Due, batches
from .gateways import holds, too_short, unanswered
from .serving import Serving
from .serving import left_out as left_out_lines


@dataclass(frozen=True)
class Choice:
    """Which of the due instances to swap; empty for all."""

    instances: tuple[str, ...] = ()
    model: str = ""
    release: int = 0
    """Number of the release to roll back to; 0 without a rollback to a number. Each node has its own numbers."""

    def takes(self, name: str, model: str) -> bool:
        """Whether the instance `name`, for which the inventory declares `model`, is chosen."""
        return (not self.instances or name in self.instances) and self.model in ("", model)


@dataclass(frozen=True)
class Host:
    """The facts of a node before an update."""

    instances: tuple[UpdateFacts, ...]
    gateways: tuple[GatewayView, ...]
    """The state of each instance at each gateway."""
    unreachable: tuple[str, ...]
    """The gateways that did not answer the run."""
    holds: Mapping[str, int] = field(default_factory=dict)
    """gateway_hold_seconds in the inventory, by gateway: the gateway may still run with another value."""

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Host:
        return cls(
            tuple(map(UpdateFacts.from_dict, value["instances"])),
            tuple(map(GatewayView.from_dict, value["gateways"])),
            tuple(value["unreachable"]),
            value.get("holds", {}),
        )


OTHERS, BRIDGE, HELD, DOWNTIME, UNCHANGED = "others", "bridge", "held", "downtime", "unchanged"
"""How clients of a set are served while an instance swaps. OTHERS: by other servers. BRIDGE: by a bridge. HELD:
gateways hold requests. DOWNTIME: not at all, which is allowed. UNCHANGED: as before, because the instance gets no
requests, or only a leftover bridge is removed."""


@dataclass(frozen=True)
class PlannedSwap:
    """An instance in a batch. At the start of the swap, the node decides `way` again (node/swap/way.py)."""

    host: str
    name: str
    origin: int | None
    """The release that the instance runs."""
    release: int | None
    """The release to swap to. The same as `origin` if only a leftover bridge must be removed."""
    way: str
    """How clients are served meanwhile: OTHERS, BRIDGE, HELD, DOWNTIME or UNCHANGED."""
    vouched: bool
    """Whether only the nodes' own reports say that other servers serve, because no gateway has answered for the set."""


@dataclass
class Plan:
    """Batches, problems that forbid the run, and lines for the operator."""

    batches: list[list[PlannedSwap]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return dict(plain(self))


def plan(
    hosts: Mapping[str, Host],
    sizes: Sequence[str | int],
    choice: Choice,
    *,
    allow_downtime: bool,
    left_out: Collection[str] = (),
) -> Plan:
    """Make the plan for all hosts of a run. `left_out`: nodes that cannot be reached, and are not in `hosts`."""
    made = Plan()
    folded = gangs.fold(
        {host: {item.name: item for item in facts.instances} for host, facts in hosts.items()}, left_out
    )
    known = folded.known
    _check_choice(choice, known, made)
    chosen = {
        Due(host, name, item.gang[1:]): item
        for host, items in known.items()
        for name, item in items.items()
        if item.target is not None or item.problems
        if choice.takes(name, item.model) and (host, name) not in folded.lines
    }
    due = {key: item for key, item in chosen.items() if item.due or item.problems or item.bridge.left}
    seen = [view for facts in hosts.values() for view in facts.gateways]
    made.problems += [f"{key.host}: {problem}" for key, item in due.items() for problem in item.problems]
    made.problems += [gang.problem for gang in folded.missing if choice.takes(gang.name, gang.model)]
    made.lines += folded.lines.values()
    made.problems += _left_behind(known, chosen, left_out)
    made.problems += [words for key, item in due.items() if (words := _in_the_way(key, item, hosts))]
    if choice.release:
        made.problems += _not_alike(choice.release, due)
    serving = Serving.of(seen, _serving(known))
    made.lines += left_out_lines(serving, left_out)
    if silent := unanswered(seen, [name for facts in hosts.values() for name in facts.unreachable]):
        # Without the answers of all gateways, it is unknown which instance is the last serving one of its set.
        made.problems += silent
        return made
    try:
        wanted = batches(due, serving, sizes)
    except BatchError as error:
        made.problems.append(str(error))
        return made
    for number, batch in enumerate(wanted, 1):
        turns = []
        for key in batch.items:
            item = due[key]
            way, words, problem = _way(key, item, hosts, batch, serving, allow_downtime=allow_downtime)
            made.problems += [problem] if problem else []
            made.lines.append(f"batch {number}: {_line(key, item, words)}")
            vouched = way == OTHERS and not serving.asked(key.name)
            turns.append(PlannedSwap(key.host, key.name, item.origin, item.target, way, vouched))
        made.batches.append(turns)
    made.lines += [f"not due: {key.name} on {key.host}" for key in chosen if key not in due]
    return made


def _way(
    key: Due,
    item: UpdateFacts,
    hosts: Mapping[str, Host],
    batch: Batch,
    serving: Serving,
    *,
    allow_downtime: bool,
) -> tuple[str, str, str]:
    """How clients are served while an instance swaps, a text on it for the plan, and a problem or an empty text."""
    if not item.due or not serving.count(key.name, key.host):
        return UNCHANGED, "", ""
    if key not in batch.alone:
        return OTHERS, "", ""
    unbridged = _unbridged(key, item, hosts)
    if not unbridged:
        facts = item.bridge
        gpus = f" and GPU {', '.join(facts.gpus)}" if facts.gpus else ""
        certain = "" if facts.certain else ", if both fit"
        return BRIDGE, f"; side by side{certain}: a bridge serves meanwhile, on port {facts.port}{gpus}", ""
    if allow_downtime:
        return DOWNTIME, f"; clients may find no engine meanwhile, because no bridge can serve: {unbridged}", ""
    seconds = holds([view for facts in hosts.values() for view in facts.gateways], [key.name])
    needed = load_time.swap_seconds(item.load_seconds)
    fits = bool(seconds) and needed is not None and needed <= min(seconds.values())
    words = f"; gateways hold requests meanwhile, because no bridge can serve: {unbridged}"
    return HELD, words, "" if fits else _too_long(key, needed, seconds, hosts[key.host].holds, unbridged)


def _check_choice(choice: Choice, known: Mapping[str, Mapping[str, UpdateFacts]], made: Plan) -> None:
    names = {name for items in known.values() for name in items}
    models = {item.model for items in known.values() for item in items.values() if item.model}
    asked = [*(("instance", name, names) for name in choice.instances), ("model", choice.model, models)]
    for key, value, there in asked:
        if value and value not in there:
            made.problems.append(f"{key} {value!r}: no node of this run has this {key}: {nearest(value, there)}")


def _serving(known: Mapping[str, Mapping[str, UpdateFacts]]) -> dict[str, set[str]]:
    """The hosts with a serving engine, by set."""
    return {
        name: {host for host, items in known.items() if name in items and items[name].serving}
        for items in known.values()
        for name in items
    }


def _unbridged(key: Due, item: UpdateFacts, hosts: Mapping[str, Host]) -> str:
    """Why no bridge can serve while the only instance of a set swaps; empty if a bridge can."""
    if item.bridge.problem:
        return str(item.bridge.problem)
    views = [view for view in hosts[key.host].gateways if view.name == key.name]
    unaware = [view.gateway for view in views if not view.bridge_known]
    if unaware:
        return f"{', '.join(unaware)} has no server for the bridge: run baremetal.inference.site for the gateways"
    return "" if views else "there is no gateway"


def _line(key: Due, item: UpdateFacts, meanwhile: str) -> str:
    where = ", ".join([key.host, *key.followers])
    if not item.due:
        return f"{key.name} on {key.host}: the leftover bridge of an earlier update is removed"
    start = f"{key.name} on {where}"
    start += f" from release {item.origin} to" if item.origin is not None else ": first start, with release"
    again = ", finishing a swap that was cut off" if item.interrupted else ""
    held = f"; stays drained by {item.drained_by}" if item.drained_by not in ("", "update") else ""
    return f"{start} {item.target} ({item.model}){again}{held}{meanwhile}"


def _left_behind(
    known: Mapping[str, Mapping[str, UpdateFacts]], chosen: Collection[Due], left_out: Collection[str]
) -> list[str]:
    """Problems with instances that this run does not update although an earlier update is unfinished there.

    The run would release the node's lock, and leave the unfinished update behind.
    """
    return [
        f"{name} on {host}: {words}"
        for host, items in known.items()
        for name, item in items.items()
        if Due(host, name) not in chosen and (words := _passed_over(item, left_out))
    ]


def _passed_over(item: UpdateFacts, left_out: Collection[str]) -> str:
    """What an earlier update left of an instance that is not chosen, and the next step; empty if nothing is left."""
    if item.interrupted:
        found, step = "a swap was cut off", "finish the swap"
    elif item.bridge.left:
        found, step = "an update has left a bridge", "remove the bridge"
    else:
        return ""
    if away := [node for node in item.gang if node in left_out]:
        rest = ", ".join(node for node in item.gang if node not in away)
        return (
            f"{found}, and {', '.join(away)} cannot be reached: repair {', '.join(away)}, or exclude {rest} with -l,"
            " then run this playbook again"
        )
    if item.target is None:
        return (
            f"{found}, and the inventory does not declare the instance: declare it again, {step} with"
            " baremetal.inference.update_model for all instances, then remove the instance with"
            " baremetal.inference.decommission"
        )
    return (
        f"{found}, and this run does not include the instance: first {step}, with"
        " baremetal.inference.update_model for all instances"
    )


def _in_the_way(key: Due, item: UpdateFacts, hosts: Mapping[str, Host]) -> str:
    """Why the swap of an instance would fail half-way; empty if it would not."""
    if item.drained_until:
        return (
            f"{key.name} on {key.host} is drained by {item.drained_by} until {item.drained_until}. The drain could end"
            " during the swap: wait for its end, or undrain the instance first"
        )
    views = [view for view in hosts[key.host].gateways if view.name == key.name]
    unaware = [view.gateway for view in views if not view.known and not view.silent]
    if unaware:
        return (
            f"{', '.join(unaware)} has no server for {key.name} on {key.host}:"
            " run baremetal.inference.site for the gateways"
        )
    return ""


def _not_alike(release: int, due: Mapping[Due, UpdateFacts]) -> list[str]:
    """A problem for each set whose release with this number differs between nodes."""
    runs = {name: {item.runs for key, item in due.items() if key.name == name} for name in {key.name for key in due}}
    return [
        f"release {release} of {name} is not the same on all nodes: each node has its own numbers. Roll back one"
        " node at a time, with -l"
        for name in sorted(runs)
        if len(runs[name]) > 1
    ]


def _too_long(
    key: Due, needed: int | None, seconds: Mapping[str, int], declared: Mapping[str, int], unbridged: str
) -> str:
    """Why clients would notice the swap of the only replica. `seconds`: how long each gateway holds requests now;
    `declared`: how long by the inventory."""
    way = "add a replica, or swap anyway by -e allow_downtime=true"
    where = f"{key.name} on {key.host} is the only replica that serves"
    if not seconds:
        return f"{where}, and no gateway holds its requests meanwhile: {way}"
    way += f". A bridge would serve meanwhile, but {key.name} cannot have one yet: {unbridged}"
    if needed is None:
        return f"{where}, and it is unknown how long its release loads: {way}"
    return (
        f"{where}. Judged by the last load, the swap may take {needed} s. A load from caches takes less."
        f" {too_short(seconds, needed, declared)}. Or {way}"
    )
