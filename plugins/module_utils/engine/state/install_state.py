# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of an instance, for a playbook that is about to change its node. Private to the collection."""

from __future__ import annotations

from datetime import datetime

from ...core import files, systemd
from ...core.paths import Paths, unit_name
from .. import endpoints, load_time, task
from ..instance_facts import InstanceFacts
from ..probe import health
from ..release import Release
from . import drains, probe_state, releases, swaps


def of(paths: Paths, name: str, now: datetime) -> InstanceFacts:
    """The facts of an instance. Raises SystemdError, OSError, and ValueError where the instance's state is damaged."""
    active = releases.active_number(paths, name)
    drain = drains.read(paths, name, now)
    release = _release(paths, name, active)
    return InstanceFacts(
        name=name,
        model=release.model if release else _declared_model(paths, name),
        release=active,
        serving=serving(paths, name, now),
        running=systemd.active_state(unit_name(name)) in systemd.RUNNING,
        swapping=swaps.read(paths, name) is not None,
        drained_by=drain.owner if drain else "",
        drain_reason=drain.reason if drain else "",
        load_seconds=load_time.seconds(name),
        endpoints=endpoints.in_use(paths, name),
        adapters=tuple(release.lora) if release else (),
        tasks=task.certain(release) if release else (),
        gang=release.nodes if release else (),
    )


def serving(paths: Paths, name: str, now: datetime) -> bool:
    """Whether an instance serves: its unit is active, and no recent verdict is against it. Raises SystemdError."""
    if systemd.active_state(unit_name(name)) != "active":
        return False
    state = probe_state.read(paths, name)
    # Without a recent probe, an active unit counts as serving.
    return state is None or probe_state.stale(state, now) or state.verdict in health.SERVING | {health.UNKNOWN}


def _release(paths: Paths, name: str, active: int | None) -> Release | None:
    """The active release; None before the first start.

    None also for a damaged release: its instance can be removed all the same.
    """
    try:
        return releases.load(paths, name, active) if active is not None else None
    except releases.ReleaseError:
        return None


def _declared_model(paths: Paths, name: str) -> str:
    """The model that the instance must serve; empty where unknown."""
    state = files.read_json(paths.instance(name))
    return str(state.get("model", "")) if isinstance(state, dict) else ""
