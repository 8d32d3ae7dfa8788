# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of an instance, for a playbook that is about to disturb its node. Private to the collection."""

from __future__ import annotations

from datetime import datetime

from ...core import files, systemd
from ...core.paths import Paths, unit_name
from .. import endpoints, load_time
from ..instance_facts import InstanceFacts
from ..probe import health
from . import drains, probe_state, releases, swaps


def of(paths: Paths, name: str, now: datetime) -> InstanceFacts:
    """The facts of an instance. Raises SystemdError, OSError, and ValueError where the instance's state is damaged."""
    active = releases.active_number(paths, name)
    drain = drains.read(paths, name, now)
    return InstanceFacts(
        name=name,
        model=_model(paths, name, active),
        release=active,
        serving=serving(paths, name, now),
        running=systemd.active_state(unit_name(name)) in systemd.RUNNING,
        swapping=swaps.read(paths, name) is not None,
        drained_by=drain.owner if drain else "",
        drain_reason=drain.reason if drain else "",
        load_seconds=load_time.seconds(name),
        endpoints=endpoints.in_use(paths, name),
        adapters=_adapters(paths, name, active),
    )


def serving(paths: Paths, name: str, now: datetime) -> bool:
    """Whether clients get answers from an instance. Raises SystemdError."""
    if systemd.active_state(unit_name(name)) != "active":
        return False
    state = probe_state.read(paths, name)
    # Without a recent probe, an active unit counts as serving.
    return state is None or probe_state.stale(state, now) or state.verdict in health.SERVING | {health.UNKNOWN}


def _adapters(paths: Paths, name: str, active: int | None) -> tuple[str, ...]:
    """The LoRA adapters of the installed release."""
    try:
        return tuple(releases.load(paths, name, active).lora) if active is not None else ()
    except releases.ReleaseError:
        return ()


def _model(paths: Paths, name: str, active: int | None) -> str:
    """The model that the instance serves, or must serve; empty where unknown."""
    try:
        if active is not None:
            return releases.load(paths, name, active).model
    except releases.ReleaseError:
        # An instance with a damaged release can be removed all the same.
        pass
    state = files.read_json(paths.instance(name))
    return str(state.get("model", "")) if isinstance(state, dict) else ""
