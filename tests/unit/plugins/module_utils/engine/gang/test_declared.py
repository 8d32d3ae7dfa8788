# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The keys of an instance over several nodes, each mistake with its message."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.gang import declared
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.catalogue import choose
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.entries import Entry, read

MODELS: dict[str, Any] = {
    "big": {"model": "/m", "tensor-parallel-size": 8, "pipeline-parallel-size": 2},
    "open": {"model": "/m"},
    "wide": {"model": "/m", "tensor-parallel-size": 2, "data-parallel-size": 2},
    "ray": {"model": "/m", "tensor-parallel-size": 2, "distributed-executor-backend": "ray"},
    "both": {"base": "wide", "distributed-executor-backend": "mp"},
}
ENTRIES = read(MODELS, choose("0.32.0")).entries


def raw(**changes: Any) -> dict[str, Any]:
    made = {
        "name": "big",
        "model": "big",
        "port": 5010,
        "nodes": ["gpu-01", "gpu-02"],
        "gang_port": 5110,
        "rendezvous_port": 29510,
        **changes,
    }
    return {key: value for key, value in made.items() if value is not ...}


def found(entry: str = "big", **changes: Any) -> str:
    return "\n".join(map(str, declared.check("instances[0]", raw(**changes), ENTRIES[entry])))


@pytest.mark.parametrize("changes", [{}, {"gpus": 8}, {"gpus": list(range(8))}, {"accelerator": "cpu", "gpus": 1}])
def test_a_gang_without_mistakes_is_accepted(changes: dict[str, Any]) -> None:
    assert found(**changes) == ""


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"nodes": "gpu-01"}, "must be a list of names of the group inference"),
        ({"nodes": [1, 2]}, "must be a list of names of the group inference"),
        ({"nodes": ["gpu-01"]}, "must name two nodes or more"),
        ({"nodes": []}, "must name two nodes or more"),
        ({"nodes": ["gpu-01", "gpu-02", "gpu-01", "gpu-04"]}, "names gpu-01 twice"),
        ({"nodes": ["a", "b", "c"]}, "names 3 nodes, which cannot share 16 ranks evenly"),
        ({"gang_port": ...}, "gang_port: is missing: an instance over several nodes needs this port, such as 5110"),
        ({"rendezvous_port": ...}, "needs this port, such as 29510"),
        ({"rendezvous_port": 40000}, "is one of 32768 to 60999"),
        ({"bridge_port": 5105}, "bridge_port: 5105: is not possible"),
        ({"gpus": 16}, "must be 8, the GPUs on each of 2 nodes"),
        ({"gpus": [0, 1]}, "must be 8, the GPUs on each of 2 nodes"),
        ({"nodes": ...}, "belongs to an instance over several nodes"),
    ],
)
def test_each_mistake_of_the_keys_is_reported(changes: dict[str, Any], text: str) -> None:
    assert text in found(**changes)


def test_all_mistakes_are_reported_at_once() -> None:
    text = found(nodes=["a", "a", "b"], gang_port=..., rendezvous_port=50000, bridge_port=5105)
    for part in (
        "names a twice",
        "cannot share 16 ranks",
        "gang_port: is missing",
        "32768 to 60999",
        "a bridge would need",
    ):
        assert part in text


def test_data_parallelism_over_nodes_is_refused_with_the_reason() -> None:
    text = found("wide")
    assert "data-parallel-size is 2" in text and "the gateway balances between them" in text
    assert "enable-expert-parallel" in text


def test_a_flag_that_each_member_gets_is_refused_with_the_reason() -> None:
    text = found("ray")
    assert "nodes: ['gpu-01', 'gpu-02']: serves ray, whose distributed-executor-backend is ray" in text
    assert "the role sets this flag on each node of an instance over several nodes" in text
    # On one node, the flag stays possible.
    assert found("ray", nodes=..., gang_port=..., rendezvous_port=...) == ""


def test_a_flag_that_each_member_gets_is_refused_with_all_other_mistakes() -> None:
    text = found("both", gang_port=...)
    for part in ("distributed-executor-backend is mp", "data-parallel-size is 2", "gang_port: is missing"):
        assert part in text


def test_the_division_of_a_model_over_nodes_may_be_left_open() -> None:
    assert found("open") == ""
    assert declared.undivided(ENTRIES["open"]) and not declared.undivided(ENTRIES["big"])


@pytest.mark.parametrize(("entry", "nodes", "gpus"), [("big", 2, 8), ("big", 4, 4), ("open", 2, 1)])
def test_the_ranks_of_a_model_are_shared_evenly_by_the_gpus_of_the_nodes(entry: str, nodes: int, gpus: int) -> None:
    one: Entry = ENTRIES[entry]
    assert declared.gpus_per_node(one, nodes) == gpus


def test_without_an_entry_the_division_is_not_checked() -> None:
    assert declared.check("x", raw(nodes=["a", "b", "c"]), None) == []
    assert declared.check("x", {"name": "main", "port": 5005}, None) == []
