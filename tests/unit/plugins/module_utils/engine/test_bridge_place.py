# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a second engine fits on a node, and on which GPUs."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import bridge_place, plans
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import Release
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases
from ansible_collections.baremetal.inference.plugins.module_utils.hardware import host_memory

from ..conftest import stage

GIB = 1024


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path)


@pytest.mark.parametrize(
    ("origin", "target", "available", "problem"),
    [
        (3 * GIB, 3 * GIB, 4 * GIB, ""),
        (3 * GIB, 3 * GIB, 2 * GIB, "has 2.0 GiB of memory left, 1.0 GiB too little"),
        # The target fits with the origin, but not with a second engine of the target.
        (1 * GIB, 8 * GIB, 9 * GIB, "has 9.0 GiB of memory left, 6.0 GiB too little"),
        (None, 3 * GIB, 4 * GIB, "the memory that both engines would take is unknown"),
        (3 * GIB, 3 * GIB, None, "the memory that both engines would take is unknown"),
    ],
)
def test_both_engines_must_fit_into_the_memory_of_the_host(
    origin: int | None, target: int, available: int | None, problem: str
) -> None:
    found = bridge_place._in_memory(origin, target, available)
    assert problem in found and bool(problem) == bool(found)


def gpu(index: int, **more: Any) -> dict[str, Any]:
    found = {"index": index, "uuid": f"GPU-{index}", "reported": True, "memory_total_mib": 80 * GIB, "processes": []}
    return {**found, **more}


def test_gpus_without_an_instance_or_a_process_are_free() -> None:
    node = [gpu(0), gpu(1), gpu(2, processes=[{"pid": 1}]), gpu(3), gpu(4)]
    assert bridge_place.free_gpus(["0", "GPU-1"], 2, node) == ("3", "4")
    assert bridge_place.free_gpus(["0", "1"], 3, node) == ()


def test_a_gpu_whose_processes_cannot_be_listed_is_not_free() -> None:
    node = [gpu(0), gpu(1, processes=None), gpu(2)]
    assert bridge_place.free_gpus(["0"], 1, node) == ("2",)
    assert bridge_place.free_gpus(["0"], 2, node) == ()


@pytest.mark.parametrize(
    ("flags", "needed", "free", "problem"),
    [
        ({"kv-cache-memory-bytes": "8G", "gpu-memory-utilization": 0.4}, 20 * GIB, 48 * GIB, ""),
        ({"gpu-memory-utilization": 0.4}, 20 * GIB, 48 * GIB, "the flag kv-cache-memory-bytes"),
        # To start, the engine needs the share gpu-memory-utilization as free memory, even if it then takes less.
        ({"kv-cache-memory-bytes": "8G"}, 20 * GIB, 60 * GIB, "GPU 0 has 67.2 GiB of memory too little"),
        ({"kv-cache-memory-bytes": "8G", "gpu-memory-utilization": 0.4}, None, 48 * GIB, "take on one GPU is unknown"),
        ({"kv-cache-memory-bytes": "8G", "gpu-memory-utilization": 0.4}, 20 * GIB, None, "is not known"),
    ],
)
def test_two_engines_share_gpus_only_with_a_fixed_cache_and_enough_free_memory(
    paths: Paths, flags: dict[str, Any], needed: int | None, free: int | None, problem: str
) -> None:
    stage(paths, "main", 5005)
    release = dataclasses.replace(releases.load(paths, "main", 1), flags=flags)
    found = bridge_place._on_the_same(release, needed, [gpu(0, memory_free_mib=free), gpu(1, memory_free_mib=free)])
    assert problem in found and bool(problem) == bool(found)


class Node(plans.Hardware):
    """GPUs without a driver to ask."""

    def __init__(self, *found: dict[str, Any]) -> None:
        super().__init__(Path("/nonexistent"))
        self._facts = {"gpus": list(found)}


@pytest.fixture
def on_node(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Set the GPUs of the node, and the result of each plan."""

    def have(gpus: list[dict[str, Any]], ok: bool | None, gib: float | None = None) -> list[plans.Engine]:
        asked: list[plans.Engine] = []

        def plan(engine: plans.Engine, _hardware: plans.Hardware) -> dict[str, Any]:
            asked.append(engine)
            held = {"draft_gib": 0, "adapters_gib": 0, "overhead_gib": 1.0, "kv_cache_gib": 1.0}
            return {"ok": ok, "estimate": {"weights_gib": gib, **held}}

        monkeypatch.setattr(plans, "Hardware", lambda _root: Node(*gpus))
        monkeypatch.setattr(plans, "plan", plan)
        return asked

    return have


def test_a_bridge_gets_gpus_that_are_free(paths: Paths, on_node: Any) -> None:
    stage(paths, "main", 5005)
    files.write_json(paths.instance("main"), {"schema": 1, "release": 1})
    asked = on_node([gpu(0), gpu(1), gpu(2), gpu(3)], None)
    assert bridge_place.place(paths, "main", 1, 1) == bridge_place.Place(("2", "3"))
    assert (asked[0].gpus, asked[0].flags) == (("2", "3"), {"dtype": "float32"})


def test_without_free_gpus_a_bridge_must_share_those_of_its_instance(paths: Paths, on_node: Any) -> None:
    stage(paths, "main", 5005)
    files.write_json(paths.instance("main"), {"schema": 1, "release": 1})
    on_node([gpu(0), gpu(1)], None, 2.0)
    problem = bridge_place.place(paths, "main", 1, 1).problem
    share = "two engines share GPUs only if the model has the flag kv-cache-memory-bytes"
    assert problem == f"no 2 GPUs of this node are free for it, and {share}"
    # Free GPUs on which the bridge does not fit do not count.
    on_node([gpu(0), gpu(1), gpu(2), gpu(3)], False, 2.0)
    assert bridge_place.place(paths, "main", 1, 1).problem == problem


def test_a_bridge_without_gpus_needs_memory(paths: Paths, on_node: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stage(paths, "main", 5005)
    load = releases.load

    def loaded(paths: Paths, name: str, number: int) -> Release:
        return dataclasses.replace(load(paths, name, number), accelerator="cpu", flags={"tensor-parallel-size": 2})

    monkeypatch.setattr(releases, "load", loaded)
    on_node([], None, 2.0)
    # Two workers of 4 GiB each, and the server.
    monkeypatch.setattr(host_memory, "available", lambda _root: 9 * GIB)
    assert bridge_place.place(paths, "main", 1, 1) == bridge_place.Place()
    monkeypatch.setattr(host_memory, "available", lambda _root: 9 * GIB - 1)
    assert "too little for a second engine" in bridge_place.place(paths, "main", 1, 1).problem
    on_node([], None, None)
    assert "the memory that both engines would take is unknown" in bridge_place.place(paths, "main", 1, 1).problem
