# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an update will do, in which order, and why it must not begin. Private to the collection. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ...core.problems import nearest
from .batches import BatchError, Due, batches
from .gateways import unheard

SWITCH_SECONDS = 30
"""What a swap takes beside the engine's load: its stop, and the probe before clients come back."""

LOAD_MARGIN = 1.1
"""A load may take this much longer than the last one."""


@dataclass(frozen=True)
class Choice:
    """Which of the instances that are due shall be swapped; empty for all."""

    instances: tuple[str, ...] = ()
    model: str = ""
    release: int = 0
    """The one to roll back to, by its number on each node."""

    def takes(self, name: str, model: str) -> bool:
        """Whether an instance is chosen that shall run this model."""
        return (not self.instances or name in self.instances) and self.model in ("", model)


@dataclass
class Plan:
    """Batches, every problem, and words for those who watch.

    An item of a batch is {host, name, swap, alone, bridge, drain_seconds}: whether it is swapped, or only its bridge
    removed; whether its set has nobody else; whether a bridge stands in for it then; and if not, how long its requests
    may be waited for, so that those that are held meanwhile do not wait in vain; None where nobody is held.
    """

    batches: list[list[dict[str, Any]]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def plan(
    hosts: Mapping[str, Mapping[str, Any]], sizes: Sequence[str | int], choice: Choice, *, allow_downtime: bool
) -> Plan:
    """The plan for all hosts of a run.

    Each host has `instances`, the `updates` of the module engine_facts; `gateways`, what gateway_facts saw of each of
    them at each gateway, with `name`, `up`, `known`, `silent`, `bridge_known`, `keyed` and `hold_seconds`; and
    `unreachable`, the gateways that could not be asked.
    """
    made = Plan()
    known = {host: {item["name"]: item for item in facts["instances"]} for host, facts in hosts.items()}
    _check_choice(choice, known, made)
    chosen = {
        Due(host, name): item
        for host, items in known.items()
        for name, item in items.items()
        if item["target"] is not None or item["problems"]
        if choice.takes(name, item["model"])
    }
    due = {key: item for key, item in chosen.items() if item["due"] or item["problems"] or item["bridge"]["left"]}
    seen = [gateway for facts in hosts.values() for gateway in facts["gateways"]]
    made.problems += [f"{key.host}: {problem}" for key, item in due.items() for problem in item["problems"]]
    # At the end, gateways are told of all, whatever was chosen.
    made.problems += [
        f"{host}: {problem}" for host, items in known.items() for item in items.values() for problem in item["moved"]
    ]
    made.problems += _left_behind(known, chosen)
    made.problems += [words for key, item in due.items() if (words := _in_the_way(key, item, hosts))]
    if choice.release:
        made.problems += _not_alike(choice.release, due)
    if silent := unheard(hosts):
        # Without their word, nobody knows who is the last one that serves.
        made.problems += silent
        return made
    try:
        wanted = batches(due, _healthy(known, seen), sizes)
    except BatchError as error:
        made.problems.append(str(error))
        return made
    for number, batch in enumerate(wanted, 1):
        items = []
        for key in batch.items:
            swap, alone = due[key]["due"], key in batch.alone
            unbridged = _unbridged(key, due[key], hosts) if swap and alone else ""
            bridge = swap and alone and not unbridged
            held = swap and alone and not bridge and not allow_downtime
            left = _seconds_left(key, due[key], seen) if held else None
            if held and (left is None or left < 0):
                made.problems.append(_too_long(key, due[key], seen, unbridged))
            items.append({**asdict(key), "swap": swap, "alone": alone, "bridge": bridge, "drain_seconds": left})
            made.lines.append(f"batch {number}: {_line(key, due[key], _meanwhile(due[key], bridge, held, unbridged))}")
        made.batches.append(items)
    made.lines += [f"not due: {key.name} on {key.host}" for key in chosen if key not in due]
    return made


def _check_choice(choice: Choice, known: Mapping[str, Mapping[str, Any]], made: Plan) -> None:
    names = {name for items in known.values() for name in items}
    models = {item["model"] for items in known.values() for item in items.values() if item["model"]}
    asked = [*(("instance", name, names) for name in choice.instances), ("model", choice.model, models)]
    for key, value, there in asked:
        if value and value not in there:
            made.problems.append(f"{key} {value!r}: none of these nodes has it: {nearest(value, there)}")


def _healthy(known: Mapping[str, Mapping[str, Any]], seen: Sequence[Mapping[str, Any]]) -> dict[str, set[str]]:
    """The hosts of each set that all gateways send requests to; without gateways, those whose engines serve."""
    healthy = {
        name: {host for host, items in known.items() if name in items and items[name]["serving"]}
        for items in known.values()
        for name in items
    }
    asked: dict[str, set[str]] = {}
    for gateway in seen:
        up = set(gateway["up"])
        asked[gateway["name"]] = asked[gateway["name"]] & up if gateway["name"] in asked else up
    return healthy | asked


def _unbridged(key: Due, item: Mapping[str, Any], hosts: Mapping[str, Mapping[str, Any]]) -> str:
    """Why no second engine can serve while the only one of its set is swapped; empty where one can."""
    if item["bridge"]["problem"]:
        return str(item["bridge"]["problem"])
    gateways = [gateway for gateway in hosts[key.host]["gateways"] if gateway["name"] == key.name]
    strangers = [gateway["gateway"] for gateway in gateways if not gateway["bridge_known"]]
    if strangers:
        return f"its bridge is not known to {', '.join(strangers)}: run site.yml, which tells gateways"
    return "" if gateways else "there is no gateway"


def _meanwhile(item: Mapping[str, Any], bridge: bool, held: bool, unbridged: str) -> str:
    """What becomes of the requests of the only one of its set."""
    if bridge:
        gpus = f" and GPU {', '.join(item['bridge']['gpus'])}" if item["bridge"]["gpus"] else ""
        certain = "" if item["bridge"]["certain"] else ", if both fit"
        return f"; side by side{certain}: a second engine serves meanwhile, on port {item['bridge']['port']}{gpus}"
    return f"; requests are held meanwhile, for {unbridged}" if held else ""


def _line(key: Due, item: Mapping[str, Any], meanwhile: str) -> str:
    if not item["due"]:
        return f"{key.name} on {key.host}: the bridge that an update has left is removed"
    origin = f"from release {item['origin']}" if item["origin"] is not None else "for the first time"
    again = ", finishing a swap that was cut off" if item["interrupted"] else ""
    held = f"; stays drained by {item['drained_by']}" if item["drained_by"] not in ("", "update") else ""
    return f"{key.name} on {key.host} {origin} to {item['target']} ({item['model']}){again}{held}{meanwhile}"


def _left_behind(known: Mapping[str, Mapping[str, Any]], chosen: Collection[Due]) -> list[str]:
    """What an update has left and this run would pass over, while it gives the node's lock back."""
    return [
        f"{name} on {host}: {words}"
        for host, items in known.items()
        for name, item in items.items()
        if Due(host, name) not in chosen and (words := _passed_over(item))
    ]


def _passed_over(item: Mapping[str, Any]) -> str:
    """What is left of an update of an instance that this one leaves out; empty where nothing is."""
    if item["interrupted"]:
        return "a swap was cut off, and this run leaves it out: finish it first, without choosing others"
    if item["bridge"]["left"]:
        return (
            "an update has left its bridge, and this run leaves it out: run update-model.yml first, without choosing"
            " others, which removes it"
        )
    return ""


def _in_the_way(key: Due, item: Mapping[str, Any], hosts: Mapping[str, Mapping[str, Any]]) -> str:
    """What would make the swap of an instance fail half-way."""
    if item["drained_until"]:
        return (
            f"{key.name} on {key.host} is drained by {item['drained_by']} until {item['drained_until']}, which could"
            " end in the middle: wait for that, or undrain it first"
        )
    gateways = [gateway for gateway in hosts[key.host]["gateways"] if gateway["name"] == key.name]
    strangers = [gateway["gateway"] for gateway in gateways if not gateway["known"] and not gateway["silent"]]
    if strangers:
        return f"{key.name} on {key.host} is not known to {', '.join(strangers)}: run site.yml, which tells gateways"
    keyless = [gateway["gateway"] for gateway in gateways if gateway["known"] and not gateway["keyed"]]
    if item["keyed"] and keyless:
        return (
            f"{key.name} on {key.host} would want a key, which {', '.join(keyless)} does not send yet: run site.yml,"
            " which tells gateways"
        )
    return ""


def _not_alike(release: int, due: Mapping[Due, Mapping[str, Any]]) -> list[str]:
    """Sets whose release of that number is not the same on all nodes."""
    runs = {name: {item["runs"] for key, item in due.items() if key.name == name} for name in {key.name for key in due}}
    return [
        f"release {release} of {name} is not the same on all nodes, which count for themselves: take one at a time, -l"
        for name in sorted(runs)
        if len(runs[name]) > 1
    ]


def _needed(item: Mapping[str, Any]) -> int:
    """Seconds that a swap takes, by its last load."""
    return round(item["load_seconds"] * LOAD_MARGIN + SWITCH_SECONDS)


def _seconds_left(key: Due, item: Mapping[str, Any], seen: Sequence[Mapping[str, Any]]) -> int | None:
    """Of the time that gateways hold requests, what a swap does not need itself; None where that cannot be told."""
    holds = [gateway["hold_seconds"] for gateway in seen if gateway["name"] == key.name]
    return min(holds) - _needed(item) if holds and item["load_seconds"] is not None else None


def _too_long(key: Due, item: Mapping[str, Any], seen: Sequence[Mapping[str, Any]], unbridged: str) -> str:
    """Why clients would see that the only replica is away."""
    way = "set allow_downtime=true to have it nevertheless, or add a replica"
    holds = [gateway["hold_seconds"] for gateway in seen if gateway["name"] == key.name]
    where = f"{key.name} on {key.host} is the only replica that serves"
    if not holds:
        return f"{where}, and there is no gateway that would hold requests meanwhile: {way}"
    way += f"; no second engine can serve meanwhile: {unbridged}"
    if item["load_seconds"] is None:
        return f"{where}, and nobody knows how long its release loads: {way}"
    return f"{where}; its swap takes about {_needed(item)} s, gateway_hold_seconds is {min(holds)}: raise that, {way}"
