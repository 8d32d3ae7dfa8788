# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drains and maintenance inhibit alerts. Their own alerts reach only receivers with a route for them."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fleet import Fleet
from node import Node, start_playbook, wait_for
from repository import Package, Repository
from watcher import Watcher

EXPORTER = "prometheus-node-exporter.service"

# Rules that always fire: the installed rules need a fault first. Alertmanager keeps alerts of an earlier run for
# minutes, and would not send them again: the label `run` makes them new. For seconds after a reload, Prometheus has
# no Alertmanager, and sends an alert again only after a minute: so `for` is longer.
RULES = """
groups:
  - name: tests
    rules:
      - alert: EngineThere
        expr: up{job="engine"} == 1
        for: 10s
        labels: {severity: warning, scope: instance, run: "@run"}
      - alert: NodeThere
        expr: up{job="node"} == 1
        for: 10s
        labels: {severity: critical, scope: node, run: "@run"}
"""

ALWAYS = ("EngineThere", "NodeThere")

MAINTENANCE = "baremetal.inference.maintenance"

# The update of the package lasts until the test ends it, five minutes at most.
POSTINST = "for i in $(seq 300); do [ ! -e /root/go-on ] || exit 0; sleep 1; done"


def test_an_exporter_that_dies_comes_back_by_itself(deb13: Node) -> None:
    pid = deb13.run(f"systemctl show --value --property=MainPID {EXPORTER}")
    deb13.run(f"kill -KILL {pid}")
    wait_for("the exporter is back", lambda: deb13.run(f"systemctl is-active {EXPORTER}", check=False) == "active", 30)
    assert deb13.run(f"systemctl show --value --property=MainPID {EXPORTER}") != pid


def release(watcher: Watcher, node: Node) -> int:
    """The release in the labels of a node's engine; for some seconds, none, or also the release before."""
    found = watcher.query(f'up{{job="engine",node="{node.name}"}}')
    return max((int(series["metric"]["release"]) for series in found), default=0)


@pytest.mark.full
def test_an_update_sends_only_notifications_of_severity_info_and_prometheus_gets_the_release(
    watcher: Watcher, deb12: Node, deb13: Node
) -> None:
    """Update the engine of one node. The run includes the other node as gateway and monitoring host."""
    fleet = Fleet(deb12, (deb12, deb13), key="monitoring-load-key-7e20")
    fleet.wait_up()
    flags = {"dtype": "float32", "max-model-len": 512, "enforce-eager": True}
    requests = f"{{{{ 3 if inventory_hostname == '{deb13.name}' else 2 }}}}"
    model = {"model": "controller:{{ demo_cache }}/models/tiny-a", "max-num-seqs": requests, **flags}
    drained = ("InstanceDrained", deb13.name)
    served, before, began = release(watcher, deb13), watcher.fired(), time.time()
    watcher.listen()
    try:
        fleet.update(models={"tiny-a": model})
        raised = watcher.raised(began, before)
        assert drained in raised and (drained[0], deb12.name) not in raised
        wait_for("the drain has ended", lambda: drained not in watcher.fired(), 60)
        wait_for("Prometheus has the release", lambda: release(watcher, deb13) > served, 60)
    finally:
        # Back to the release that the inventory asks for: other tests need it.
        fleet.update()
    wait_for("the drain has ended", lambda: drained not in watcher.fired(), 60)
    assert set(watcher.delivered_since(began, before).values()) <= {"info"}


@pytest.fixture(scope="module")
def with_rules(watcher: Watcher, deb12: Node, deb13: Node) -> Iterator[Watcher]:
    """Prometheus loads the site's rules without a restart, and their alerts reach the receiver."""
    pid = watcher.node.run("systemctl show --value --property=MainPID prometheus.service")
    watcher.listen()
    run = str(int(time.time()))
    watcher.playbook(monitoring_extra_rules={"tests.yml": RULES.replace("@run", run)})
    assert set(ALWAYS) <= watcher.rules()
    assert watcher.node.run("systemctl show --value --property=MainPID prometheus.service") == pid
    both = {(name, node.name) for name in ALWAYS for node in (deb12, deb13)}
    wait_for(
        "the receiver gets the alert",
        lambda: (
            both
            == {
                (labels["alertname"], labels["node"])
                for labels in watcher.delivered_labels(*ALWAYS)
                if labels.get("run") == run
            }
        ),
        90,
    )
    yield watcher
    watcher.playbook()
    assert not set(ALWAYS) & watcher.rules()
    # Two rounds after a rule was removed, Prometheus ends its series.
    wait_for("the alerts have ended", lambda: not set(ALWAYS) & {name for name, _node in watcher.fired()}, 90)


