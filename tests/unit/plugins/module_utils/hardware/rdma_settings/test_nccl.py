# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""NCCL's environment from the facts of all nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings import nccl
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings import plan as planning
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.nccl import Node, Options, Rail
from ansible_collections.baremetal.inference.tests.unit.plugins.module_utils.hardware.rdma_settings.samples import (
    device,
    facts,
    infiniband,
    port,
    roce,
)


def rail(number: int = 0, **more: Any) -> Rail:
    return replace(Rail(f"rocep{number}s0", 1, "ethernet", f"ens{number}", f"10.{number}.0.0/16", 4096, 400.0), **more)


def node(host: int = 1, count: int = 2, ports: int = 2, tos: int | None = 106, **more: Any) -> Node:
    return Node(f"192.0.2.{host}", "eno1", tuple(rail(number, **more) for number in range(count)), ports, tos)


def both(one: Node, other: Node | None = None, **options: Any) -> tuple[dict[str, dict[str, str]], list[str]]:
    nodes = {"node1": one, "node2": other or replace(one, address="192.0.2.2")}
    found, findings = nccl.environment(nodes, Options(**options))
    return found, [str(problem) for problem in findings.problems]


SOCKETS = {"NCCL_SOCKET_IFNAME": "=eno1", "GLOO_SOCKET_IFNAME": "eno1"}


def test_without_rails_the_environment_names_only_the_socket_interface() -> None:
    found, problems = both(Node("192.0.2.1", "eno1"), Node("192.0.2.2", "eth0"))
    assert not problems and found["node1"] == SOCKETS
    assert found["node2"] == {"NCCL_SOCKET_IFNAME": "=eth0", "GLOO_SOCKET_IFNAME": "eth0"}


def test_a_single_node_gets_only_the_overrides() -> None:
    found, findings = nccl.environment({"node1": node()}, Options(overrides={"NCCL_ALGO": "Ring"}))
    assert found == {"node1": {"NCCL_ALGO": "Ring"}} and not findings.problems


def test_roce_gets_the_traffic_class_and_separate_rails() -> None:
    found, problems = both(node())
    assert not problems and found["node1"] == {**SOCKETS, "NCCL_IB_TC": "106", "NCCL_CROSS_NIC": "0"}
    assert both(node(), rails_connected=True)[0]["node1"] == {**SOCKETS, "NCCL_IB_TC": "106"}


def test_with_one_subnet_nccl_may_use_all_pairs_of_rails() -> None:
    assert "NCCL_CROSS_NIC" not in both(node(network="10.7.0.0/24"))[0]["node1"]


def test_if_a_port_of_one_node_is_no_rail_each_node_gets_the_names_of_its_own_rails() -> None:
    other = replace(node(2, ports=2), rails=(rail(7), rail(9)))
    found, problems = both(node(ports=3), other)
    assert not problems
    assert found["node1"]["NCCL_IB_HCA"] == "=rocep0s0:1,rocep1s0:1"
    assert found["node2"]["NCCL_IB_HCA"] == "=rocep7s0:1,rocep9s0:1"


def test_no_traffic_class_is_set_without_a_lossless_class_or_on_infiniband() -> None:
    assert "NCCL_IB_TC" not in both(node(tos=None))[0]["node1"]
    found, problems = both(node(layer="infiniband", network=None))
    assert not problems and found["node1"] == SOCKETS


def test_required_rdma_without_rails_is_a_problem() -> None:
    assert both(node(), required=True)[0]["node1"]["NCCL_NET"] == "IB"
    assert "have no rail" in both(Node("192.0.2.1", "eno1"), required=True)[1][0]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (node(2, count=1), "the rails of the nodes differ: node1 has 2; node2 has 1"),
        (node(2, layer="infiniband"), "the link layers of the nodes differ"),
        (node(2, mtu_active=1024), "the MTUs of RDMA packets of the nodes differ: node1 has 4096; node2 has 1024"),
        (node(2, tos=42), "the types of service of the nodes differ: node1 has 106; node2 has 42"),
        (Node("192.0.2.2", "eno1"), "node2 has 0"),
    ],
)
def test_rails_that_differ_between_nodes_are_a_problem(other: Node, words: str) -> None:
    found, problems = both(node(), other)
    assert any(words in problem for problem in problems) and found["node1"] == SOCKETS


