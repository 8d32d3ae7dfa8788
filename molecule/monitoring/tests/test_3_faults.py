# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fault on a node raises its own alert and no other alert. The receiver gets the alert and its end.

The tests use the installed rules with their real times.
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
    """A fault of a node, and the alert that the receiver must get."""

    alert: str
    severity: str
    breaks: str
    mends: str
    labels: dict[str, str] = field(default_factory=dict)
    """Labels of the alert, besides the node."""
    seconds: float = 60
    """Limit in seconds for the notification: the rule's time, three scrapes, and the delay of a busy machine."""


FAULTS = (
    # The alert fires after two probes without a token. Recovery is disarmed, so the engine is not restarted.
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
    # The state looks five minutes old, which is the time in the rule.
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
"""Alerts whose rules have no waiting time."""

WITHOUT_A_FAULT = {
    "MonitoringHeartbeat": "the heartbeat always fires",
    "NotificationsFail": "the receiver started with these tests; the alert lasts a quarter of an hour",
    "NodeClockOff": "the host sets the clock of a container",
    "NodeRebooted": "a container reports the boot of its host",
}
"""Alerts that fire without a fault, with the reason: the nodes are containers, and the receiver starts late."""


def test_without_a_fault_only_the_expected_alerts_fire(watcher: Watcher) -> None:
    assert {name for name, _node in watcher.fired()} <= set(WITHOUT_A_FAULT)


@pytest.mark.parametrize(
    "fault",
    [pytest.param(fault, marks=[] if fault.alert in QUICK else pytest.mark.full, id=fault.alert) for fault in FAULTS],
)
def test_a_fault_raises_its_alert_alone(fault: Fault, watcher: Watcher, saved: Node) -> None:
    before, began = watcher.fired(), time.time()
    watcher.listen()
    saved.run(fault.breaks)
    try:
        (labels,) = wait_for(
            f"the receiver gets {fault.alert}", lambda: watcher.delivered_labels(fault.alert), fault.seconds
        )
        took = time.time() - began
    finally:
        saved.run(fault.mends)
    assert labels.items() >= {"node": saved.name, "severity": fault.severity, **fault.labels}.items()
    wait_for(
        "the receiver gets the end of the alert", lambda: watcher.delivered_labels(fault.alert, status="resolved"), 120
    )
    print(f"{fault.alert}: received after {took:.0f} s, its end {time.time() - began - took:.0f} s later")
    assert watcher.raised(began, before) == {(fault.alert, saved.name)}
    assert watcher.delivered_since(began, before) == {fault.alert: fault.severity}


@pytest.fixture(autouse=True)
def tidy(deb13: Node) -> None:
    deb13.run("umount /srv/full; rmdir /srv/full", check=False)
