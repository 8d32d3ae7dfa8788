# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent's verdicts as metrics for node_exporter's textfile collector. Private to the collection; pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..core.exposition import Samples
from ..engine.probe.health import VERDICTS


@dataclass(frozen=True)
class InstanceMetrics:
    """Metrics of an instance. Times are in seconds since 1970; None if there is none."""

    name: str
    verdict: str
    stale: bool
    drained: bool
    drained_since: float | None = None
    since: float | None = None
    checked: float | None = None
    latency: float | None = None
    """Latency of the last probe, in seconds; None if this probe failed."""
    swap: str = ""
    """The step of a swap that is under way or stuck; empty if there is none."""
    swap_since: float | None = None


_HELP = {
    "inference_agent_timestamp_seconds": "When the agent last wrote this file.",
    "inference_probe_verdict": "1 for the verdict of the instance's last probe.",
    "inference_probe_stale": "1 if the last verdict is too old to count. Gateways then get the answer 'up', or 'drain'"
    " if the instance is drained.",
    "inference_probe_since_timestamp_seconds": "When the verdict last changed.",
    "inference_probe_timestamp_seconds": "When the last probe ended.",
    "inference_probe_latency_seconds": "Time until the answer of the last probe. Missing if this probe failed.",
    "inference_drained": "1 if the instance is drained.",
    "inference_drained_since_timestamp_seconds": "When the drain in force was recorded.",
    "inference_swap": "1 for the step of a swap that is under way, or stuck.",
    "inference_swap_since_timestamp_seconds": "When the swap that is under way, or stuck, began.",
    "inference_lock_held": "1 while a playbook or inferctl swap changes what serves on this node.",
    "inference_lock_stale": "1 if a playbook or inferctl swap was cut off and has left its lock.",
    "inference_lock_info": "1 for the playbook, or inferctl swap, that holds the lock, stale or not.",
}


@dataclass(frozen=True)
class LockMetrics:
    """Metrics of the node's lock. The playbook is empty if the lock is free."""

    playbook: str = ""
    stale: bool = False


UNLOCKED = LockMetrics()
"""The lock is free."""


def render(instances: Iterable[InstanceMetrics], now: float, lock: LockMetrics = UNLOCKED) -> str:
    """The text of the metrics file."""
    samples = Samples(_HELP)
    samples.add("inference_agent_timestamp_seconds", round(now))
    # Without a label, so that the last value before a reboot belongs to the same series as later ones.
    samples.add("inference_lock_held", bool(lock.playbook) and not lock.stale)
    samples.add("inference_lock_stale", lock.stale)
    samples.add("inference_lock_info", 1 if lock.playbook else None, playbook=lock.playbook)
    for one in instances:
        for verdict in VERDICTS:
            samples.add("inference_probe_verdict", verdict == one.verdict, name=one.name, verdict=verdict)
        samples.add("inference_probe_stale", one.stale, name=one.name)
        samples.add("inference_probe_since_timestamp_seconds", one.since, name=one.name)
        samples.add("inference_probe_timestamp_seconds", one.checked, name=one.name)
        samples.add("inference_probe_latency_seconds", one.latency, name=one.name)
        samples.add("inference_drained", one.drained, name=one.name)
        samples.add("inference_drained_since_timestamp_seconds", one.drained_since, name=one.name)
        samples.add("inference_swap", 1 if one.swap else None, name=one.name, step=one.swap)
        samples.add("inference_swap_since_timestamp_seconds", one.swap_since, name=one.name)
    return samples.text()
