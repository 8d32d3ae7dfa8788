# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet's report: the values of the nodes, for the screen and the page. Private to the collection; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ..engine.state.gateway_answers import SILENT_SECONDS

GOOD, POOR, BAD, NONE = "good", "poor", "bad", "none"
"""Tones of a word: good, worth a look, broken, neutral."""

VERDICTS = {"healthy": GOOD, "busy": GOOD, "starting": POOR, "stopped": POOR, "unknown": POOR, "stale": POOR}
"""Tones of the agent's verdicts. Any other verdict is BAD."""

DOCTOR = {"ok": GOOD, "unknown": POOR, "warn": POOR, "fail": BAD}

UP = "up"
"""The agent's answer to a gateway that may send requests. Source: the agent-check of HAProxy's configuration manual."""

DAY = 86400

UNITS = ((DAY, "d"), (3600, "h"), (60, "m"), (1, "s"))


@dataclass(frozen=True)
class Word:
    """The text of a cell, and its tone."""

    text: str
    tone: str = NONE


@dataclass(frozen=True)
class Instance:
    """An instance on a node."""

    name: str
    model: str
    revision: str
    image: str
    release: int | None
    verdict: Word
    since: str
    """Age of the verdict, as `ago` writes it."""
    gpus: int
    serving: bool
    drain: str
    pending: bool
    gateways: Sequence[str]
    """The gateways that send requests to the instance."""


@dataclass(frozen=True)
class Node:
    """A node that has answered."""

    name: str
    system: Mapping[str, Any]
    gpus: Mapping[str, Any]
    doctor: Word
    updated: datetime | None
    backed_up: datetime | None
    backup: Word
    instances: Sequence[Instance]
    notes: Sequence[str]


@dataclass(frozen=True)
class Fleet:
    """All nodes. `unreachable` has the reason for each node that did not answer."""

    time: datetime
    nodes: Sequence[Node] = ()
    unreachable: Mapping[str, str] = field(default_factory=dict)


def read(reported: Mapping[str, Mapping[str, Any]], now: datetime) -> Fleet:
    """Make the fleet from the results of node_facts, by node. A node whose result has no schema is unreachable."""
    unreachable = {
        name: " ".join(str(result.get("msg") or "did not answer").split())
        for name, result in reported.items()
        if "schema" not in result
    }
    nodes = [_node(name, result, now) for name, result in sorted(reported.items()) if "schema" in result]
    return Fleet(now, nodes, unreachable)


def _node(name: str, reported: Mapping[str, Any], now: datetime) -> Node:
    instances = [_instance(one, now) for one in reported["instances"] or ()]
    backup = reported["backup"]
    backed_up = _time(backup["succeeded"]) if backup else None
    return Node(
        name=name,
        system=reported["system"] or {},
        gpus=reported["gpus"] or {},
        doctor=_doctor(reported["doctor"]),
        updated=_time(reported["updated"]),
        backed_up=backed_up,
        backup=_backup(backup, backed_up, now),
        instances=instances,
        notes=_notes(reported, instances),
    )


def _instance(reported: Mapping[str, Any], now: datetime) -> Instance:
    probe, drain = reported["probe"], reported["drain"]
    if probe is None:
        verdict, since = Word(reported["state"], GOOD if reported["serving"] else BAD), reported["since"]
    else:
        text = "stale" if probe["stale"] else probe["verdict"]
        verdict, since = Word(text, VERDICTS.get(text, BAD)), probe["since"]
    began = _time(since)
    words = f"by {drain['owner']}, until {drain['until'] or 'undrained'}: {drain['reason']}" if drain else ""
    return Instance(
        name=reported["name"],
        model=reported["model"],
        revision=reported["revision"],
        image=reported["image"],
        release=reported["release"]["active"],
        verdict=verdict,
        since=ago(now, began) if began else "",
        gpus=len(reported["gpus"]),
        serving=reported["serving"] and verdict.tone == GOOD,
        drain=words,
        pending=reported["pending"],
        gateways=[one["name"] for one in reported["gateways"] if one["answer"] == UP and not _silent(one["seconds"])],
    )


