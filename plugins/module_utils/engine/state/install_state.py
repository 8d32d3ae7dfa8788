# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How an instance stands, for a playbook that is about to disturb its node. Private to the collection."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ...core import files, systemd
from ...core.paths import Paths, unit_name
from .. import load_time
from ..probe import health
from . import drains, probe_state, releases, swaps


@dataclass(frozen=True)
class Standing:
    """One instance. `release` is the number of the one that is installed, None before the first start."""

    name: str
    model: str
    release: int | None
    serving: bool
    running: bool
    """Whether systemd runs it, or brings it up."""
    swapping: bool
    """Whether an update is at it, or was when it was cut off."""
    drained_by: str
    drain_reason: str
    load_seconds: float | None
    """How long it took to load, where that is known."""


def of(paths: Paths, name: str, now: datetime) -> Standing:
    """Raises SystemdError, OSError, and ValueError where the instance's state is damaged."""
    active = releases.active_number(paths, name)
    drain = drains.read(paths, name, now)
    return Standing(
        name=name,
        model=_model(paths, name, active),
        release=active,
        serving=serving(paths, name, now),
        running=systemd.active_state(unit_name(name)) in systemd.RUNNING,
        swapping=swaps.read(paths, name) is not None,
        drained_by=drain.owner if drain else "",
        drain_reason=drain.reason if drain else "",
        load_seconds=load_time.seconds(name),
    )


def serving(paths: Paths, name: str, now: datetime) -> bool:
    """Whether clients get answers from it. Raises SystemdError."""
    if systemd.active_state(unit_name(name)) != "active":
        return False
    state = probe_state.read(paths, name)
    # What nobody has probed is not condemned.
    return state is None or probe_state.stale(state, now) or state.verdict in health.SERVING | {health.UNKNOWN}


def _model(paths: Paths, name: str, active: int | None) -> str:
    """What it serves, or else shall serve; empty where nobody knows."""
    try:
        if active is not None:
            return releases.load(paths, name, active).model
    except releases.ReleaseError:
        # A damaged release keeps nobody from being taken away.
        pass
    state = files.read_json(paths.instance(name))
    return str(state.get("model", "")) if isinstance(state, dict) else ""
