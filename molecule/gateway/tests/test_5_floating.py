# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two gateways share one floating address. keepalived and the network between the gateways are real."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from gateway import KEY, SHORT, Gateway
from load import Load
from node import PROJECT, Node, changed_tasks, playbook, wait_for

sys.path.insert(0, str(PROJECT / "tests/tools"))

from nodes import free_address

MOVED_SECONDS = 15
"""Limit in seconds: two checks of 2 s find a hang, then the other gateway waits for three announcements."""

FAULTS = {
    "systemctl stop haproxy": "systemctl start haproxy",
    # HAProxy still accepts connections, and does not answer.
    "systemctl kill --signal=STOP haproxy": "systemctl kill --signal=CONT haproxy",
    "systemctl stop keepalived": "systemctl start keepalived",
    "ip link set eth0 down": "ip link set eth0 up",
}
"""Faults of a gateway, each with the command that ends the fault."""


class Pair:
    """Two gateways with a floating address."""

    def __init__(self, nodes: tuple[Node, Node]) -> None:
        self.nodes = nodes
        self.address = free_address()
        self.settings: dict[str, Any] = {
            "gateway_floating_address": f"{self.address}/16",
            "gateway_floating_interface": "eth0",
            "addresses": {node.name: node.address for node in nodes},
            "gateway_floating_source": "{{ addresses[inventory_hostname] }}",
            "gateway_floating_peers": "{{ addresses.values() | difference([gateway_floating_source]) + others }}",
            # More peers, which do not answer; their order differs between runs, as from Ansible's `difference`.
            "others": "{{ ['192.0.2.201', '192.0.2.202', '192.0.2.203', '192.0.2.204'] | shuffle }}",
        }

    def site(self, **extra: Any) -> None:
        playbook(",".join(node.name for node in self.nodes), name=Node.playbook, **extra)

    def holders(self) -> list[Node]:
        return [node for node in self.nodes if self.address in node.run("ip -4 -oneline address show dev eth0")]

    def holds(self, node: Node) -> bool:
        return node in self.holders()

    def holder(self) -> Node:
        """The only gateway that holds the address, and answers there."""
        wait_for("only one gateway holds the address", lambda: len(self.holders()) == 1, MOVED_SECONDS)
        wait_for("clients get there", lambda: self.load(1).during(lambda: None).succeeded, MOVED_SECONDS)
        (found,) = self.holders()
        return found

    def load(self, clients: int) -> Load:
        return Load(f"https://{self.address}:8000", ("main",), clients, KEY, SHORT)


# Each test sets the pair up: between these tests, other tests change single nodes.
@pytest.fixture
def pair(deb12: Node, deb13: Node) -> Iterator[Pair]:
    made = Pair((deb12, deb13))
    made.site(**made.settings)
    yield made
    made.site()


@pytest.mark.full
def test_a_second_run_and_a_reload_move_nothing(pair: Pair, tmp_path: Path) -> None:
    holder = pair.holder()
    for node in pair.nodes:
        changed, said = changed_tasks(node, tmp_path, "--diff", **pair.settings)
        assert changed == set(), (node.name, said)
    report = pair.load(3).during(lambda: holder.run("systemctl reload haproxy"))
    assert not report.failures and report.succeeded, report
    assert pair.holders() == [holder]


@pytest.mark.full
def test_the_address_moves_to_the_other_gateway_and_stays_there(pair: Pair) -> None:
    """The address does not move back when the fault ends: a move would cut the connections again."""
    for fault, end_of_fault in FAULTS.items():
        holder = pair.holder()
        (other,) = [node for node in pair.nodes if node is not holder]
        holder.run(fault)
        try:
            wait_for(f"{fault}: {other.name} holds the address", partial(pair.holds, other), MOVED_SECONDS)
        finally:
            holder.run(end_of_fault)
        assert pair.holder() is other, fault
        Gateway(holder).wait_state("one", "UP")
        report = pair.load(2).during(lambda: None, seconds_after=8.0)
        assert not report.failures and report.succeeded, (fault, report)
        assert pair.holders() == [other], fault


@pytest.mark.full
def test_without_the_floating_address_both_gateways_still_serve(pair: Pair, tmp_path: Path) -> None:
    pair.holder()
    pair.site()
    assert pair.holders() == []
    for node in pair.nodes:
        states = node.run("systemctl show --value --property=ActiveState --property=UnitFileState keepalived")
        assert states.split() == ["inactive", "disabled"]
        assert Gateway(node).ask().status == 200
        assert changed_tasks(node, tmp_path)[0] == set()
