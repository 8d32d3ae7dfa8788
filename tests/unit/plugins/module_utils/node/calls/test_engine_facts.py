# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module engine_facts: each subset alone, and the instances that it covers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import load_time, update_facts
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import throughput
from ansible_collections.baremetal.inference.plugins.module_utils.node.calls import engine_facts

Facts = Callable[..., dict[str, Any]]

COUNTED = throughput.Counters("tiny-a", at=10.0, started=1.0, tokens=400.0, seconds=10.0, work=600.0)


@pytest.fixture
def facts(two_instances: Paths, monkeypatch: pytest.MonkeyPatch, run_module: Callable[..., dict[str, Any]]) -> Facts:
    """Calls the module on a node with `main`, which runs, and `other`, which has never run."""
    monkeypatch.setattr(engine_facts, "Paths", lambda: two_instances)
    monkeypatch.setattr(load_time, "seconds", lambda name: None)
    monkeypatch.setattr(update_facts.prepare, "missing", lambda release, docker: [])
    monkeypatch.setattr(throughput, "read", lambda paths, name: COUNTED if name == "main" else None)
    return lambda **given: run_module(engine_facts, **given)


def test_the_subset_instances_has_releases_and_endpoints(facts: Facts) -> None:
    found = facts()
    assert [(one["name"], one["release"], one["serving"]) for one in found["instances"]] == [
        ("main", 1, True),
        ("other", None, False),
    ]
    endpoint = {"address": "127.0.0.1", "port": 5005, "marks": []}
    assert [one["endpoints"] for one in found["instances"]] == [[endpoint], []]
    assert found["instances"][0]["model"] == "main-model" and found["bridges"] == []
    assert found["changed"] is False and not {"updates", "counters"} & set(found)


def test_the_subset_counters_has_only_counters(facts: Facts) -> None:
    result = facts(gather_subset=["counters"], names=["main", "side"])
    assert result["counters"] == {"main": asdict(COUNTED), "side": {}}
    assert not {"instances", "bridges", "updates"} & set(result)


def test_the_subset_update_has_only_updates(facts: Facts) -> None:
    result = facts(gather_subset=["update"], names=["main"], targets={"main": 1})
    (found,) = result["updates"]
    assert (found["name"], found["origin"], found["target"], found["due"]) == ("main", 1, 1, False)
    assert (found["runs"], found["problems"]) == ("main-model ab12cd34ef56 vllm@sha256:1", [])
    assert not {"instances", "counters"} & set(result)


def test_all_subsets_cover_all_instances(facts: Facts) -> None:
    result = facts(gather_subset=["all"])
    assert [one["name"] for one in result["updates"]] == list(result["counters"]) == ["main", "other"]
    assert len(result["instances"]) == 2


def test_a_damaged_file_of_an_instance_is_an_error(facts: Facts, two_instances: Paths) -> None:
    desired = two_instances.instance("other")
    desired.parent.mkdir(parents=True, exist_ok=True)
    desired.write_text("{")
    result = facts()
    assert result["failed"] and result["msg"]
