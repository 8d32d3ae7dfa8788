# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of every instance of this node, on one screen. Private to the collection."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from ..core import files, systemd, table
from ..core.paths import Paths, swap_unit, unit_name
from ..engine import swap_settings
from ..engine.gang.members import Gang
from ..engine.inventory import bridged_instance
from ..engine.probe import health
from ..engine.release import Release
from ..engine.state import drains, gangs, gateway_answers, pins, probe_state, releases, swaps
from ..engine.state.drains import Drain
from ..engine.state.gangs import GangState, MemberState
from ..engine.state.gateway_answers import SILENT_SECONDS
from ..gateway.names import asking_name
from .swap import left_over

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


@dataclass(frozen=True)
class Probe:
    """The agent's last verdict. Times are ISO 8601 in UTC. `stale`: the verdict is too old to count."""

    verdict: str
    since: str
    checked: str
    latency_ms: int | None
    detail: str
    stale: bool


@dataclass(frozen=True)
class Gateway:
    """A gateway that checks the instance at the agent, or should."""

    name: str
    answer: str
    """The first word of the last answer: up, drain or down. Empty if the agent has no answer."""
    seconds: float | None
    """Seconds since the gateway's last check. None if the agent knows no check: there was none within FORGET_SECONDS,
    or none since the agent started."""


@dataclass(frozen=True)
class Swap:
    """A swap of releases that is under way, stuck or cut off."""

    origin: int | None
    target: int
    step: str
    since: str
    run_id: str
    returning: bool
    failure: str
    tries: int
    """How often the present step has failed, and is tried again."""


@dataclass
class Status:
    """The state of an instance. Model, address and GPUs are those of the active release, or else of the desired one."""

    name: str
    state: str
    serving: bool
    desired: bool
    """Whether the inventory declares the instance."""
    pending: bool
    """Whether the release that must run is not the active one."""
    status: str = ""
    result: str = ""
    """systemd's reason for a unit that failed, such as start-limit-hit; `success` otherwise."""
    since: str = ""
    """When the unit entered its state, ISO 8601 in UTC; empty for a unit that neither runs nor starts."""
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
    probe: Probe | None = None
    drain: Drain | None = None
    gateways: list[Gateway] = field(default_factory=list)
    swap: Swap | None = None
    left_over: list[str] = field(default_factory=list)
    """What the last swap left undone, although its release serves."""
    leader: str = ""
    """The node that this node follows in a gang; empty if this node leads, or the instance is no gang."""
    gang: GangState | None = None
    """What this node's supervisor reports of the gang; None for an instance on one node."""
    problems: list[str] = field(default_factory=list)


def collect(paths: Paths, names: Sequence[str]) -> list[Status]:
    """The states of the instances. Raises SystemdError."""
    shown = systemd.show(map(unit_name, names), _PROPERTIES)
    now, listed = datetime.now(UTC), _listed_gateways(paths)
    return [_one(paths, name, shown[unit_name(name)], now, listed) for name in names]


def _one(paths: Paths, name: str, unit: dict[str, str], now: datetime, listed: set[str] | None) -> Status:
    problems: list[str] = []
    numbers: dict[str, int | None] = {}
    declared = None
    try:
        declared = files.read_json(paths.instance(name))
        numbers["desired"] = releases.desired_number(paths, name)
        numbers["wanted"] = pins.wanted_number(paths, name)
    except (OSError, ValueError) as error:
        problems.append(str(error))
        numbers["desired"] = numbers["wanted"] = None
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
        pending=numbers["wanted"] is not None and numbers["wanted"] != numbers["active"],
        status="" if _stopped_well(unit) else unit.get("StatusText", ""),
        result=unit.get("Result", ""),
        since=_time(entered) if active in systemd.RUNNING else "",
        restarts=int(unit.get("NRestarts") or 0),
        release=numbers,
        probe=_probe(paths, name, now),
        drain=drains.read(paths, name, now),
        gateways=_gateways(paths, name, listed),
        swap=_swap(paths, name),
        left_over=left_over.still(paths, name),
        problems=problems,
    )
    number = numbers["active"] or numbers["desired"]
    if number is not None:
        try:
            release = releases.load(paths, name, number)
            _describe(result, release)
            if release.gang is not None:
                _describe_gang(result, gangs.read(paths, name), release.gang, active, now)
        except releases.ReleaseError as error:
            problems.append(str(error))
    return result


