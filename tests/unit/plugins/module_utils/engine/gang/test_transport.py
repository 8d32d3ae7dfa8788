# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The networks of a gang's members, from this run or the last, and every mistake in them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang import transport
from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang.transport import Transport
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.rdma_settings.nccl import (
    Node,
    Options,
    Rail,
)

RAIL = Rail("mlx5_0", 1, "ethernet", "ens1", "10.1.0.0/16", 4096, 400.0)
NODES = {name: Node(f"192.0.2.{number}", "eno1", (RAIL,), 1, 106) for number, name in enumerate(("n1", "n2"))}
BIG: dict[str, Any] = {"name": "big", "nodes": ["n1", "n2"]}
SECRETS = {"other": {"NCCL_SHM_DISABLE": "1"}, "main": {"NCCL_COMM_ID": "x"}}
ALL = Transport(NODES)


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path)


def problems(paths: Paths, given: Transport, *instances: Any, starts: bool = True, **environment: Any) -> str:
    found = transport.check(instances or (BIG,), given, paths, environment, SECRETS, starts=starts)
    return "\n".join(map(str, found.problems))


def test_each_node_gets_the_variables_of_its_own_interfaces(paths: Paths) -> None:
    made = ALL.variables(paths, "big", BIG["nodes"], "n2")
    assert made == {"NCCL_SOCKET_IFNAME": "=eno1", "GLOO_SOCKET_IFNAME": "eno1", "NCCL_IB_TC": "106"}
    assert ALL.variables(paths, "big", BIG["nodes"], "n3") == {}
    required = replace(ALL, options=Options(required=True, overrides={"NCCL_ALGO": "Ring"}))
    made = required.variables(paths, "big", BIG["nodes"], "n1")
    assert made["NCCL_NET"] == "IB" and made["NCCL_ALGO"] == "Ring"


def test_the_option_of_the_modules_is_parsed() -> None:
    given = {
        "nodes": {name: node.to_dict() for name, node in NODES.items()},
        "required": True,
        "rails_connected": None,
        "variables": {"NCCL_ALGO": "Ring"},
    }
    assert Transport.from_dict(given) == Transport(NODES, Options(required=True, overrides={"NCCL_ALGO": "Ring"}))
    assert Transport.from_dict({}) == Transport()
    with pytest.raises(ValueError, match="is damaged"):
        Transport.from_dict({"nodes": {"n1": {}}})


def test_a_node_that_the_run_leaves_out_has_the_network_of_the_last_run(paths: Paths) -> None:
    alone = Transport({"n1": NODES["n1"]})
    assert "instance big: nodes: the network of n2 is unknown" in problems(paths, alone)
    assert problems(paths, alone, starts=False) == ""
    files.write_json(paths.instance("big"), {"networks": ALL.record(paths, "big", BIG["nodes"])})
    assert problems(paths, alone) == "" and alone.members(paths, "big", BIG["nodes"]) == NODES
    assert list(alone.members(paths, "big", ["n2", "n1"])) == ["n2", "n1"]
    # What the run has read is newer.
    newer = replace(NODES["n1"], netdev="bond0")
    assert Transport({"n1": newer}).variables(paths, "big", BIG["nodes"], "n1")["GLOO_SOCKET_IFNAME"] == "bond0"
    paths.instance("big").write_text("{")
    assert "is unknown" in problems(paths, alone)


def test_all_mistakes_are_reported_at_once_and_each_once(paths: Paths) -> None:
    other = replace(NODES["n2"], rails=(), ports=0)
    given = Transport({**NODES, "n2": other}, Options(overrides={"NCCL_TOPO_FILE": "/x"}))
    own = {**BIG, "name": "other", "environment": {"NCCL_IB_DISABLE": "1"}}
    text = problems(paths, given, BIG, own, {"name": "main"}, NCCL_IB_HCA="mlx5_0", NCCL_DEBUG="INFO")
    for words in (
        "rdma_nccl: NCCL_TOPO_FILE: '/x': hides the real machine",
        "the rails of the nodes differ: n1 has 1; n2 has 0",
        "instance other: NCCL_IB_DISABLE: switches RDMA off",
        "instance other: NCCL_SHM_DISABLE: is for a single test",
        "vllm_environment: NCCL_IB_HCA: names devices of one node; set rdma_rails",
    ):
        assert text.count(words) == 1, text
    assert "NCCL_DEBUG" not in text and "NCCL_COMM_ID" not in text
    assert problems(paths, ALL, {**BIG, "environment": "odd"}) == ""


def test_a_node_without_a_gang_may_set_anything(paths: Paths) -> None:
    assert problems(paths, Transport(), {"name": "main"}, NCCL_P2P_DISABLE="1") == ""


def test_different_rates_of_rails_are_a_warning(paths: Paths) -> None:
    slow = replace(NODES["n2"], rails=(replace(RAIL, rate_gbps=200.0),))
    found = transport.check([BIG], Transport({**NODES, "n2": slow}), paths, {}, {}, starts=True)
    assert not found.problems and "the rates of the rails differ" in str(found.warnings[0])
