# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an update will do, in which order, and why it must not begin. Private to the collection. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.problems import nearest
from ...core.records import plain
from ...engine.instance_facts import UpdateFacts
from ...gateway.view import GatewayView
from .batches import Batch, BatchError, Due, batches
from .gateways import holds, unanswered
from .serving import Serving
from .serving import left_out as left_out_lines

SWITCH_SECONDS = 30
"""What a swap takes beside the engine's load: its stop, and the probe before clients come back."""

LOAD_MARGIN = 1.1
"""A load may take this much longer than the last one."""


@dataclass(frozen=True)
class Choice:
    """Which of the instances that are due must be swapped; empty for all."""

    instances: tuple[str, ...] = ()
    model: str = ""
    release: int = 0
    """The release to roll back to, by its number on each node."""

    def takes(self, name: str, model: str) -> bool:
        """Whether an instance is chosen that must run this model."""
        return (not self.instances or name in self.instances) and self.model in ("", model)


@dataclass(frozen=True)
class Host:
    """What is known of a node before an update."""

    instances: tuple[UpdateFacts, ...]
    gateways: tuple[GatewayView, ...]
    """What each gateway shows of each instance."""
    unreachable: tuple[str, ...]
    """The gateways that could not be asked."""

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Host:
        return cls(
            tuple(map(UpdateFacts.from_dict, value["instances"])),
            tuple(map(GatewayView.from_dict, value["gateways"])),
            tuple(value["unreachable"]),
        )


OTHERS, BRIDGE, HELD, DOWNTIME, IDLE = "others", "bridge", "held", "downtime", "idle"
"""What clients of a set have while an instance is away: other servers; a bridge; gateways that hold requests; nothing,
which is allowed; nothing less than before, because no gateway sends the instance requests."""


@dataclass(frozen=True)
class Turn:
    """An instance in a batch. The node decides again when the turn comes: node/swap/way.py has the same words."""

    host: str
    name: str
    origin: int | None
    """The release that it runs."""
    release: int | None
    """The release that it must run. The same as `origin` where only a bridge is left to be removed."""
    way: str
    """What its clients have meanwhile: OTHERS, BRIDGE, HELD, DOWNTIME or IDLE."""
    vouched: bool
    """Whether others serve by the nodes' own word, where there is no gateway to ask."""


@dataclass
class Plan:
    """Batches, every problem, and words for the operator."""

    batches: list[list[Turn]] = field(default_factory=list)
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
    """The plan for all hosts of a run, without those that are left out because they cannot be reached."""
    made = Plan()
    known = {host: {item.name: item for item in facts.instances} for host, facts in hosts.items()}
    _check_choice(choice, known, made)
    chosen = {
        Due(host, name): item
        for host, items in known.items()
        for name, item in items.items()
        if item.target is not None or item.problems
        if choice.takes(name, item.model)
    }
    due = {key: item for key, item in chosen.items() if item.due or item.problems or item.bridge.left}
    seen = [view for facts in hosts.values() for view in facts.gateways]
    made.problems += [f"{key.host}: {problem}" for key, item in due.items() for problem in item.problems]
    made.problems += _left_behind(known, chosen)
    made.problems += [words for key, item in due.items() if (words := _in_the_way(key, item, hosts))]
    if choice.release:
        made.problems += _not_alike(choice.release, due)
    serving = Serving.of(seen, _serving(known))
    made.lines += left_out_lines(serving, left_out)
    if silent := unanswered(seen, [name for facts in hosts.values() for name in facts.unreachable]):
        # Without all gateways, it is not known which instance is the last of its set that serves.
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
            turns.append(Turn(key.host, key.name, item.origin, item.target, way, vouched))
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
    """What clients have while an instance is away; the same in words for the plan; and why that is not enough."""
    if not item.due or not serving.count(key.name, key.host):
        return IDLE, "", ""
    if key not in batch.alone:
        return OTHERS, "", ""
    unbridged = _unbridged(key, item, hosts)
    if not unbridged:
        facts = item.bridge
        gpus = f" and GPU {', '.join(facts.gpus)}" if facts.gpus else ""
        certain = "" if facts.certain else ", if both fit"
        return BRIDGE, f"; side by side{certain}: a second engine serves meanwhile, on port {facts.port}{gpus}", ""
    if allow_downtime:
        return DOWNTIME, "", ""
    seconds, needed = holds([view for facts in hosts.values() for view in facts.gateways], [key.name]), _needed(item)
    fits = bool(seconds) and needed is not None and needed <= min(seconds)
    words = f"; requests are held meanwhile, for {unbridged}"
    return HELD, words, "" if fits else _too_long(key, needed, seconds, unbridged)


