# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The targets of Prometheus."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.targets import (
    JOBS,
    Inventory,
    Targets,
    targets,
)

from ..conftest import instance_facts

MAIN = {"name": "main", "model": "large", "port": 5005}


def no_address(_name: str) -> list[str]:
    return []


def found(own: str, nodes: Any = (), gateways: Any = (), monitors: Any = (), **hostvars: Any) -> Targets:
    return targets(Inventory(tuple(nodes), tuple(gateways), tuple(monitors), hostvars), own, no_address)


def asked(result: Targets) -> set[tuple[str, str, str]]:
    """Job, node and address of every target."""
    return {
        (job, group["labels"]["node"], group["targets"][0]) for job, groups in result.groups.items() for group in groups
    }


def test_each_machine_has_the_targets_of_its_roles() -> None:
    result = found(
        "mon1",
        nodes=["gpu1"],
        gateways=["gw1"],
        monitors=["mon1"],
        gpu1={
            "inference_address": "192.0.2.11",
            "monitoring_rack": "r1",
            "monitoring_dcgm_exporter_image": "x@sha256:1",
            "instances": [MAIN, {"name": "old", "model": "large", "port": 5006, "state": "absent"}, "a mistake"],
        },
        gw1={"ansible_host": "192.0.2.21"},
        mon1={"ansible_host": "192.0.2.31"},
    )
    assert asked(result) == {
        ("node", "gpu1", "192.0.2.11:9100"),
        ("engine", "gpu1", "192.0.2.11:5005"),
        ("dcgm", "gpu1", "192.0.2.11:9400"),
        ("node", "gw1", "192.0.2.21:9100"),
        ("gateway", "gw1", "192.0.2.21:8404"),
        ("node", "mon1", "127.0.0.1:9100"),
        ("prometheus", "mon1", "127.0.0.1:9090"),
        ("alertmanager", "mon1", "127.0.0.1:9093"),
    }
    (engine,) = result.groups["engine"]
    assert engine["labels"] == {"node": "gpu1", "rack": "r1", "instance_name": "main", "model": "large"}
    assert not result.problems and not result.unreachable


@pytest.mark.parametrize("instances", [7, 0.5, True])
def test_instances_that_are_no_list_are_a_mistake(instances: object) -> None:
    gpu1, gpu2 = {"inference_address": "192.0.2.11"}, {"inference_address": "192.0.2.12", "instances": [MAIN]}
    result = found("", nodes=["gpu1", "gpu2"], gpu1={**gpu1, "instances": instances}, gpu2=gpu2)
    assert result.problems == [f"gpu1: instances is {instances!r}: it must be a list"]
    assert [group["labels"]["node"] for group in result.groups["engine"]] == ["gpu2"]


@pytest.mark.parametrize(
    "instances",
    [[], [{**MAIN, "accelerator": "cpu"}], [{**MAIN, "state": "absent"}]],
    ids=["no engine", "only processors", "only an absent engine"],
)
def test_dcgm_is_a_target_only_if_engines_have_gpus(instances: list[dict[str, Any]]) -> None:
    image = {"monitoring_dcgm_exporter_image": "x@sha256:1"}
    gpu1, cpu1 = ({"inference_address": f"192.0.2.{last}", **image} for last in (11, 12))
    result = found(
        "", nodes=["gpu1", "cpu1"], gpu1={**gpu1, "instances": [MAIN]}, cpu1={**cpu1, "instances": instances}
    )
    assert [group["labels"]["node"] for group in result.groups["dcgm"]] == ["gpu1"]
    assert [group["labels"]["node"] for group in result.groups["node"]] == ["gpu1", "cpu1"]


@pytest.mark.parametrize(
    ("variables", "own", "address"),
    [
        ({"inference_address": "192.0.2.11"}, "", "192.0.2.11:5005"),
        ({"inference_address": "192.0.2.11"}, "gpu1", "192.0.2.11:5005"),
        ({"inference_address": "0.0.0.0", "ansible_host": "192.0.2.12"}, "", "192.0.2.12:5005"),
        ({"inference_address": "0.0.0.0", "ansible_host": "192.0.2.12"}, "gpu1", "127.0.0.1:5005"),
        ({"ansible_host": "192.0.2.12"}, "gpu1", "127.0.0.1:5005"),
        ({"inference_address": "2001:db8::1"}, "", "[2001:db8::1]:5005"),
    ],
)
def test_the_target_of_an_engine_has_a_reachable_address(variables: dict[str, str], own: str, address: str) -> None:
    result = found(own, nodes=["gpu1"], gpu1={"instances": [MAIN], **variables})
    assert [group["targets"] for group in result.groups["engine"]] == [[address]]


def test_a_running_engine_has_the_labels_of_its_current_release() -> None:
    more = {"tasks": ("embed", "score"), "adapters": ("legal", "medical")}
    reported = {"instances": [instance_facts("main", "small", 3), instance_facts("side", "small", 1, **more)]}
    gpu1: dict[str, Any] = {"inference_address": "192.0.2.11", "vllm_engines": reported}
    gpu1["instances"] = [MAIN, *({**MAIN, "name": name} for name in ("new", "side"))]
    labels = [group["labels"] for group in found("", nodes=["gpu1"], gpu1=gpu1).groups["engine"]]
    assert labels == [
        {"node": "gpu1", "instance_name": "main", "model": "small", "release": "3"},
        {"node": "gpu1", "instance_name": "new", "model": "large"},
        {
            "node": "gpu1",
            "instance_name": "side",
            "model": "small",
            "release": "1",
            "task": "embed",
            "adapters": "legal,medical",
        },
    ]


def test_an_engine_that_only_its_node_reaches_is_named_and_is_no_target() -> None:
    result = found("mon1", nodes=["gpu1"], gpu1={"ansible_host": "192.0.2.11", "instances": [MAIN]})
    assert asked(result) == {
        ("node", "gpu1", "192.0.2.11:9100"),
        ("prometheus", "mon1", "127.0.0.1:9090"),
        ("alertmanager", "mon1", "127.0.0.1:9093"),
    }
    (text,) = result.unreachable
    assert "gpu1: main on 127.0.0.1" in text and "inference_address" in text


def test_all_problems_of_targets_are_reported_at_once() -> None:
    result = found(
        "",
        nodes=["gpu1", "gpu2"],
        gateways=["gw1"],
        gpu1={"ansible_host": "192.0.2.11", "inference_address": "192.0.2.11", "instances": [{**MAIN, "port": 70000}]},
        gpu2={},
        gw1={"ansible_host": "192.0.2.21", "gateway_metrics_port": "eight"},
    )
    text = "\n".join(result.problems)
    assert "gpu1: the port of its target engine is 70000" in text
    assert "gpu2" in text and "ansible_host" in text
    assert "gw1: the port of its target gateway is 'eight'" in text


def test_targets_have_the_ports_and_addresses_of_the_variables_of_the_roles() -> None:
    variables = {
        "ansible_host": "192.0.2.21",
        "gateway_bind_address": "198.51.100.1",
        "gateway_metrics_port": 8405,
        "monitoring_exporter_address": "203.0.113.1",
        "monitoring_node_exporter_port": 9101,
    }
    assert asked(found("", gateways=["gw1"], gw1=variables)) == {
        ("node", "gw1", "203.0.113.1:9101"),
        ("gateway", "gw1", "198.51.100.1:8405"),
    }


def test_every_job_has_a_list_of_targets() -> None:
    assert tuple(found("").groups) == JOBS
