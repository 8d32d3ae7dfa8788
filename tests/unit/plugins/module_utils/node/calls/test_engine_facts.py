# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module engine_facts: each subset by itself, and of which instances."""

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

LOOK = throughput.Counters("tiny-a", at=10.0, started=1.0, tokens=400.0, seconds=10.0, work=600.0)


@pytest.fixture
def facts(two_instances: Paths, monkeypatch: pytest.MonkeyPatch, run_module: Callable[..., dict[str, Any]]) -> Facts:
    """Calls the module on a node with `main`, which runs, and `other`, which has never run."""
    monkeypatch.setattr(engine_facts, "Paths", lambda: two_instances)
    monkeypatch.setattr(load_time, "seconds", lambda name: None)
    monkeypatch.setattr(update_facts.prepare, "missing", lambda release, docker: [])
    monkeypatch.setattr(throughput, "read", lambda paths, name: LOOK if name == "main" else None)
    return lambda **given: run_module(engine_facts, **given)


def test_which_instances_a_node_has(facts: Facts) -> None:
    found = facts()
    assert [(one["name"], one["release"], one["serving"]) for one in found["instances"]] == [
        ("main", 1, True),
        ("other", None, False),
    ]
    endpoint = {"address": "127.0.0.1", "port": 5005, "marks": []}
    assert [one["endpoints"] for one in found["instances"]] == [[endpoint], []]
    assert found["instances"][0]["model"] == "main-model" and found["bridges"] == []
    assert found["changed"] is False and not {"updates", "counters"} & set(found)


def test_what_engines_have_counted(facts: Facts) -> None:
    said = facts(gather_subset=["counters"], names=["main", "side"])
    assert said["counters"] == {"main": asdict(LOOK), "side": {}}
    assert not {"instances", "bridges", "updates"} & set(said)


def test_what_is_due(facts: Facts) -> None:
    said = facts(gather_subset=["update"], names=["main"], targets={"main": 1})
    (found,) = said["updates"]
    assert (found["name"], found["origin"], found["target"], found["due"]) == ("main", 1, 1, False)
    assert (found["runs"], found["problems"]) == ("main-model ab12cd34ef56 vllm@sha256:1", [])
    assert not {"instances", "counters"} & set(said)


def test_everything_of_all_instances(facts: Facts) -> None:
    said = facts(gather_subset=["all"])
    assert [one["name"] for one in said["updates"]] == list(said["counters"]) == ["main", "other"]
    assert len(said["instances"]) == 2


def test_a_damaged_state_is_named(facts: Facts, two_instances: Paths) -> None:
    desired = two_instances.instance("other")
    desired.parent.mkdir(parents=True, exist_ok=True)
    desired.write_text("{")
    said = facts()
    assert said["failed"] and said["msg"]
