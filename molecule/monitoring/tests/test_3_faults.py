# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fault on a real node raises the alert that is meant for it and no other; somebody is told of it, and of its end.

By the rules as they are shipped, and so in their own time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import pytest
from node import Node, wait_for
from watcher import Watcher

TEXTFILE = "/var/lib/prometheus/node-exporter/inference-state.prom"
METRICS = "inference-metrics@node"
EXPORTER = "prometheus-node-exporter.service"


@dataclass(frozen=True)
class Fault:
    """What is done to a node, and who must hear of it."""

    alert: str
    severity: str
    breaks: str
    mends: str
    labels: dict[str, str] = field(default_factory=dict)
    """What else the alert says, beside the node."""
    seconds: float = 60
    """Until somebody is told: the rule's own time, three rounds of questions, and a busy machine's."""


FAULTS = (
    # Two probes without a token; nobody restarts it, for recovery is disarmed here.
    Fault(
        "EngineHung",
        "critical",
        "pkill -STOP -f VLLM::EngineCor[e]",
        "pkill -CONT -f VLLM::EngineCor[e]",
        {"instance_name": "main", "scope": "instance"},
        90,
    ),
    Fault(
        "BackupFailed",
        "warning",
        "mv /srv/own /srv/away; systemctl start inference-backup.service || true",
        "mv /srv/away /srv/own; systemctl start inference-backup.service",
        {"exported_job": "backup", "scope": "node"},
    ),
    Fault(
        "NodeDiskFull",
        "critical",
        "mkdir /srv/full; mount -t tmpfs -o size=8m full /srv/full; fallocate --length 7900K /srv/full/file",
        "rm /srv/full/file",
        {"mountpoint": "/srv/full", "scope": "node"},
        120,
    ),
    Fault(
        "NodeExporterDown",
        "warning",
        f"systemctl mask --runtime --now {EXPORTER}",
        f"systemctl unmask --runtime {EXPORTER}; systemctl start {EXPORTER}",
        {"job": "node", "scope": "node"},
        180,
    ),
    # As if it had been so for the five minutes that the rule allows for.
    Fault(
        "TextfileStale",
        "warning",
        f"systemctl stop {METRICS}.timer {METRICS}.service; touch --date '-5 minutes' {TEXTFILE}",
        f"systemctl start {METRICS}.timer {METRICS}.service",
        {"file": TEXTFILE, "scope": "node"},
        180,
    ),
)

QUICK = ("EngineHung", "BackupFailed")
"""Those whose rules wait for nothing."""

NEVERTHELESS = {
    "MonitoringHeartbeat": "it always fires: somebody outside misses it when it does not",
    "NotificationsFail": "nobody listened until these tests did, and it remembers that for a quarter of an hour",
    "NodeClockOff": "a container's clock is its host's, and nobody may set that one",
    "NodeRebooted": "a container tells of its host's boot",
}
"""What fires though nothing is wrong, and why: nodes that are containers, and a receiver that came later."""


def test_nothing_else_fires_while_nothing_is_wrong(watcher: Watcher) -> None:
    assert {name for name, _node in watcher.fired()} <= set(NEVERTHELESS)


@pytest.mark.parametrize(
    "fault",
    [pytest.param(fault, marks=[] if fault.alert in QUICK else pytest.mark.full, id=fault.alert) for fault in FAULTS],
)
def test_a_fault_raises_its_alert_alone(fault: Fault, watcher: Watcher, saved: Node) -> None:
    before, began = watcher.fired(), time.time()
    watcher.listen()
    saved.run(fault.breaks)
    try:
        (labels,) = wait_for(f"somebody is told of {fault.alert}", lambda: watcher.told_of(fault.alert), fault.seconds)
        took = time.time() - began
    finally:
        saved.run(fault.mends)
    assert labels.items() >= {"node": saved.name, "severity": fault.severity, **fault.labels}.items()
    wait_for("somebody is told of the end", lambda: watcher.told_of(fault.alert, status="resolved"), 120)
    print(f"{fault.alert}: told after {took:.0f} s, and of its end {time.time() - began - took:.0f} s later")
    assert watcher.raised(began, before) == {(fault.alert, saved.name)}
    assert watcher.news(began, before) == {fault.alert: fault.severity}


@pytest.fixture(autouse=True)
def tidy(deb13: Node) -> None:
    deb13.run("umount /srv/full; rmdir /srv/full", check=False)
