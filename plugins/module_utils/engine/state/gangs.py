# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a gang, as this node's supervisor sees it, on disk. Private to the collection.

The leader's file has the states of all members, a follower's file its own state and that of its leader.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ...core import files
from ...core.paths import Paths
from ...core.records import ill_typed
from . import releases

SCHEMA = 1

MISSING, REFUSED, WAITING, LOADING, SERVING, STOPPING, LEAVING, ENDED, STOPPED = (
    *("missing", "refused", "waiting", "loading", "serving"),
    *("stopping", "leaving", "ended", "stopped"),
)
"""States of a member. `missing`: no connection; for a follower about itself, no connection to its leader. `refused`:
the leader does not accept the member. `waiting`: the member is there, and other members are not. `leaving`: the
member's unit is being stopped, and the gang ends with it. `ended`: the engine ended, and the gang with it."""

STATES = (MISSING, REFUSED, WAITING, LOADING, SERVING, STOPPING, LEAVING, ENDED, STOPPED)

PRESENT = frozenset({WAITING, LOADING, SERVING, STOPPING})
"""States of a member that takes part."""

WITHOUT_ENGINE = frozenset({MISSING, REFUSED, WAITING, STOPPED})
"""States of a member in which its engine must not run."""


@dataclass(frozen=True)
class MemberState:
    """A member of a gang. `detail` says why the member is not there."""

    node: str
    rank: int
    address: str
    state: str
    detail: str = ""
    active: int = 0
    current: int = 0
    desired: int = 0
    """The releases of a follower, by its own numbers; 0: none. Only the leader's file has them."""
    releases: str = ""
    """Number and first digits of the gang digest of each release that a follower keeps, as `3:0123456789ab 4:…`."""


@dataclass(frozen=True)
class GangState:
    """A gang. Times are ISO 8601 in UTC."""

    instance: str
    rank: int
    """The rank of this node."""
    epoch: int
    """The number of the gang's present or last start, as counted by the leader."""
    state: str
    """The state of this node's member."""
    since: str
    """When `state` last changed."""
    detail: str = ""
    planned: bool = False
    """Whether the last end was asked for."""
    members: tuple[MemberState, ...] = ()
    """By rank. A follower's file has only the follower itself and its leader."""

    @property
    def leads(self) -> bool:
        return self.rank == 0

    @property
    def absent(self) -> tuple[MemberState, ...]:
        """The members that do not take part."""
        return tuple(member for member in self.members if member.state not in PRESENT)

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}


def read(paths: Paths, name: str) -> GangState | None:
    """The last state; None where the instance is no gang, or the file is missing or damaged."""
    try:
        value = files.read_json(paths.gang(name))
        return _from_json(value)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def of_last_supervisor(known: GangState, active: str) -> bool:
    """Whether a record says `serving` although the unit, whose ActiveState is `active`, does not serve.

    The supervisor that wrote the record then ended without a last write, such as by a loss of power. The next
    supervisor has not written yet.
    """
    return known.state == SERVING and active in ("activating", "inactive", "failed")


def follows(paths: Paths, name: str) -> bool:
    """Whether an instance of this node is a follower of a gang: it has no API, so nothing probes it."""
    return leader(paths, name) != ""


def leader(paths: Paths, name: str) -> str:
    """The node that an instance of this node follows; empty if the instance leads a gang, or is no gang.

    The active release counts, or the desired release before the first start. Empty where the release is unreadable.
    """
    try:
        number = releases.active_number(paths, name) or releases.desired_number(paths, name)
        release = releases.load(paths, name, number) if number is not None else None
    except (OSError, ValueError, releases.ReleaseError):
        return ""
    return "" if release is None or release.gang is None or release.gang.leads else release.gang.leader.node


def ended_as_planned(paths: Paths, name: str) -> bool:
    """Whether the last end of a gang was asked for. False where the instance is no gang."""
    state = read(paths, name)
    return state is not None and state.planned


def _from_json(value: Mapping[str, Any] | None) -> GangState | None:
    if value is None or value["schema"] != SCHEMA:
        return None
    members = tuple(MemberState(**member) for member in value["members"])
    known = {key: value[key] for key in GangState.__annotations__ if key != "members"}
    state = GangState(**known, members=members)
    states = [state.state, *(member.state for member in members)]
    sound = not any(map(ill_typed, (state, *members))) and all(each in STATES for each in states)
    return state if sound else None
