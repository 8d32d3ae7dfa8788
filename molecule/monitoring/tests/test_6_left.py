# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The run names a host that left the group `monitoring`, and decommission removes its services."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from node import Node, changes, playbook, wait_for
from watcher import Watcher, without

SERVICES = "prometheus.service prometheus-alertmanager.service"


@pytest.mark.full
def test_a_host_that_left_the_group_is_named_and_its_monitoring_is_removed(
    watcher: Watcher, deb12: Node, tmp_path: Path
) -> None:
    began = time.time()
    left = without(deb12, tmp_path, "monitoring")
    removed: dict[str, Any] = {"monitoring": deb12.name, "confirm": deb12.name}

    def remove(*options: str) -> str:
        return playbook("all", *options, name="baremetal.inference.decommission", inventory=left, **removed)

    # Another host scrapes the machines now.
    said = " ".join(watcher.playbook(inventory=left, monitoring_sources=["192.0.2.200"]).split())
    assert f"{deb12.name} left the group monitoring" in said
    assert f"baremetal.inference.decommission -e monitoring={deb12.name} -e confirm={deb12.name}" in said
    assert changes(remove("--check")) > 0
    assert deb12.run(f"systemctl is-active {SERVICES}").split() == ["active"] * 2
    try:
        assert changes(remove()) > 0
        assert deb12.run(f"systemctl is-active {SERVICES}", check=False).split() == ["inactive"] * 2
        assert deb12.run(f"systemctl is-enabled {SERVICES}", check=False).split() == ["disabled"] * 2
        assert [watcher.status(port) for port in (9090, 9093)] == ["000"] * 2
        ours = "grep -rls 'Managed by Ansible' /etc/prometheus /etc/systemd/system/prometheus.service.d"
        assert deb12.run(f"{ours} /etc/systemd/system/prometheus-alertmanager.service.d", check=False) == ""
        assert deb12.run("ls /etc/prometheus/rules /etc/prometheus/password 2>/dev/null", check=False) == ""
        assert deb12.run("ls /var/lib/prometheus/metrics2/wal") and deb12.run("ls /var/lib/prometheus/alertmanager")
        # The host is still a node and a gateway.
        assert deb12.ask() == "I am tiny-a." and watcher.status(8404, "/health") == "200"
        assert changes(remove()) == 0
    finally:
        watcher.playbook()
    wait_for("Prometheus runs again", lambda: watcher.targets().get(("prometheus", deb12.name)) == "up", 60)
    # The samples are still there.
    assert watcher.query(f'up{{job="prometheus"}} offset {time.time() - began:.0f}s')
