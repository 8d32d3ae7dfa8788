# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The choice of rails among the ports of a node."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import Findings
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings import rails
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.variables import Wish
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.rdma_settings.samples import (
    device,
    facts,
    infiniband,
    port,
    roce,
)


def choose(wish: Wish, found: dict[str, Any], management: Any = (), known: Any = ()) -> tuple[list[str], Findings]:
    findings = Findings()
    chosen = rails.choose(wish, rails.ports(found), management, known, findings)
    return [one.name for one in chosen], findings


def test_ports_are_in_the_order_of_the_bus_and_software_last() -> None:
    soft = device(0, port(9), name="rxe0", pci_address=None)
    found = rails.ports(facts(soft, device(10), device(2)))
    assert [one.name for one in found] == ["rocep2s0/1", "rocep10s0/1", "rxe0/1"]
    assert [one.key for one in found] == ["0000:12:00.0/1", "0000:1a:00.0/1", "02:00:00:00:00:09/1"]


def test_auto_takes_active_ports_but_not_the_management_interface() -> None:
    found = facts(device(0), device(1, port(1, state="DOWN")), device(2))
    assert choose(Wish(), found, management=["ens2"])[0] == ["rocep0s0/1"]


@pytest.mark.parametrize("wish", [Wish(), Wish(rails=[{"netdev": "ens0"}, {"netdev": "ens1"}])])
def test_a_known_rail_without_a_cable_remains_with_a_warning(wish: Wish) -> None:
    found = facts(device(0), device(1, port(1, state="DOWN")))
    names, findings = choose(wish, found, known=["0000:11:00.0/1"])
    assert names == ["rocep0s0/1", "rocep1s0/1"] and not findings.problems
    assert "is down, but remains a rail" in str(findings.warnings[0])


def test_a_known_rail_whose_card_has_failed_is_a_problem() -> None:
    """Otherwise, the doctor would find no fault."""
    _names, findings = choose(Wish(), roce(1), known=["0000:10:00.0/1", "0000:11:00.0/1"])
    (problem,) = findings.problems
    assert "0000:11:00.0/1 is a rail of the last run" in str(problem) and "list the rails" in str(problem)
    # A known port that is now the management interface, or of another link layer, has not failed.
    for wish, management in ((Wish(), ["ens0"]), (Wish(link_layer="infiniband"), [])):
        assert not choose(wish, roce(1), management, known=["0000:10:00.0/1"])[1].problems
    assert not choose(Wish(rails=[{"netdev": "ens0"}]), roce(1), known=["0000:11:00.0/1"])[1].problems


def test_auto_warns_if_all_ports_are_down() -> None:
    names, findings = choose(Wish(), facts(device(0, port(0, state="DOWN")), device(1)), management=["ens1"])
    assert names == [] and "no rails: rocep0s0/1 is DOWN" in str(findings.warnings[0])
    # A node without cards, and a node whose only port is the management interface, get no warning.
    assert not choose(Wish(), facts())[1].warnings
    assert not choose(Wish(), roce(1), management=["ens0"])[1].warnings


def test_auto_with_two_link_layers_needs_a_choice() -> None:
    found = facts(device(0), infiniband(1))
    _names, findings = choose(Wish(), found)
    assert "set rdma_link_layer" in str(findings.problems[0])
    for layer, name in (("ethernet", "rocep0s0/1"), ("infiniband", "ibp1s0/1")):
        names, findings = choose(Wish(link_layer=layer), found)
        assert names == [name] and not findings.problems


@pytest.mark.parametrize(
    "entry", [{"pci": "11:00.0"}, {"netdev": "ens1"}, {"device": "rocep1s0"}, {"device": "rocep1s0/1"}]
)
def test_a_rail_is_found_by_each_of_its_names(entry: dict[str, str]) -> None:
    names, findings = choose(Wish(rails=[entry, {"netdev": "ens0"}]), roce())
    assert names == ["rocep1s0/1", "rocep0s0/1"] and not findings.problems