def test_alerts_of_a_drained_instance_are_inhibited_until_it_serves_again(
    with_rules: Watcher, deb12: Node, deb13: Node
) -> None:
    watcher = with_rules
    none_inhibited = dict.fromkeys(((name, node.name) for name in ALWAYS for node in (deb12, deb13)), False)
    expected = none_inhibited | {("EngineThere", deb13.name): True}
    before, began = watcher.fired(), time.time()
    watcher.listen()
    deb13.run("inferctl drain main --reason test")
    try:
        wait_for("one alert is inhibited", lambda: watcher.inhibited(*ALWAYS) == expected, 90)
        assert watcher.raised(began, before) == {("InstanceDrained", deb13.name)}
        (labels,) = wait_for("the receiver gets the alert", lambda: watcher.delivered_labels("InstanceDrained"), 90)
        assert labels.items() >= {"node": deb13.name, "instance_name": "main", "severity": "info"}.items()
    finally:
        deb13.run("inferctl undrain main")
    wait_for("no alert is inhibited", lambda: watcher.inhibited(*ALWAYS) == none_inhibited, 90)
    assert ("InstanceDrained", deb13.name) not in watcher.fired()
    assert wait_for(
        "the receiver gets the end", lambda: watcher.delivered_labels("InstanceDrained", status="resolved"), 90
    )


@contextmanager
def maintained(node: Node, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A node during an update of packages by maintenance.yml."""
    # Newer than the packages of an earlier run.
    repository, version = Repository(node, "Slow"), int(time.time())
    repository.publish([Package("slow", str(version))])
    node.run("apt-get -qq install --yes slow; rm -f /root/go-on")
    repository.publish([Package("slow", str(version + 1), scripts={"postinst": POSTINST})])
    given = {"maintenance_security_labels": ["localhost"], "maintenance_lists_seconds": 0}
    process = start_playbook(node.name, MAINTENANCE, log, **given)
    try:
        yield process
    finally:
        node.run("touch /root/go-on")
        assert process.wait(300) == 0, log.read_text()[-3000:]
        repository.remove()


@pytest.mark.full
def test_alerts_of_a_node_are_inhibited_until_its_maintenance_ends(
    with_rules: Watcher, deb12: Node, deb13: Node, tmp_path: Path
) -> None:
    watcher = with_rules
    none_inhibited = dict.fromkeys(((name, node.name) for name in ALWAYS for node in (deb12, deb13)), False)
    expected = none_inhibited | {(name, deb13.name): True for name in ALWAYS}
    before, began = watcher.fired(), time.time()
    watcher.listen()
    with maintained(deb13, tmp_path / "log") as process:
        wait_for(
            "the alerts of one node are inhibited",
            lambda: process.poll() is not None or watcher.inhibited(*ALWAYS) == expected,
            180,
        )
        assert process.poll() is None, "the maintenance has ended already"
    wait_for("no alert is inhibited", lambda: watcher.inhibited(*ALWAYS) == none_inhibited, 60)
    raised = {("NodeInMaintenance", deb13.name), ("InstanceDrained", deb13.name)}
    assert watcher.raised(began, before) == raised
    assert not raised & watcher.fired()
    # Without a route, alerts of severity info reach no receiver.
    assert not watcher.delivered_labels("NodeInMaintenance")


@pytest.mark.full
def test_the_heartbeat_is_sent_repeatedly(watcher: Watcher) -> None:
    watcher.listen()
    heartbeats = wait_for(
        "two calls", lambda: len(calls := watcher.delivered_labels("MonitoringHeartbeat")) >= 2 and calls, 240
    )
    assert heartbeats[0]["severity"] == "none"
