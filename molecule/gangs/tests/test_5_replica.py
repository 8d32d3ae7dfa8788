# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A gang and an instance on one node serve one replica set behind a gateway, under load."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import haproxy
import pytest
from gang import NAME, TIMES, Gang, third_node
from load import Load, Shape
from node import Node, playbook, wait_for
from repository import Package, Repository

pytestmark = pytest.mark.full

KEY = "gangs-load-key-77aa"
INSTANCE = {"name": NAME, "model": "tiny-a", "port": 5005, "accelerator": "cpu"}


@pytest.fixture(scope="module")
def third(gang: Gang) -> Iterator[Node]:
    """A node that is the gateway, and has an instance of the same replica set."""
    with third_node(gang.scenario, site) as node:
        playbook("all")
        yield node
    # The inventory has no gateway now: the firewalls of the gang's nodes no longer allow the gateway's address.
    playbook("inference")


def site(connection: dict[str, Any]) -> dict[str, Any]:
    gateway = {
        "gateway_tls": "none",
        "gateway_keys": [{"name": "load", "key": KEY}],
        "gateway_slow_start_seconds": 2,
    }
    return {
        "inference": {"hosts": {"third": {**connection, "instances": [INSTANCE]}}},
        "gateway": {"hosts": {"third": {}}},
        "all": {"vars": gateway},
    }


def load(gateway: Node) -> Load:
    shapes = (Shape(True, 20), Shape(False, 20))
    url = f"http://{gateway.address}:8000"
    return Load(url, (NAME,), 3, KEY, shapes, answers={NAME: ("I am tiny-a",)}, pause_seconds=2.0)


def up(gateway: Node) -> list[str]:
    """The nodes that the gateway sends requests to."""
    return haproxy.up(gateway, f"set_{NAME}")


def test_the_gateway_sends_requests_for_the_gang_only_to_its_leader(serving: Gang, third: Node) -> None:
    wait_for("both replicas are up", lambda: up(third) == ["deb12", "third"], 120)


def test_an_update_of_the_gang_fails_no_request(serving: Gang, third: Node) -> None:
    wait_for("both replicas are up", lambda: up(third) == ["deb12", "third"], 120)
    before, said = serving.active(), []
    update = "baremetal.inference.update_model"
    report = load(third).during(lambda: said.append(playbook("all", name=update, gang_sequences=4)))
    TIMES.append(f"update of a gang with a second replica: {report}")
    assert not report.failures and report.succeeded > 10, f"{report}\n{said}"
    assert serving.active() != before and serving.serves()


def test_maintenance_of_a_follower_drains_the_gang_first(serving: Gang, third: Node) -> None:
    """A package of the follower is updated. Its script runs while the gang is drained."""
    wait_for("both replicas are up", lambda: up(third) == ["deb12", "third"], 120)
    repository, epoch = Repository(serving.follower, "Harmless"), serving.epoch()
    repository.publish([Package("harmless", "1")])
    serving.follower.run("apt-get -qq install --yes harmless")
    # The script sleeps long enough for `work` to see the drain at the gateway.
    repository.publish([Package("harmless", "2", scripts={"postinst": "sleep 8; date +%s >/root/updated"})])
    given: dict[str, Any] = {"maintenance_security_labels": ["localhost"], "maintenance_lists_seconds": 0}
    members = ",".join(node.name for node in serving.nodes)
    maintenance = "baremetal.inference.maintenance"
    said: list[str] = []
    downs: list[float] = []

    def work() -> None:
        with ThreadPoolExecutor(1) as pool:
            run = pool.submit(playbook, members, "--tags", "updates", name=maintenance, **given)
            while not run.done():
                downs.extend([time.time()] if up(third) == ["third"] else [])
                time.sleep(0.5)
        said.append(run.result())

    report = load(third).during(work)
    drained = f"drained for {downs[-1] - downs[0]:.0f} s" if downs else "not drained"
    TIMES.append(f"maintenance of a follower with a second replica: {drained}, {report}")
    assert not report.failures and report.succeeded > 10, f"{report}\n{said}"
    updated = int(serving.follower.run("cat /root/updated"))
    assert downs and downs[0] < updated < downs[-1] + 1, (downs, updated, said)
    assert serving.epoch() == epoch and serving.serves()
    assert "maintenance" not in serving.leader.run("inferctl drains --json")
    wait_for("both replicas are up", lambda: up(third) == ["deb12", "third"], 60)


def test_a_fault_of_the_gang_fails_only_requests_in_flight(serving: Gang, third: Node) -> None:
    wait_for("both replicas are up", lambda: up(third) == ["deb12", "third"], 120)
    epoch = serving.epoch()

    def fault() -> None:
        serving.kill_engine(serving.follower)
        serving.wait_next(epoch, "a fault")

    report = load(third).during(fault)
    TIMES.append(f"the follower's engine is killed, with a second replica: {report}")
    # Streams that had begun at the gang cannot go on elsewhere.
    assert len(report.failures) <= 3 and report.succeeded > 10, str(report)