def test_the_second_port_of_a_device_can_be_named() -> None:
    found = facts(device(0, port(0), port(1, port=2)))
    for entry in ({"device": "rocep0s0/2"}, {"pci": "0000:10:00.0/2"}, {"pci": "10:00.0/2"}, {"netdev": "ens1"}):
        assert choose(Wish(rails=[entry]), found)[0] == ["rocep0s0/2"]
    _names, findings = choose(Wish(rails=[{"pci": "10:00.0/3"}]), found)
    assert "no RDMA port has this pci" in str(findings.problems[0])


def test_two_ports_of_one_card_may_both_be_rails() -> None:
    """Each port may be a PCI function. For one function with two link layers, rdma_link_layer must name one of them."""
    found = facts(device(0), device(1, pci_address="0000:10:00.1"))
    assert choose(Wish(), found)[0] == ["rocep0s0/1", "rocep1s0/1"]
    second = {**infiniband(0)["ports"][0], "port": 2}
    found = facts(device(0, port(0), second))
    assert len(choose(Wish(), found)[1].problems) == 1
    assert choose(Wish(link_layer="infiniband"), found)[0] == ["rocep0s0/2"]
    assert choose(Wish(link_layer="ethernet"), found)[0] == ["rocep0s0/1"]


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([{"netdev": "ens11"}], "did you mean 'ens1'?"),
        ([{"netdev": "ens0"}, {"device": "rocep0s0"}], "is a rail twice"),
        ([{"netdev": "ens9"}], "the management interface"),
        ([{"netdev": "ens3"}], "is DOWN; check cable"),
    ],
)
def test_a_wrong_entry_of_rdma_rails_is_a_problem(entries: list[dict[str, str]], words: str) -> None:
    found = facts(device(0), device(1), device(3, port(3, state="DOWN")), device(9))
    _names, findings = choose(Wish(rails=entries), found, management=["ens9"])
    (problem,) = findings.problems
    assert words in str(problem) and problem.key == "rdma_rails"


def test_a_named_port_of_the_other_link_layer_is_a_problem() -> None:
    _names, findings = choose(Wish(rails=[{"netdev": "ens0"}], link_layer="infiniband"), roce())
    assert "is ethernet, not infiniband" in str(findings.problems[0])


def test_ports_that_no_subnet_manager_has_made_active_are_rails_with_a_warning() -> None:
    """So one run sets up all nodes of a new subnet, among them the node that becomes the subnet manager."""
    without = facts(infiniband(0, state="INIT", sm_lid=0), infiniband(1, state="ARMED", sm_lid=0))
    for wish in (Wish(), Wish(rails=[{"netdev": "ib0"}, {"netdev": "ib1"}])):
        names, findings = choose(wish, without)
        assert names == ["ibp0s0/1", "ibp1s0/1"] and not findings.problems
        assert [str(one).partition(" is ")[2][:40] for one in findings.warnings] == [
            "INIT: no subnet manager makes the port a",
            "ARMED: no subnet manager makes the port ",
        ]
        _names, findings = choose(replace(wish, subnet_manager=True), without)
        assert not findings.problems and not findings.warnings


def test_a_port_that_waits_for_the_subnet_manager_next_to_active_ports_is_no_rail_unless_known() -> None:
    found = facts(infiniband(0), infiniband(1, state="INIT"))
    names, findings = choose(Wish(), found)
    assert names == ["ibp0s0/1"] and not findings.warnings
    names, findings = choose(Wish(), found, known=["0000:11:00.0/1"])
    assert names == ["ibp0s0/1", "ibp1s0/1"] and "set rdma_subnet_manager" in str(findings.warnings[0])
    # A port of Ethernet in the state INIT is not a rail.
    assert choose(Wish(), facts(device(0, port(0, state="INIT"))))[0] == []
