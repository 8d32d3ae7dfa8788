# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module engine_plan: every mistake of registry, settings and GPUs at once, and what it only warns of."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.endpoints import Endpoint
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import load_instances
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags import catalogue
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry import entries
from ansible_collections.baremetal.inference.plugins.modules import engine_plan

Plan = Callable[..., tuple[dict[str, Any], list[str]]]

SETTINGS = {
    "store_path": "/mnt/models",
    "cache_path": "/cache",
    "start_timeout": 1800,
    "drain_timeout": 120,
    "pids_limit": 16384,
    "shm_size": "1g",
}


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_module: Callable[..., dict[str, Any]]) -> Plan:
    """Call the module on a node without Docker; returns its result and its warnings."""
    monkeypatch.setattr(engine_plan, "Paths", lambda: Paths(tmp_path))
    monkeypatch.setattr(engine_plan, "running_instances", lambda paths: {})
    monkeypatch.setattr(basic.AnsibleModule, "get_bin_path", lambda module, name: None)
    warnings: list[str] = []
    monkeypatch.setattr(basic.AnsibleModule, "warn", lambda module, warning: warnings.append(warning))

    def call(models: dict[str, Any], **changes: Any) -> tuple[dict[str, Any], list[str]]:
        given = {
            "instances": [],
            "models": models,
            "image": "registry.example.com/vllm@sha256:00",
            "engine_version": "0.32.0",
            "image_gib": 0,
            "docker_data_root": str(tmp_path),
            "settings": SETTINGS,
            **changes,
        }
        return run_module(engine_plan, **given), warnings

    return call


def test_a_sound_registry(plan: Plan) -> None:
    result, warnings = plan({"a": {"model": "/m", "dtype": "half"}, "b": {"base": "a"}})
    assert (result["engine_version"], result["catalogue_version"]) == ("0.32.0", "0.32.0")
    assert warnings == []


def test_every_mistake_at_once(plan: Plan) -> None:
    result, _warnings = plan(
        {"a": {"model": "/m", "dtypee": "half", "port": 1}, "b": {"base": "c"}},
        settings={**SETTINGS, "shm_size": "big"},
    )
    assert len(result["problems"]) == 4
    assert result["msg"].startswith("Nothing was changed. To correct:")
    assert "- models.a: dtypee: 'half': is neither" in result["msg"]


@pytest.mark.parametrize("known_by", ["environment", "secret_environment"])
def test_what_a_serving_engine_is_reached_by_stays(plan: Plan, monkeypatch: pytest.MonkeyPatch, known_by: str) -> None:
    serving = {"main": Endpoint("127.0.0.2", 5006, "key-of-before")}
    monkeypatch.setattr(engine_plan, "running_instances", lambda paths: serving)
    given: dict[str, Any] = {
        "models": {"a": {"model": "/m"}},
        "instances": [{"name": "main", "model": "a", "port": 5005, "accelerator": "cpu"}],
        known_by: {"VLLM_API_KEY": "key-of-today"},
    }
    result, _warnings = plan(**given, gateways=True)
    found = [line.partition(" is not the one ")[0] for line in result["problems"]]
    assert found == [
        "instance main: port: 5005:",
        "instance main: address: '127.0.0.1':",
        "instance main: vllm_api_key:",
    ]
    assert "key-of-before" not in json.dumps(result)
    assert "key-of-today" not in json.dumps({**result, "invocation": ""})
    assert [line for line in plan(**given)[0]["problems"] if "is not the one" in line] == result["problems"][:1]
    serving["main"] = Endpoint("127.0.0.1", 5005, "key-of-today")
    assert "problems" not in plan(**given, gateways=True)[0]


def test_another_version_than_any_catalogues_is_named(plan: Plan) -> None:
    result, warnings = plan({"a": {"model": "/m", "quite-new": 1}}, engine_version="0.32.9")
    assert (result["engine_version"], result["catalogue_version"]) == ("0.32.9", "0.32.0")
    assert "no catalogue of the flags of vLLM 0.32.9" in warnings[0]
    assert warnings[1].startswith("models.a: quite-new: 1: is neither a key of the registry nor a flag of vLLM 0.32.0")


def test_the_version_is_read_off_the_tag(plan: Plan) -> None:
    image = "registry.example.com/vllm:v0.33.0@sha256:00"
    result, warnings = plan({"a": {"model": "/m", "monokernel": True}}, image=image, engine_version="")
    assert (result["engine_version"], warnings) == ("0.33.0", [])


def test_what_is_deprecated_is_warned_of(plan: Plan) -> None:
    _result, warnings = plan({"a": {"model": "/m", "disable-cascade-attn": True}})
    assert warnings == [
        "models.a: disable-cascade-attn: True: is deprecated in vLLM 0.32.0, to be removed in 0.33.0: remove it"
    ]


REGISTRY = entries.read({"tiny": {"model": "/models/tiny"}}, catalogue.choose("0.32.0"))
INSTANCES = [
    {"name": "a", "model": "tiny", "port": 5005, "gpus": [0]},
    {"name": "b", "model": "tiny", "port": 5006, "gpus": ["GPU-1"]},
    {"name": "c", "model": "tiny", "port": 5007, "accelerator": "cpu"},
]


def gpus(count: int, reported: bool = True) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{"index": None, "pci_bus_id": f"0000:0{number}:00.0"} for number in range(count)]
    for number, gpu in enumerate(found if reported else []):
        gpu.update(index=number, uuid=f"GPU-{number}", reported=True)
    return found


def test_gpus_that_are_there_and_free() -> None:
    assert engine_plan.gpu_problems(INSTANCES, REGISTRY, gpus(2)) == []
    assert engine_plan.gpu_problems(INSTANCES, REGISTRY, gpus(2, reported=False)) == []
    assert engine_plan.gpu_problems(INSTANCES, REGISTRY, None) == []


def test_gpus_that_are_not() -> None:
    (problem,) = engine_plan.gpu_problems(INSTANCES, REGISTRY, gpus(1))
    assert str(problem).startswith("instances[1] (b): gpus: 'GPU-1': is no GPU of this node")
    (problem,) = engine_plan.gpu_problems(INSTANCES, REGISTRY, gpus(0))
    assert str(problem) == "instances[0] (a): gpus: '0': is no GPU of this node: the PCI bus has none"
    # Why Docker could not hand it out is said all the same.
    refused = engine_plan.cdi_problems(load_instances(INSTANCES, REGISTRY), "Docker is too old")
    assert [str(one).partition(":")[0] for one in refused] == ["instance a", "instance b"]
