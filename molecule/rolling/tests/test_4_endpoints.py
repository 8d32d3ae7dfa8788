# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Releases with another port, key or address: updates and a rollback under load, and no client notices."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fleet import ROLLBACK, Fleet, unharmed
from node import Node, changes
from own_swap import swap

pytestmark = pytest.mark.full

OLD_KEY, NEW_KEY = "rolling-engine-key-1-77aa", "rolling-engine-key-2-88bb"


@pytest.fixture(scope="module", autouse=True)
def as_declared(fleet: Fleet) -> None:
    """Both nodes serve the release that the inventory asks for: other tests leave pins."""
    for node, model in zip(fleet.nodes, fleet.models(), strict=True):
        if model != "tiny-a":
            assert swap(node, "tiny-a")["outcome"] == "done"


def instances(port: int = 5005) -> list[dict[str, Any]]:
    return [{"name": "main", "model": "tiny-a", "port": port, "accelerator": "cpu"}]


def rolled(fleet: Fleet, **extra: Any) -> str:
    """Update under load. Returns the output."""
    fleet.wait_up()
    said: list[str] = []
    load = fleet.load()
    unharmed(load.during(lambda: said.append(fleet.update(**{"instances": instances(), **extra})), seconds_after=3))
    return said[0]


def servers(fleet: Fleet) -> dict[str, str]:
    """The address at which the gateway reaches each server of the set."""
    view = json.loads(fleet.gateway.run("curl -sf http://127.0.0.1:8404/sets/main"))
    return {name: server["address"] for name, server in view["servers"].items()}


def ports(fleet: Fleet) -> set[str]:
    return {address.rpartition(":")[2] for address in servers(fleet).values()}


def open_ports(node: Node) -> str:
    return node.run("nft list table inet inference")


def accepts(node: Node, key: str) -> bool:
    return node.ask(key=key) == "I am tiny-a."


def test_an_update_changes_the_port_of_all_engines(fleet: Fleet) -> None:
    rolled(fleet)
    output = rolled(fleet, instances=instances(5006))
    assert "main on deb12 from release" in output
    assert [node.ask(port=5006) for node in fleet.nodes] == ["I am tiny-a."] * 2
    assert sorted(servers(fleet)) == ["deb12", "deb13"] and ports(fleet) == {"5006"}
    assert changes(fleet.update(instances=instances(5006))) == 0
    # The next run of site.yml closes the old port, and changes no release.
    far = fleet.nodes[1]
    before = fleet.serving(), far.engine_pid()
    assert "5006" in open_ports(far)
    far.site("--limit", fleet.limit, instances=instances(5006))
    assert "5006" in open_ports(far) and "5005" not in open_ports(far)
    assert (fleet.serving(), far.engine_pid()) == before


def test_a_rollback_brings_the_old_port_back(fleet: Fleet) -> None:
    fleet.wait_up()
    load = fleet.load()
    unharmed(
        load.during(
            lambda: fleet.update("-e", "instance=main", name=ROLLBACK, instances=instances(5006)), seconds_after=3
        )
    )
    assert [node.ask(port=5005) for node in fleet.nodes] == ["I am tiny-a."] * 2
    # The inventory still asks for the other port.
    assert set(servers(fleet)) == {"deb12", "deb13", "main_next.deb12", "main_next.deb13"}
    assert fleet.up() == ["deb12", "deb13"]
    rolled(fleet)
    assert ports(fleet) == {"5005"} and sorted(servers(fleet)) == ["deb12", "deb13"]


def test_a_swap_by_hand_to_a_port_without_a_server_at_the_gateway_is_refused(fleet: Fleet) -> None:
    node = fleet.nodes[1]
    (instance,) = json.loads(node.run("inferctl releases main --json"))["instances"]
    other = max(kept["release"] for kept in instance["releases"] if _port(node, kept) == 5006)
    said = json.loads(node.run(f"inferctl swap main --to {other} --json", check=False))
    assert said["outcome"] == "refused" and "has no server for 0.0.0.0 port 5006" in said["failure"]
    assert accepts(node, "")


def _port(node: Node, kept: dict[str, Any]) -> int:
    release = json.loads(node.run(f"cat /var/lib/inference/releases/main/{kept['release']}/release.json"))
    return int(release["port"])


def test_updates_add_a_key_of_engines_and_replace_it(fleet: Fleet) -> None:
    rolled(fleet, vllm_api_key=OLD_KEY)
    assert [(accepts(node, OLD_KEY), accepts(node, "")) for node in fleet.nodes] == [(True, False)] * 2
    # Without the old key in the inventory, the update does not begin.
    pids = [node.engine_pid() for node in fleet.nodes]
    output = fleet.update(check=False, instances=instances(), vllm_api_key=NEW_KEY)
    assert "do not all accept one key of the inventory" in " ".join(output.split())
    assert [node.engine_pid() for node in fleet.nodes] == pids and fleet.up() == ["deb12", "deb13"]
    both: dict[str, Any] = {"vllm_api_key": NEW_KEY, "vllm_accepted_keys": [OLD_KEY]}
    rolled(fleet, **both)
    assert [(accepts(node, OLD_KEY), accepts(node, NEW_KEY)) for node in fleet.nodes] == [(True, True)] * 2
    assert NEW_KEY in fleet.gateway.run("cat /etc/haproxy/engines.map")
    assert changes(fleet.update(instances=instances(), **both)) == 0
    rolled(fleet, vllm_api_key=NEW_KEY)
    assert [(accepts(node, OLD_KEY), accepts(node, NEW_KEY)) for node in fleet.nodes] == [(False, True)] * 2
    for node in fleet.nodes:
        for key in (OLD_KEY, NEW_KEY):
            assert key not in node.run("ps axwww -o args; journalctl --no-pager --output=export")


def test_an_update_removes_the_key_of_engines(fleet: Fleet) -> None:
    rolled(fleet, vllm_api_key="", vllm_accepted_keys=[NEW_KEY])
    assert all(accepts(node, "") for node in fleet.nodes)
    assert fleet.gateway.run("cat /etc/haproxy/engines.map") == ""


def test_an_update_changes_the_addresses_of_engines_and_agents(fleet: Fleet) -> None:
    """On the gateway's node, engine and agent move from the loopback address to the node's address."""
    near, far = fleet.nodes
    moved = {near.name: near.address, far.name: far.address}
    there: dict[str, Any] = {"inference_address": "{{ __moved[inventory_hostname] }}", "__moved": moved}
    rolled(fleet, **there)
    assert servers(fleet) == {name: f"{address}:5005" for name, address in moved.items()}
    assert near.run("ss -Hltn sport = :5004").split()[3] == f"{near.address}:5004"
    rolled(fleet)
    assert servers(fleet) == {near.name: "127.0.0.1:5005", far.name: f"{far.address}:5005"}
    fleet.wait_up()
