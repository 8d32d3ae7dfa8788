# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is known to be at rest, or worked on, is told to nobody who does not ask for it."""

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

# On what is always true here: what the shipped rules are about must be broken first. Alertmanager knows alerts of an
# earlier run for minutes, and would not tell of them again: `run` makes them new. A reload forgets for seconds where
# Alertmanager is, and what fires at once is sent again after a minute: `for` is longer.
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

# An update that takes as long as the test wants, five minutes at most.
POSTINST = "for i in $(seq 300); do [ ! -e /root/go-on ] || exit 0; sleep 1; done"


def test_an_exporter_that_dies_comes_back_by_itself(deb13: Node) -> None:
    pid = deb13.run(f"systemctl show --value --property=MainPID {EXPORTER}")
    deb13.run(f"kill -KILL {pid}")
    wait_for("it is back", lambda: deb13.run(f"systemctl is-active {EXPORTER}", check=False) == "active", 30)
    assert deb13.run(f"systemctl show --value --property=MainPID {EXPORTER}") != pid


def release(watcher: Watcher, node: Node) -> int:
    """The release that Prometheus knows a node's engine by; for some seconds, none or the one before as well."""
    found = watcher.query(f'up{{job="engine",node="{node.name}"}}')
    return max((int(series["metric"]["release"]) for series in found), default=0)


@pytest.mark.full
def test_an_update_is_told_to_nobody_and_moves_the_release(watcher: Watcher, deb12: Node, deb13: Node) -> None:
    """Of the engine on one node. The other node is in the run as the gateway and the monitoring host."""
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
        wait_for("it serves again", lambda: drained not in watcher.fired(), 60)
        wait_for("Prometheus knows the release", lambda: release(watcher, deb13) > served, 60)
    finally:
        # What the inventory asks for: other tests count on it.
        fleet.update()
    wait_for("it serves again", lambda: drained not in watcher.fired(), 60)
    assert set(watcher.news(began, before).values()) <= {"info"}


@pytest.fixture(scope="module")
def with_rules(watcher: Watcher, deb12: Node, deb13: Node) -> Iterator[Watcher]:
    """Rules of the site, which are loaded without a restart, and told of."""
    pid = watcher.node.run("systemctl show --value --property=MainPID prometheus.service")
    watcher.listen()
    run = str(int(time.time()))
    watcher.playbook(monitoring_extra_rules={"tests.yml": RULES.replace("@run", run)})
    assert set(ALWAYS) <= watcher.rules()
    assert watcher.node.run("systemctl show --value --property=MainPID prometheus.service") == pid
    both = {(name, node.name) for name in ALWAYS for node in (deb12, deb13)}
    wait_for(
        "somebody is told",
        lambda: (
            both
            == {
                (labels["alertname"], labels["node"]) for labels in watcher.told_of(*ALWAYS) if labels.get("run") == run
            }
        ),
        90,
    )
    yield watcher
    watcher.playbook()
    assert not set(ALWAYS) & watcher.rules()
    # Prometheus ends the series of a rule that is gone two rounds later.
    wait_for("they fire no more", lambda: not set(ALWAYS) & {name for name, _node in watcher.fired()}, 90)


def test_a_drained_instance_is_quiet_until_it_serves_again(with_rules: Watcher, deb12: Node, deb13: Node) -> None:
    watcher = with_rules
    loud = dict.fromkeys(((name, node.name) for name in ALWAYS for node in (deb12, deb13)), False)
    quiet = loud | {("EngineThere", deb13.name): True}
    before, began = watcher.fired(), time.time()
    watcher.listen()
    deb13.run("inferctl drain main --reason test")
    try:
        wait_for("one is quiet", lambda: watcher.quiet(*ALWAYS) == quiet, 90)
        assert watcher.raised(began, before) == {("InstanceDrained", deb13.name)}
        (labels,) = wait_for("somebody is told", lambda: watcher.told_of("InstanceDrained"), 90)
        assert labels.items() >= {"node": deb13.name, "instance_name": "main", "severity": "info"}.items()
    finally:
        deb13.run("inferctl undrain main")
    wait_for("none is quiet", lambda: watcher.quiet(*ALWAYS) == loud, 90)
    assert ("InstanceDrained", deb13.name) not in watcher.fired()
    assert wait_for("somebody is told of the end", lambda: watcher.told_of("InstanceDrained", status="resolved"), 90)


@contextmanager
def maintained(node: Node, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A node in the middle of an update that maintenance.yml makes."""
    # Newer than those of an earlier run.
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
def test_a_node_in_maintenance_is_quiet_until_the_playbook_lets_go(
    with_rules: Watcher, deb12: Node, deb13: Node, tmp_path: Path
) -> None:
    watcher = with_rules
    loud = dict.fromkeys(((name, node.name) for name in ALWAYS for node in (deb12, deb13)), False)
    quiet = loud | {(name, deb13.name): True for name in ALWAYS}
    before, began = watcher.fired(), time.time()
    watcher.listen()
    with maintained(deb13, tmp_path / "log") as process:
        wait_for("one node is quiet", lambda: process.poll() is not None or watcher.quiet(*ALWAYS) == quiet, 180)
        assert process.poll() is None, "it has ended already"
    wait_for("none is quiet", lambda: watcher.quiet(*ALWAYS) == loud, 60)
    raised = {("NodeInMaintenance", deb13.name), ("InstanceDrained", deb13.name)}
    assert watcher.raised(began, before) == raised
    assert not raised & watcher.fired()
    # What only informs reaches nobody whom no route names.
    assert not watcher.told_of("NodeInMaintenance")


@pytest.mark.full
def test_somebody_outside_hears_again_and_again_that_all_of_it_works(watcher: Watcher) -> None:
    watcher.listen()
    heard = wait_for("two calls", lambda: len(calls := watcher.told_of("MonitoringHeartbeat")) >= 2 and calls, 240)
    assert heard[0]["severity"] == "none"
