# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every instance of this node on one screen. Private to the collection."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ..paths import Paths, unit_name
from ..release import Release
from . import files, releases, systemd

SCHEMA = 1

_PROPERTIES = (
    "LoadState",
    "ActiveState",
    "SubState",
    "Result",
    "StatusText",
    "NRestarts",
    "ActiveEnterTimestamp",
    "InactiveExitTimestamp",
)


@dataclass
class Status:
    """How one instance stands. Model, address and GPUs are those of the active release, or else of the desired one."""

    name: str
    state: str
    serving: bool
    desired: bool
    """Whether the inventory declares it."""
    pending: bool
    """Whether another release is wanted than the one that is installed."""
    status: str = ""
    result: str = ""
    """systemd's reason for a unit that failed, such as start-limit-hit; `success` otherwise."""
    since: str = ""
    """When it entered its state, ISO 8601 in UTC."""
    restarts: int = 0
    model: str = ""
    revision: str = ""
    image: str = ""
    release: dict[str, int | None] = field(default_factory=dict)
    address: str = ""
    port: int = 0
    container: str = ""
    accelerator: str = ""
    gpus: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def collect(paths: Paths, names: Sequence[str]) -> list[Status]:
    """How the instances stand. Raises SystemdError."""
    shown = systemd.show(map(unit_name, names), _PROPERTIES)
    return [_one(paths, name, shown[unit_name(name)]) for name in names]


def _one(paths: Paths, name: str, unit: dict[str, str]) -> Status:
    problems: list[str] = []
    numbers: dict[str, int | None] = {}
    declared = None
    try:
        declared = files.read_json(paths.instance(name))
        numbers["desired"] = releases.desired_number(paths, name)
    except (OSError, ValueError) as error:
        problems.append(str(error))
        numbers["desired"] = None
    numbers["active"] = releases.active_number(paths, name)
    numbers["current"] = releases.current_number(paths, name)
    installed = unit.get("LoadState") == "loaded"
    active = unit.get("ActiveState", "")
    entered = unit.get("ActiveEnterTimestamp" if active == "active" else "InactiveExitTimestamp", "")
    result = Status(
        name=name,
        state=_state(active, unit.get("SubState", "")) if installed else "no unit",
        serving=active == "active",
        desired=isinstance(declared, dict) or bool(problems),
        pending=numbers["desired"] is not None and numbers["desired"] != numbers["active"],
        # Of an engine that has ended this is what its supervisor said last.
        status=unit.get("StatusText", ""),
        result=unit.get("Result", ""),
        since=_time(entered) if active in systemd.RUNNING else "",
        restarts=int(unit.get("NRestarts") or 0),
        release=numbers,
        problems=problems,
    )
    number = numbers["active"] or numbers["desired"]
    if number is not None:
        try:
            _describe(result, releases.load(paths, name, number))
        except releases.ReleaseError as error:
            problems.append(str(error))
    return result


def _describe(status: Status, release: Release) -> None:
    for key in ("model", "revision", "image", "address", "port", "container", "accelerator", "gpus"):
        setattr(status, key, getattr(release, key))


def _state(active: str, sub: str) -> str:
    """One word for the operator."""
    words = {"active": "serving", "activating": "loading", "deactivating": "stopping", "inactive": "stopped"}
    return "restarting" if sub == "auto-restart" else words.get(active, active)


def _time(text: str) -> str:
    """systemctl's @seconds as ISO 8601."""
    seconds = text.removeprefix("@")
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(seconds))) if seconds.isdigit() and int(seconds) else ""


def healthy(statuses: Sequence[Status]) -> bool:
    """Whether every instance that the inventory declares serves."""
    return all(status.serving and not status.problems for status in statuses if status.desired)


def as_json(statuses: Sequence[Status]) -> dict[str, Any]:
    """The document of `inferctl status --json`."""
    return {"schema": SCHEMA, "healthy": healthy(statuses), "instances": [asdict(status) for status in statuses]}


def as_text(statuses: Sequence[Status]) -> str:
    """A table, and a line for everything that wants attention."""
    header = ("INSTANCE", "STATE", "SINCE", "RESTARTS", "MODEL", "REVISION", "RELEASE", "ADDRESS", "GPUS")
    table = [header, *(_row(status) for status in statuses)]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    for status in statuses:
        lines += [f"{status.name}: {note}" for note in _notes(status)]
    return "\n".join(lines)


def _row(status: Status) -> tuple[str, ...]:
    number = status.release["active"] or status.release["desired"]
    return (
        status.name,
        status.state,
        status.since or "-",
        str(status.restarts),
        status.model or "-",
        status.revision[:12] or "-",
        "-" if number is None else str(number),
        f"{status.address}:{status.port}" if status.port else "-",
        ",".join(status.gpus) or status.accelerator or "-",
    )


def _notes(status: Status) -> list[str]:
    notes = list(status.problems)
    if status.status and not status.serving:
        notes.append(status.status)
    if status.state == "failed":
        unit = unit_name(status.name)
        notes.append(f"systemd gave up ({status.result}): systemctl reset-failed {unit}; systemctl start {unit}")
    if status.desired and status.state not in ("serving", "loading"):
        notes.append(f"does not serve: journalctl -t vllm@{status.name} -u {unit_name(status.name)}")
    if not status.desired:
        notes.append("is not in the inventory")
    numbers = status.release
    if status.pending and numbers["active"] is not None:
        notes.append(f"release {numbers['desired']} is pending: update-model.yml rolls it out")
    if numbers["active"] is not None and numbers["current"] != numbers["active"] and status.serving:
        notes.append(f"release {numbers['active']} serves, but is not yet marked as proven")
    return notes