def test_slower_rails_are_a_warning() -> None:
    nodes = {"node1": node(), "node2": node(2, rate_gbps=200.0)}
    _found, findings = nccl.environment(nodes, Options())
    assert not findings.problems and "the slowest counts" in str(findings.warnings[0])


def test_too_many_rails_are_a_problem() -> None:
    assert "at most 32 rails" in both(node(count=33, ports=34))[1][0]


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("LD_PRELOAD", "x", "is no variable of NCCL"),
        ("NCCL_IB_DISABLE", "1", "switches RDMA off"),
        ("NCCL_P2P_DISABLE", "1", "switches NVLink off"),
        ("NCCL_IB_HCA", "=mlx5_0:1", "set rdma_rails"),
        ("NCCL_SOCKET_IFNAME", "eth", "is made for each node"),
        ("NCCL_NET_GDR_LEVEL", "5", "5 means SYS; write the word"),
        ("NCCL_NET_GDR_LEVEL", "FAR", "allowed are LOC"),
        ("NCCL_IB_RETRY_CNT", "8", "from 0 to 7"),
        ("NCCL_IB_TC", "256", "from 0 to 255"),
        ("NCCL_IB_TIMEOUT", "23", "from 0 to 22"),
        ("NCCL_IB_SL", "3", "has no effect on RoCE"),
        ("NCCL_IB_GID_INDEX", "3", "right only by luck"),
        ("NCCL_TOPO_FILE", "/x", "virtual machines"),
        ("NCCL_IB_QPS_PER_CONNECTION", 4, "must be a text"),
    ],
)
def test_an_override_that_cannot_work_is_a_problem(key: str, value: Any, words: str) -> None:
    (problem,) = both(node(), overrides={key: value})[1]
    assert problem.startswith(f"rdma_nccl: {key}") and words in problem


def test_good_overrides_are_set() -> None:
    wanted = {"NCCL_IB_QPS_PER_CONNECTION": "4", "NCCL_NET_GDR_LEVEL": "PHB", "NCCL_IB_TC": "41", "UCX_TLS": "rc"}
    found, problems = both(node(), overrides=wanted)
    assert not problems and wanted.items() <= found["node1"].items()
    assert both(node(layer="infiniband"), overrides={"NCCL_IB_SL": "1"})[1] == []

    # NCCL cuts long values only in its configuration file, which this collection does not write.
    assert both(node(), overrides={"NCCL_DEBUG_FILE": "x" * 2000})[1] == []


def test_without_a_plan_the_rails_of_a_node_come_from_its_facts() -> None:
    found = facts(
        device(0, port(0, netdev="eno1")),
        device(1, port(1, netdev_addresses=["fe80::1/64", "10.1.0.7/16"])),
        device(2, port(2, state="DOWN")),
    )
    made = nccl.node(found, None, "192.0.2.1", "eno1")
    assert [(one.device, one.network) for one in made.rails] == [("rocep1s0", "10.1.0.0/16")]
    assert (made.ports, made.tos) == (3, None)


def test_the_rails_of_a_node_come_from_its_plan() -> None:
    planned, _findings = planning.plan({"rails": [{"netdev": "ens1"}]}, planning.Machine(roce()))
    made = nccl.node(roce(), planned.desired, "192.0.2.1", "eno1")
    assert [one.device for one in made.rails] == ["rocep1s0"] and (made.ports, made.tos) == (2, 106)
    planned, _findings = planning.plan({}, planning.Machine(facts(infiniband(0))))
    assert nccl.node(facts(infiniband(0)), planned.desired, "192.0.2.1", "eno1").tos is None


