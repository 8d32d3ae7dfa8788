# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Samples are also written to another Prometheus, with the name of the site, and follow after an interruption."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from node import Node, changes, wait_for
from watcher import Watcher

PORT = 9099
UNIT = "remote-prometheus"
DATA = "/root/remote"
REMOTE: dict[str, Any] = {
    "monitoring_remote_write": [{"name": "elsewhere", "url": f"http://127.0.0.1:{PORT}/api/v1/write"}],
    "monitoring_external_labels": {"site": "molecule"},
}
SITE = 'site="molecule"'


def start(node: Node) -> None:
    """Another Prometheus of the same package, without targets, which accepts remote writes."""
    options = f"--config.file={DATA}/none.yml --storage.tsdb.path={DATA}/data --web.enable-remote-write-receiver"
    node.run(f"mkdir -p {DATA}; echo 'global: {{}}' > {DATA}/none.yml")
    node.run(f"systemd-run --collect --unit={UNIT} prometheus {options} --web.listen-address=127.0.0.1:{PORT}")
    # The other Prometheus answers 503 until it has read its data.
    ready = f"curl --silent --fail http://127.0.0.1:{PORT}/-/ready"
    wait_for("the other Prometheus is ready", lambda: node.run(ready, check=False), 60)


def stop(node: Node) -> None:
    node.run(f"systemctl stop {UNIT}.service", check=False)


@pytest.fixture
def remote(watcher: Watcher) -> Iterator[Watcher]:
    """A monitoring host with remote write. After the test, the fixture removes remote write from the host."""
    pid = watcher.node.run("systemctl show --value --property=MainPID prometheus.service")
    start(watcher.node)
    watcher.playbook(**REMOTE)
    assert changes(watcher.playbook(**REMOTE)) == 0
    yield watcher
    watcher.playbook()
    wait_for("remote write has ended", lambda: not watcher.query("prometheus_remote_storage_samples_total"), 60)
    assert watcher.node.run("systemctl show --value --property=MainPID prometheus.service") == pid
    stop(watcher.node)
    watcher.node.run(f"rm -r {DATA}")


@pytest.mark.full
def test_samples_arrive_at_another_prometheus(remote: Watcher, deb12: Node, deb13: Node) -> None:
    def arrived(expression: str) -> dict[str, str]:
        return {one["metric"]["node"]: one["value"][1] for one in remote.query(expression, PORT)}

    both = dict.fromkeys((deb12.name, deb13.name), "1")
    wait_for("nodes", lambda: arrived(f'up{{job="node",{SITE}}}') == both, 60)
    # One metric of engines, one of the textfiles, and one of the recording rules.
    wanted = ("vllm:num_requests_running", "inference_drained", "instance:inference_serving:max")
    wait_for("engines", lambda: all(set(arrived(f"{metric}{{{SITE}}}")) == set(both) for metric in wanted), 60)
    # Series keep their labels, and all have the label of the site.
    (engine,) = remote.query(f'up{{job="engine",node="{deb12.name}"}}', PORT)
    assert engine["metric"].items() >= {"instance_name": "main", "model": "tiny-a", "rack": "r1"}.items()
    assert not remote.query('{__name__=~".+",site=""}', PORT)
    assert not remote.query(f"up{{{SITE}}}"), "local series have the name of the site"


@pytest.mark.full
def test_samples_from_an_interruption_of_remote_write_arrive_later(remote: Watcher) -> None:
    series = f'up{{job="prometheus",{SITE}}}'
    wait_for("the samples arrive", lambda: remote.query(series, PORT), 60)
    stop(remote.node)
    time.sleep(20)
    missed = f"count_over_time({series}[15s] @ {time.time():.0f})"
    start(remote.node)
    # A scrape every five seconds gives three samples in 15 s. One of them may be outside of the period.
    wait_for(
        "the missed samples follow", lambda: any(float(one["value"][1]) >= 2 for one in remote.query(missed, PORT)), 60
    )
