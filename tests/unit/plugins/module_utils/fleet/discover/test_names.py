# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names and addresses of discovered machines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.machine import Machine
from ansible_collections.baremetal.inference.plugins.module_utils.fleet.discover.names import (
    name_all,
    service_address,
    without_twins,
)

Make = Callable[..., Machine]


def test_a_machine_with_two_addresses_is_written_once(machine: Make) -> None:
    first, other = machine("l40s"), machine("l40s", 13)
    second = machine("l40s", 12, boot_id="boot-11", machine_id=first.system["machine_id"])
    kept, lines = without_twins([first, second, other])
    assert kept == [first, other]
    assert lines == [
        "10.0.0.12: is the same machine as 10.0.0.11 (l40s-11), reached by another address: it is written once"
    ]


def test_a_machine_with_two_ports_or_names_is_written_once(machine: Make) -> None:
    first = replace(machine("l40s"), entry="a", address="gate", port=2201)
    port, name = replace(first, entry="b", port=2202), replace(first, entry="c")
    assert without_twins([first, port, name]) == (
        [first],
        [
            "b: is the same machine as a (l40s-11), reached by another port: it is written once",
            "c: is the same machine as a (l40s-11), reached by another name: it is written once",
        ],
    )


def test_containers_of_one_kernel_are_several_machines(machine: Make) -> None:
    containers = [machine("l40s"), machine("l40s", 12, boot_id="boot-11")]
    assert without_twins(containers) == (containers, [])


def test_two_machines_with_one_hostname_get_names_of_their_addresses(machine: Make) -> None:
    named, found = name_all([machine("l40s", hostname="gpu"), machine("l40s", 12, hostname="GPU")])
    assert list(named) == ["node-10-0-0-11", "node-10-0-0-12"]
    assert "10.0.0.11: has the hostname gpu, like 10.0.0.12: it is called node-10-0-0-11 here" in found.findings
    assert [question.variable for question in found.questions] == ["names", "names"]


def test_machines_behind_one_address_get_names_with_a_number(machine: Make) -> None:
    named, _found = name_all([machine("l40s", hostname="gpu") for _number in range(3)])
    assert list(named) == ["node-10-0-0-11", "node-10-0-0-11-2", "node-10-0-0-11-3"]


def test_a_hostname_that_is_common_invalid_or_a_groups_name_names_no_machine(machine: Make) -> None:
    for hostname in ("debian", "localhost", "gateway", "spare", "", "with_underscore"):
        named, found = name_all([machine("l40s", hostname=hostname)])
        assert list(named) == ["node-10-0-0-11"] and found.questions, hostname
    named, found = name_all([machine("l40s", hostname="gpu-01.example.com")])
    assert list(named) == ["gpu-01.example.com"] and not found.questions


def test_names_of_an_earlier_inventory_stay(machine: Make) -> None:
    named, found = name_all([machine("l40s", hostname="debian")], {"10.0.0.11": "rack1-a"})
    assert list(named) == ["rack1-a"] and not found.questions


def test_a_name_of_an_earlier_inventory_is_not_given_to_a_second_machine(machine: Make) -> None:
    old, new = machine("l40s", hostname="debian"), machine("l40s", 12, hostname="rack1-a")
    for order in ([old, new], [new, old]):
        named, found = name_all(order, {"10.0.0.11": "rack1-a"})
        assert {name: one.address for name, one in named.items()} == {
            "rack1-a": "10.0.0.11",
            "node-10-0-0-12": "10.0.0.12",
        }
        assert (
            "10.0.0.12: has the hostname rack1-a, by which the inventory calls 10.0.0.11:"
            " it is called node-10-0-0-12 here"
        ) in found.findings


def test_machines_behind_one_address_of_an_earlier_inventory_have_their_own_names(machine: Make) -> None:
    old = replace(machine("l40s", hostname="a"), entry="gate:2201", address="gate")
    new = replace(machine("l40s", 12, hostname="b"), entry="gate:2202", address="gate")
    named, _found = name_all([old, new], {"gate": "rack1-a"})
    assert {name: one.entry for name, one in named.items()} == {"rack1-a": "gate:2201", "b": "gate:2202"}
    # The name of the entry counts before the name by the address.
    named, _found = name_all([new, old], {"gate": "rack1-a", "gate:2201": "rack1-a"})
    assert {name: one.entry for name, one in named.items()} == {"rack1-a": "gate:2201", "b": "gate:2202"}


def test_the_name_from_an_address_is_no_hostname_of_another_machine(machine: Make) -> None:
    named, _found = name_all([machine("l40s", hostname="debian"), machine("l40s", 12, hostname="node-10-0-0-11")])
    assert {name: one.address for name, one in named.items()} == {
        "node-10-0-0-11-2": "10.0.0.11",
        "node-10-0-0-11": "10.0.0.12",
    }


def test_a_shared_address_or_machine_id_gets_a_line(machine: Make) -> None:
    double = [{"device": "eno1", "address": "10.0.0.20"}, {"device": "docker0", "address": "172.17.0.1"}]
    one = machine("l40s", addresses=double, machine_id="same")
    two = machine("l40s", 12, addresses=double, machine_id="same")
    _named, found = name_all([one, two])
    text = "\n".join(found.findings)
    assert "l40s-11, l40s-12: have the same address 10.0.0.20" in text
    assert "l40s-11, l40s-12: have the same /etc/machine-id" in text
    # Every machine with Docker has this address.
    assert "172.17.0.1" not in text
    address, reason = service_address(one, ["10.0.0.20", "10.0.0.11"])
    assert address == "" and "several machines have the login's address" in reason


def test_engines_listen_on_the_address_of_the_login_or_of_the_default_route(machine: Make) -> None:
    assert service_address(machine("l40s"), []) == ("10.0.0.11", "the address of the login")
    inside = machine("l40s", addresses=[{"device": "eno1", "address": "192.168.7.5"}])
    assert service_address(inside, [])[0] == "192.168.7.5"
    behind = machine("l40s", addresses=[{"device": "eno1", "address": "192.168.7.5"}], default_device=None)
    address, reason = service_address(behind, [])
    assert address == "" and "behind NAT" in reason