@pytest.mark.parametrize(
    ("variables", "tos"),
    [
        ({}, 106),
        ({"dscp": 34}, 138),
        # Connections by rdma_cm, such as those of NFS over RDMA, may have another type of service than NCCL's.
        ({"roce_tos": 41}, 106),
        ({"cnp_dscp": 10, "cnp_priority": 1}, 106),
        ({"trust": "unmanaged"}, 106),
        # With trust unmanaged, the plan gives the lossless priority no DSCP: roce_tos counts.
        ({"trust": "unmanaged", "roce_tos": 41}, 41),
        ({"lossless_priority": None}, None),
        ({"lossless_priority": None, "roce_tos": 41}, None),
    ],
)
def test_the_traffic_class_of_nccl_is_that_of_the_lossless_priority(variables: dict[str, Any], tos: int | None) -> None:
    planned, findings = planning.plan(variables, planning.Machine(roce()))
    assert not findings.problems
    assert nccl.node(roce(), planned.desired, "192.0.2.1", "eno1").tos == tos


def test_settings_of_a_plan_count_as_made() -> None:
    """The facts have the MTU from before the first run, and no IPv4 address."""
    wish = {"addresses": ["10.1.0.7/16", "10.2.0.7/16"]}
    planned, _findings = planning.plan(wish, planning.Machine(roce()))
    made = nccl.node(roce(), planned.desired, "192.0.2.1", "eno1")
    assert [(one.network, one.mtu_active) for one in made.rails] == [("10.1.0.0/16", 4096), ("10.2.0.0/16", 4096)]
    planned, _findings = planning.plan({**wish, "mtu": 1500}, planning.Machine(roce()))
    assert {one.mtu_active for one in nccl.node(roce(), planned.desired, "192.0.2.1", "eno1").rails} == {1024}


def test_a_node_is_read_back_from_its_dictionary_and_damage_is_an_error() -> None:
    assert Node.from_dict(node().to_dict()) == node()
    assert Node.from_dict({**node().to_dict(), "later": 1}) == node()
    values: list[Any] = [None, {}, {"rails": []}, {**node().to_dict(), "rails": [1]}]
    for damaged in values:
        with pytest.raises(ValueError, match="the network of a node is damaged"):
            Node.from_dict(damaged)


def test_a_node_without_a_socket_interface_and_rails_gets_no_variables() -> None:
    found, problems = both(Node("192.0.2.1", ""), Node("192.0.2.2", "eth0"))
    assert not problems and found["node1"] == {} and found["node2"]


def test_an_unknown_mtu_of_a_node_is_no_difference() -> None:
    assert both(node(mtu_active=None), node(2))[1] == []
    assert "the MTUs of RDMA packets of the nodes differ" in both(node(mtu_active=1024), node(2))[1][0]


def test_variables_of_nccl_that_an_engine_must_not_set_are_refused() -> None:
    nodes = {"node1": node(), "node2": node(2)}
    given = {"NCCL_IB_SL": "3", "NCCL_DEBUG": "INFO", "VLLM_X": "1", "NCCL_NET_GDR_LEVEL": 5, "NCCL_NET": "Socket"}
    assert nccl.refusals(given, nodes, Options()).keys() == {"NCCL_IB_SL", "NCCL_NET_GDR_LEVEL"}
    assert "contradicts rdma_required" in nccl.refusals(given, nodes, Options(required=True))["NCCL_NET"]
    # A value may be a secret.
    assert "s3cret" not in str(nccl.refusals({"NCCL_TOPO_FILE": "s3cret", "NCCL_IB_TC": "s3cret"}, nodes, Options()))


@given(st.integers(2, 5), st.integers(0, 6), st.integers(0, 3), st.booleans())
def test_variables_are_lines_of_an_environment_and_no_node_depends_on_the_order(
    hosts: int, count: int, more: int, required: bool
) -> None:
    nodes = {f"node{number}": node(number, count, count + more) for number in range(hosts)}
    found, findings = nccl.environment(nodes, Options(required=required))
    backwards, again = nccl.environment(dict(reversed(nodes.items())), Options(required=required))
    assert found == backwards and len(findings.problems) == len(again.problems)
    for variables in found.values():
        for key, value in variables.items():
            assert key.isidentifier() and key.isupper() and value and not set(value) & set("\n \"'")
    assert bool(findings.problems) == (required and count == 0)