def _probe(paths: Paths, name: str, now: datetime) -> Probe | None:
    state = probe_state.read(paths, name)
    if state is None:
        return None
    stale = probe_state.stale(state, now)
    return Probe(state.verdict, state.since, state.checked, state.latency_ms, state.detail, stale)


def _swap(paths: Paths, name: str) -> Swap | None:
    found = swaps.read(paths, name)
    return Swap(**{key: getattr(found, key) for key in Swap.__annotations__}) if found else None


def _listed_gateways(paths: Paths) -> set[str] | None:
    """The names by which the gateways of the inventory ask; None if the node has no settings of swaps."""
    try:
        return {asking_name(gateway.name) for gateway in swap_settings.read(paths).gateways}
    except swap_settings.NoSettings:
        return None


def _gateways(paths: Paths, name: str, listed: set[str] | None) -> list[Gateway]:
    """The gateways that ask, and gateways of the inventory that do not ask."""
    now, answers = time.monotonic(), gateway_answers.read(paths, name)
    found = [
        Gateway(each.gateway, each.word, round(now - each.asked, 1))
        for each in answers
        if listed is None or each.gateway in listed or now - each.asked <= SILENT_SECONDS
    ]
    # In the agent's first seconds, a gateway without an answer may not have asked yet. A gateway asks each second: more
    # answers than SILENT_SECONDS show that these seconds are over.
    if listed and any(each.times > SILENT_SECONDS for each in answers):
        found += [Gateway(each, "", None) for each in sorted(listed - {each.gateway for each in answers})]
    return found


def _describe(status: Status, release: Release) -> None:
    for key in ("model", "revision", "image", "address", "port", "container", "accelerator", "gpus"):
        setattr(status, key, getattr(release, key))


def _describe_gang(status: Status, known: GangState | None, gang: Gang, active: str, now: datetime) -> None:
    """Add the gang. A supervisor that does not run has left the state of its last moment."""
    running = status.state in ("serving", "loading", "stopping")
    own = running and known is not None and not gangs.of_last_supervisor(known, active)
    if known is None or not own:
        state = gangs.STOPPED
        me = MemberState(gang.me.node, gang.rank, gang.me.address, state)
        epoch = known.epoch if known else 0
        known = GangState(gang.name, gang.rank, epoch, state, drains.format_time(now), members=(me,))
    status.gang = known
    if own and known.state != gangs.STOPPING:
        status.state = known.state
    if not gang.leads:
        # A follower has no API.
        status.leader = gang.leader.node
        status.port = 0
        status.serving = status.serving and known.state == gangs.SERVING


def _state(active: str, sub: str) -> str:
    """The unit's state in one word."""
    words = {"active": "serving", "activating": "loading", "deactivating": "stopping", "inactive": "stopped"}
    return "restarting" if sub == "auto-restart" else words.get(active, active)


def _stopped_well(unit: Mapping[str, str]) -> bool:
    """Whether a unit was stopped, and its end was no failure.

    systemd keeps the last message of a supervisor. After such a stop, the message is about the stop, such as
    `draining`. After a failure, the message is the reason.
    """
    return unit.get("ActiveState") == "inactive" and unit.get("Result", "success") == "success"


def _time(text: str) -> str:
    """A time of systemctl, @SECONDS, as ISO 8601."""
    seconds = text.removeprefix("@")
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(seconds))) if seconds.isdigit() and int(seconds) else ""


def healthy(statuses: Sequence[Status]) -> bool:
    """Whether every declared instance serves and has no problems, and no recent verdict condemns an instance."""
    return all(
        status.serving and not status.problems and not _condemned(status) for status in statuses if status.desired
    )


def _condemned(status: Status) -> bool:
    return status.probe is not None and not status.probe.stale and status.probe.verdict in health.CONDEMNED


def as_json(statuses: Sequence[Status]) -> dict[str, Any]:
    """The document of `inferctl status --json`."""
    return {"schema": SCHEMA, "healthy": healthy(statuses), "instances": [asdict(status) for status in statuses]}


def as_text(statuses: Sequence[Status]) -> str:
    """A table, and a line for everything that needs attention."""
    header = ("INSTANCE", "STATE", "PROBE", "SINCE", "RESTARTS", "MODEL", "REVISION", "RELEASE", "ADDRESS", "GPUS")
    lines = table.lines([header, *(_row(status) for status in statuses)])
    for status in statuses:
        if status.gang is not None:
            lines += _gang_lines(status.name, status.gang)
        lines += [f"{status.name}: {note}" for note in _notes(status)]
    return "\n".join(lines)