def _check_choice(choice: Choice, known: Mapping[str, Mapping[str, UpdateFacts]], made: Plan) -> None:
    names = {name for items in known.values() for name in items}
    models = {item.model for items in known.values() for item in items.values() if item.model}
    asked = [*(("instance", name, names) for name in choice.instances), ("model", choice.model, models)]
    for key, value, there in asked:
        if value and value not in there:
            made.problems.append(f"{key} {value!r}: none of these nodes has it: {nearest(value, there)}")


def _serving(known: Mapping[str, Mapping[str, UpdateFacts]]) -> dict[str, set[str]]:
    """The hosts of each set whose engines serve."""
    return {
        name: {host for host, items in known.items() if name in items and items[name].serving}
        for items in known.values()
        for name in items
    }


def _unbridged(key: Due, item: UpdateFacts, hosts: Mapping[str, Host]) -> str:
    """Why no second engine can serve while the only one of its set is swapped; empty where one can."""
    if item.bridge.problem:
        return str(item.bridge.problem)
    views = [view for view in hosts[key.host].gateways if view.name == key.name]
    unaware = [view.gateway for view in views if not view.bridge_known]
    if unaware:
        return f"its bridge is not known to {', '.join(unaware)}: run baremetal.inference.site, which tells gateways"
    return "" if views else "there is no gateway"


def _line(key: Due, item: UpdateFacts, meanwhile: str) -> str:
    if not item.due:
        return f"{key.name} on {key.host}: the bridge that an update has left is removed"
    origin = f"from release {item.origin}" if item.origin is not None else "for the first time"
    again = ", finishing a swap that was cut off" if item.interrupted else ""
    held = f"; stays drained by {item.drained_by}" if item.drained_by not in ("", "update") else ""
    return f"{key.name} on {key.host} {origin} to {item.target} ({item.model}){again}{held}{meanwhile}"


def _left_behind(known: Mapping[str, Mapping[str, UpdateFacts]], chosen: Collection[Due]) -> list[str]:
    """What an update has left and this run would pass over, while it gives the node's lock back."""
    return [
        f"{name} on {host}: {words}"
        for host, items in known.items()
        for name, item in items.items()
        if Due(host, name) not in chosen and (words := _passed_over(item))
    ]


def _passed_over(item: UpdateFacts) -> str:
    """What is left of an update of an instance that this one leaves out; empty where nothing is."""
    if item.interrupted:
        return "a swap was cut off, and this run leaves it out: finish it first, without choosing others"
    if item.bridge.left:
        return (
            "an update has left its bridge, and this run leaves it out:"
            " run baremetal.inference.update_model first, without choosing"
            " others, which removes it"
        )
    return ""


def _in_the_way(key: Due, item: UpdateFacts, hosts: Mapping[str, Host]) -> str:
    """What would make the swap of an instance fail half-way."""
    if item.drained_until:
        return (
            f"{key.name} on {key.host} is drained by {item.drained_by} until {item.drained_until}, which could"
            " end in the middle: wait for that, or undrain it first"
        )
    views = [view for view in hosts[key.host].gateways if view.name == key.name]
    unaware = [view.gateway for view in views if not view.known and not view.silent]
    if unaware:
        return (
            f"{key.name} on {key.host} is not known to {', '.join(unaware)}:"
            " run baremetal.inference.site, which tells gateways"
        )
    return ""


def _not_alike(release: int, due: Mapping[Due, UpdateFacts]) -> list[str]:
    """Sets whose release of that number is not the same on all nodes."""
    runs = {name: {item.runs for key, item in due.items() if key.name == name} for name in {key.name for key in due}}
    return [
        f"release {release} of {name} is not the same on all nodes, which count for themselves: take one at a time, -l"
        for name in sorted(runs)
        if len(runs[name]) > 1
    ]


def _needed(item: UpdateFacts) -> int | None:
    """Seconds that a swap takes, by its last load; None where that is not known."""
    return None if item.load_seconds is None else round(item.load_seconds * LOAD_MARGIN + SWITCH_SECONDS)


def _too_long(key: Due, needed: int | None, seconds: Sequence[int], unbridged: str) -> str:
    """Why clients would see that the only replica is away. `seconds`: how long gateways hold requests."""
    way = "set allow_downtime=true to have it nevertheless, or add a replica"
    where = f"{key.name} on {key.host} is the only replica that serves"
    if not seconds:
        return f"{where}, and there is no gateway that would hold requests meanwhile: {way}"
    way += f"; no second engine can serve meanwhile: {unbridged}"
    if needed is None:
        return f"{where}, and how long its release loads is unknown: {way}"
    return f"{where}; its swap takes about {needed} s, gateway_hold_seconds is {min(seconds)}: raise that, {way}"
