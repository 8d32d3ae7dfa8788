# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Somebody is told what they must act on, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from node import Node, wait_for
from watcher import Watcher

EXPORTER = "prometheus-node-exporter.service"
DEAD = "NodeExporterDown"
"""The alert of a node whose exporter is gone."""

# As the shipped rules do it, on what is always true here.
RULES = """
groups:
  - name: tests
    rules:
      - alert: InstanceDrained
        expr: label_replace(inference_drained, "instance_name", "$1", "name", "(.+)") == 1
        labels: {severity: info, scope: instance}
      - alert: Asleep
        expr: up{job="engine"} == 1
        labels: {severity: warning, scope: instance}
"""


def firing(watcher: Watcher, name: str, status: str = "firing") -> list[dict[str, str]]:
    """The labels of every alert of a name that somebody was told of."""
    return [
        alert["labels"]
        for alert in watcher.told()
        if alert["labels"]["alertname"] == name and alert["status"] == status
    ]


def test_an_exporter_that_dies_comes_back_by_itself(deb13: Node) -> None:
    pid = deb13.run(f"systemctl show --value --property=MainPID {EXPORTER}")
    deb13.run(f"kill -KILL {pid}")
    wait_for("it is back", lambda: deb13.run(f"systemctl is-active {EXPORTER}", check=False) == "active", 30)
    assert deb13.run(f"systemctl show --value --property=MainPID {EXPORTER}") != pid


def test_an_exporter_that_stays_dead_is_told_of_and_its_return_too(watcher: Watcher, deb13: Node) -> None:
    watcher.listen()
    deb13.run(f"systemctl mask --runtime --now {EXPORTER}")
    try:
        (labels,) = wait_for("somebody is told", lambda: firing(watcher, DEAD), 240)
        assert (labels["node"], labels["job"], labels["scope"]) == (deb13.name, "node", "node")
    finally:
        deb13.run(f"systemctl unmask --runtime {EXPORTER} && systemctl start {EXPORTER}")
    wait_for("somebody is told of the end", lambda: firing(watcher, DEAD, "resolved"), 120)


@pytest.fixture
def with_rules(watcher: Watcher) -> Iterator[Watcher]:
    """Rules of the site, which are loaded without a restart."""
    pid = watcher.node.run("systemctl show --value --property=MainPID prometheus.service")
    watcher.playbook(monitoring_extra_rules={"tests.yml": RULES})
    assert "Asleep" in watcher.rules()
    assert watcher.node.run("systemctl show --value --property=MainPID prometheus.service") == pid
    yield watcher
    watcher.playbook()
    assert "Asleep" not in watcher.rules()


def test_a_drained_instance_is_quiet_until_it_serves_again(with_rules: Watcher, deb12: Node, deb13: Node) -> None:
    watcher = with_rules
    watcher.listen()
    told = wait_for(
        "of both", lambda: {one["node"] for one in firing(watcher, "Asleep")} == {deb12.name, deb13.name}, 60
    )
    assert told
    deb13.run("inferctl drain main --reason test")

    def quiet() -> dict[str, bool]:
        found = [alert for alert in watcher.alerts() if alert["labels"]["alertname"] == "Asleep"]
        return {alert["labels"]["node"]: bool(alert["status"]["inhibitedBy"]) for alert in found}

    try:
        wait_for("one is quiet", lambda: quiet() == {deb12.name: False, deb13.name: True}, 90)
        # What only informs reaches nobody.
        assert not firing(watcher, "InstanceDrained")
    finally:
        deb13.run("inferctl undrain main")
    wait_for("none is quiet", lambda: quiet() == {deb12.name: False, deb13.name: False}, 90)