def _row(status: Status) -> tuple[str, ...]:
    number = status.release["active"] or status.release["desired"]
    return (
        status.name,
        status.state,
        _verdict(status),
        status.since or "-",
        str(status.restarts),
        status.model or "-",
        status.revision[:12] or "-",
        "-" if number is None else str(number),
        f"{status.address}:{status.port}" if status.port else "-",
        ",".join(status.gpus) or status.accelerator or "-",
    )


def _gang_lines(name: str, gang: GangState) -> list[str]:
    """A line for the gang, and a line for each member that this node knows."""
    role = "leads" if gang.leads else f"follows with rank {gang.rank} in"
    rows = [(f"  {each.node}", f"rank {each.rank}", each.address, each.state, each.detail) for each in gang.members]
    return [
        f"{name}: this node {role} the gang, epoch {gang.epoch}: {gang.state} since {gang.since}",
        *table.lines(rows),
    ]


def _verdict(status: Status) -> str:
    """The agent's verdict in one word, and whether the instance is drained."""
    verdict = "-" if status.probe is None else "stale" if status.probe.stale else status.probe.verdict
    return f"{verdict}, drained" if status.drain else verdict


def _swap_words(name: str, swap: Swap) -> str:
    if swap.step == swaps.STUCK:
        return (
            f"the swap to release {swap.target} is stuck, requests stay away: {swap.failure}. Correct that, then run"
            f" inferctl swap {name} --to {swap.origin if swap.origin is not None else swap.target}"
        )
    if swap.step == swaps.DAMAGED:
        release = "RELEASE" if swap.origin is None else swap.origin
        return f"{swap.failure}. Requests may stay away until: inferctl swap {name} --to {release}"
    if swap.step == swaps.LED:
        return f"the swap to release {swap.target} was cut off: run baremetal.inference.update_model again"
    way = f"back to release {swap.origin} ({swap.failure})" if swap.returning else f"to release {swap.target}"
    step = f"{swap.step}, which has failed {swap.tries} times," if swap.tries else f"{swap.step},"
    return f"is swapped {way}, step {step} since {swap.since}: journalctl -fu {swap_unit(name)}"


def _since(seconds: float | None) -> str:
    """How long a gateway has been silent."""
    if seconds is not None:
        return f"for {seconds:.0f} s"
    return f"for {gateway_answers.FORGET_SECONDS / 60:.0f} minutes, or since inference-agent started"


def _notes(status: Status) -> list[str]:
    notes = list(status.problems)
    if status.status and not status.serving:
        notes.append(status.status)
    if status.swap:
        notes.append(_swap_words(status.name, status.swap))
    notes += status.left_over
    if status.drain:
        # A drain of recovery belongs to an open breaker, so it ends by --reset.
        given_up = status.drain.owner == drains.RECOVERY
        verb = f"recover {status.name} --reset" if given_up else f"undrain {status.name}"
        notes.append(f"{status.drain} (inferctl {verb})")
    if status.probe and status.probe.stale:
        notes.append(f"was last probed at {status.probe.checked}: systemctl status inference-agent")
    elif status.serving and status.probe and status.probe.verdict not in (health.HEALTHY, health.STARTING):
        notes.append(f"{status.probe.verdict} since {status.probe.since}: {status.probe.detail}")
    notes += [
        f"gateway {gateway.name} has not checked this instance {_since(gateway.seconds)}: it has"
        " stopped, or does not reach this node. If it was removed, run baremetal.inference.site for this node"
        for gateway in status.gateways
        if gateway.seconds is None or gateway.seconds > SILENT_SECONDS
    ]
    if status.state == "failed":
        unit = unit_name(status.name)
        notes.append(
            f"systemd no longer restarts it ({status.result}): systemctl reset-failed {unit}; systemctl start {unit}"
        )
    if status.desired and status.state not in ("serving", "loading") and not (status.gang and status.status):
        notes.append(f"does not serve: journalctl -t vllm@{status.name}; journalctl -u vllm@{status.name}")
    if instance := bridged_instance(status.name):
        notes.append(
            f"is the bridge of {instance} for an update: the swap, or the next baremetal.inference.update_model,"
            " removes it"
        )
    elif not status.desired:
        notes.append("is not in the inventory")
    numbers = status.release
    if status.pending and numbers["active"] is not None:
        notes.append(f"release {numbers['wanted']} is pending: run baremetal.inference.update_model to swap to it")
    if numbers["active"] is not None and numbers["current"] != numbers["active"] and status.serving:
        notes.append(f"release {numbers['active']} serves, but is not yet marked as proven")
    return notes
