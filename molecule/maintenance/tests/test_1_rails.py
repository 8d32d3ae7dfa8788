# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A change that stops the traffic of a rail: it waits while the engine serves, and no client notices the change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import rail_devices
from fleet import Fleet, unharmed
from node import PROJECT, Node, changes, playbook

pytestmark = pytest.mark.full

RAILS = str(PROJECT / "molecule/shared/rails.yml")
MAINTENANCE = "baremetal.inference.maintenance"

WANTED: dict[str, Any] = {
    "rdma_rails": [{"netdev": "ib0"}],
    "rdma_addresses": [],
    "rdma_ets": {},
    "rdma_mtu": 4092,
}
CHANGE = "rail 0 (mlx5_0/1): mtu: 1500 -> 4092"

PACKAGES = "dpkg-query --show --showformat='${Package}\\n'"

# Logs each event of the rail's link, with the drains of the node at this moment.
WATCH = """
ip -o monitor link dev ib0 | while read -r event; do
  echo "[$(ls /var/lib/inference/drain)] $event" >>/root/rail.log
done
"""


@pytest.fixture
def rail(fleet: Fleet) -> Iterator[Node]:
    """The node that is no gateway, with a rail whose link is watched."""
    node = fleet.nodes[1]
    before = set(node.run(PACKAGES).split())
    rail_devices.add(node, 1)
    node.run(f"systemd-run --quiet --unit=rail-watch sh -c '{WATCH}'")
    yield node
    rail_devices.remove(node, 1)
    added = " ".join(set(node.run(PACKAGES).split()) - before)
    node.run(f"systemctl stop rail-watch; rm -f /root/rail.log; apt-get -qq purge --yes {added}", check=False)


def maintain(fleet: Fleet, *options: str) -> str:
    return playbook(fleet.limit, "--tags", "rails", *options, name=MAINTENANCE)


def events(node: Node) -> list[str]:
    """The events of the rail's link."""
    return node.run("cat /root/rail.log 2>/dev/null", check=False).splitlines()


def test_a_change_waits_for_the_drain_and_no_client_notices(fleet: Fleet, rail: Node) -> None:
    fleet.wait_up()
    pid = rail.engine_pid()
    waits = f"{CHANGE}. These changes stop the traffic of a rail, so they wait until the node is drained."
    for expected in (True, False):
        output = playbook(rail.name, name=RAILS, **WANTED)
        assert waits in " ".join(output.split()), output
        assert bool(changes(output)) == expected, output
    assert f"{CHANGE}: waits until this node is drained" in rail.run("inferctl status")
    assert rail.run("inferctl rdma check", check=False) == CHANGE
    assert f"waits until main is drained: {CHANGE}" in rail.run("inferctl rdma apply")
    assert 'inference_doctor_check_status{check="rdma-settings"} 2' in rail.run("inferctl metrics doctor")

    output = maintain(fleet, "--check")
    assert f"{rail.name}: set {CHANGE}, drained" in " ".join(output.split()) and not changes(output), output
    assert ", MTU 1500, " in rail.run("inferctl rdma show") and not events(rail)

    said: list[str] = []
    unharmed(fleet.load().during(lambda: said.append(maintain(fleet)), seconds_after=3))
    assert ", MTU 4092, " in rail.run("inferctl rdma show")
    assert events(rail) and all(event.startswith("[main] ") and "mtu 4092" in event for event in events(rail))
    assert f"nothing is due on {fleet.nodes[0].name}" in said[0], said[0]
    assert fleet.up() == sorted(node.name for node in fleet.nodes)
    assert not any("maintenance" in drains for drains in fleet.drains())
    assert rail.engine_pid() == pid and rail.ask() == "I am tiny-a."
    assert CHANGE not in rail.run("inferctl status")
    assert rail.run("inferctl rdma check") == "rails with all recorded settings: 1"
    assert not changes(maintain(fleet))
