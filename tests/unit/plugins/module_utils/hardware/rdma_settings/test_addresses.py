# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses of rails."""

from __future__ import annotations

from ipaddress import IPv4Interface
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import Findings
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings import addresses
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.variables import Wish


def wanted(rails: int = 2, **wish: Any) -> tuple[list[str], list[str]]:
    findings = Findings()
    found = addresses.wanted(Wish(**wish), rails, findings)
    return [str(address) for address in found], [str(problem) for problem in findings.problems]


def test_the_addresses_of_rails_come_from_a_list_or_from_subnets_and_host_index() -> None:
    assert wanted() == ([], [])
    both = ["10.1.0.7/16", "10.2.0.7/16"]
    assert wanted(addresses=both) == (both, [])
    assert wanted(subnets=["10.1.0.0/16", "10.2.0.0/16"], host_index=7) == (both, [])
    assert wanted(subnets=["10.9.0.0/31", "10.9.0.2/31"], host_index=1) == (["10.9.0.1/31", "10.9.0.3/31"], [])


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"addresses": ["10.1.0.7/16"]}, "1 entries for 2 rails"),
        ({"addresses": ["10.1.0.7", "10.2.0.7/16"]}, "with the length of its prefix"),
        ({"addresses": ["10.1.0.300/16", "10.2.0.7/16"]}, "is not an IPv4 address"),
        ({"addresses": ["fd00::1/64", "10.2.0.7/16"]}, "is not an IPv4 address"),
        ({"addresses": ["10.1.0.0/16", "10.2.0.7/16"]}, "the network 10.1.0.0/16 itself"),
        ({"addresses": ["10.1.255.255/16", "10.2.0.7/16"]}, "the broadcast address"),
        ({"addresses": ["10.1.0.7/32", "10.2.0.7/16"]}, "a prefix for one host"),
        ({"addresses": ["169.254.0.7/16", "10.2.0.7/16"]}, "is not an address for a rail"),
        ({"addresses": ["10.1.0.7/16", "10.1.0.7/16"]}, "is the address of two rails"),
        ({"addresses": ["10.1.0.7/16", "10.1.1.7/24"]}, "overlap"),
        ({"subnets": ["10.1.0.0/29", "10.2.0.0/16"], "host_index": 9}, "has only 8 addresses"),
        ({"subnets": ["10.1.0.0/29", "10.2.0.0/16"], "host_index": 7}, "the broadcast address"),
        ({"subnets": ["10.1.0.1/29", "10.2.0.0/16"], "host_index": 1}, "is not an IPv4 subnet"),
    ],
)
def test_an_address_that_a_rail_cannot_have_is_a_problem(wish: dict[str, Any], words: str) -> None:
    _found, problems = wanted(**wish)
    assert any(words in problem for problem in problems), problems


def test_subnets_without_host_index_give_no_addresses_and_no_second_problem() -> None:
    assert wanted(subnets=["10.1.0.0/16", "10.2.0.0/16"]) == ([], [])
    (problem,) = wanted(subnets=["10.1.0.1/16", "10.2.0.0/16"])[1]
    assert "is not an IPv4 subnet" in problem


def foreign(own: list[str], peers: dict[str, list[str]], management: list[str], **wish: Any) -> list[str]:
    findings, asked = Findings(), Wish(**wish) if wish else Wish(addresses=own)
    found = addresses.wanted(asked, len(own), Findings())
    addresses.foreign(found, peers, management, addresses.variable(asked), findings)
    return [str(problem) for problem in findings.problems]


def test_addresses_of_other_hosts_or_of_the_management_network_are_problems() -> None:
    own = ["10.1.0.7/16", "10.2.0.7/16"]
    assert foreign(own, {"node2": ["10.1.0.8/16", "10.2.0.8/16"]}, ["192.0.2.7/24", "fe80::1/64"]) == []
    assert "node2" in foreign(own, {"node2": ["10.2.0.7/16"]}, [])[0]
    assert "use one prefix" in foreign(own, {"node2": ["10.1.0.8/24"]}, [])[0]
    overlap = "10.1.0.7/16 overlaps the management network 10.0.0.0/8; give the rails subnets of their own"
    assert foreign(own, {}, ["10.0.0.7/8"])[0] == f"rdma: rdma_addresses: {overlap}"
    subnets = foreign(own, {}, ["10.0.0.7/8"], subnets=["10.1.0.0/16", "10.2.0.0/16"], host_index=7)
    assert subnets[0] == f"rdma: rdma_subnets: {overlap}"
    assert foreign(own, {"node2": ["nonsense"]}, ["nonsense"]) == []


def test_rails_in_another_order_on_another_host_are_a_warning() -> None:
    found = Findings()
    own = [IPv4Interface(text) for text in ("10.1.0.7/16", "10.2.0.7/16")]
    addresses.foreign(
        own,
        {"node2": ["10.2.0.8/16", "10.1.0.8/16"], "node3": ["10.1.0.9/16", "10.3.0.9/16"]},
        [],
        "rdma_addresses",
        found,
    )
    assert not found.problems and [problem.where for problem in found.warnings] == ["node2", "node2"]
    assert "rail 0: its subnet 10.2.0.0/16 is that of another rail here" in str(found.warnings[0])


def test_rails_with_one_subnet_are_recognised() -> None:
    def parsed(*texts: str) -> Any:
        return addresses.wanted(Wish(addresses=texts), len(texts), Findings())

    assert addresses.same_subnet(parsed("10.1.0.7/16", "10.1.0.8/16"))
    assert not addresses.same_subnet(parsed("10.1.0.7/16", "10.2.0.7/16"))
    assert not addresses.same_subnet([])


@given(st.lists(st.integers(1, 4000), min_size=2, max_size=6, unique=True), st.integers(1, 8))
def test_no_two_hosts_get_one_address(indices: list[int], rails: int) -> None:
    subnets = [f"10.{rail}.0.0/16" for rail in range(rails)]
    all_addresses = [address for index in indices for address in wanted(rails, subnets=subnets, host_index=index)[0]]
    assert len(set(all_addresses)) == len(indices) * rails


def test_the_addresses_of_other_hosts_come_from_their_variables() -> None:
    peers: dict[str, Any] = {
        "node1": [["10.1.0.8/16"], [], None],
        "node2": [None, ["10.1.0.0/16", "10.2.0.0/16"], 9],
        "node3": [[], ["nonsense"], 9],
        "node4": [[], [], None],
        "node5": [None, ["10.1.0.0/30"], -9],
        "node6": [7, "10.1.0.0/16", 9],
        "node7": [None, ["10.1.0.0/16"], True],
    }
    assert addresses.of_peers(peers) == {
        "node1": ["10.1.0.8/16"],
        "node2": ["10.1.0.9/16", "10.2.0.9/16"],
        "node3": [],
    }