def _silent(seconds: float | None) -> bool:
    """Whether a gateway is silent that last asked `seconds` ago. None: the agent has recorded no question of the
    gateway."""
    return seconds is None or seconds > SILENT_SECONDS


def _doctor(reported: Mapping[str, Any] | None) -> Word:
    return Word("?", POOR) if reported is None else Word(reported["verdict"], DOCTOR.get(reported["verdict"], BAD))


def _backup(reported: Mapping[str, Any] | None, succeeded: datetime | None, now: datetime) -> Word:
    if reported is None:
        return Word("none")
    text = ago(now, succeeded) if succeeded else "never"
    # While the first backup runs, `ok` is not False but None.
    if reported["ok"] is False:
        return Word(f"{text}, failed", BAD)
    if _overdue(reported["interval"], succeeded or _time(reported["since"]), now):
        return Word(text, POOR)
    return Word(text, GOOD if succeeded else NONE)


def _overdue(interval: int | None, last: datetime | None, now: datetime) -> bool:
    """Whether a backup is overdue by more than a day. The alert BackupOld has the same rule.

    `interval` is in seconds. 0 means no schedule; None means unknown, and counts as a day.
    """
    seconds = DAY if interval is None else interval
    return seconds > 0 and last is not None and (now - last).total_seconds() > seconds + DAY


def _notes(reported: Mapping[str, Any], instances: Sequence[Instance]) -> list[str]:
    """A line for each fact that needs attention."""
    notes = []
    for one, raw in zip(instances, reported["instances"] or (), strict=True):
        if one.drain:
            notes.append(f"{one.name} is drained {one.drain}")
        if one.pending:
            notes.append(
                f"{one.name}: release {raw['release']['wanted']} is pending:"
                " run baremetal.inference.update_model to swap to it"
            )
        if not raw["desired"]:
            notes.append(f"{one.name} is not in the inventory")
        notes += [f"{one.name}: {problem}" for problem in raw["problems"]]
    notes += _silent_gateways(reported["instances"] or ())
    lock = reported["lock"]
    if lock:
        state = "has left its lock" if lock["stale"] else "runs"
        notes.append(f"{lock['playbook']} {state} (by {lock['user']} on {lock['host']}, since {lock['since']})")
    gpus = reported["gpus"] or {}
    if gpus.get("error"):
        notes.append(f"GPUs: {gpus['error']}")
    if (reported["system"] or {}).get("reboot_required"):
        notes.append("a reboot is due")
    notes += [
        f"{line} waits for a drain: run baremetal.inference.maintenance" for line in reported.get("rails_waiting") or ()
    ]
    if reported["backup"] and reported["backup"]["error"]:
        notes.append(f"backup: {reported['backup']['error']}")
    notes += [f"doctor: {problem}" for problem in (reported["doctor"] or {}).get("problems", ())]
    notes += [f"{part} is unknown: {why}" for part, why in reported["errors"].items()]
    return [" ".join(note.split()) for note in notes]


def _silent_gateways(instances: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each gateway that has not checked instances of the node lately."""
    unchecked: dict[str, list[str]] = {}
    for raw in instances:
        for gateway in raw["gateways"]:
            if _silent(gateway["seconds"]):
                unchecked.setdefault(gateway["name"], []).append(raw["name"])
    return [
        f"gateway {gateway} does not check {', '.join(names)}: the gateway has stopped, or does not reach this node"
        for gateway, names in sorted(unchecked.items())
    ]


def _time(text: str | None) -> datetime | None:
    """Parse a time that a node reports; None without a valid time with a time zone."""
    try:
        time = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return time if time is not None and time.tzinfo is not None else None


def ago(now: datetime, then: datetime) -> str:
    """The age in its largest unit: 5d, 3h, 12m, 40s. A time in the future gives 0s."""
    seconds = max(0.0, (now - then).total_seconds())
    return next((f"{int(seconds // size)}{unit}" for size, unit in UNITS if seconds >= size), "0s")
