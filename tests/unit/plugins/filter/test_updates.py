# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters for updates, maintenance and removals, with the results of modules as input."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.baremetal.inference.plugins.filter.updates import FilterModule
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instance_facts import (
    BridgeFacts,
    InstanceFacts,
    UpdateFacts,
)

FILTERS = FilterModule().filters()

GATEWAY: dict[str, Any] = {
    "gateway": "gw",
    "name": "main",
    "known": True,
    "silent": "",
    "bridge_known": True,
    "up": ["a", "b"],
    "hold_seconds": 120,
    "changed": False,
}
INSTANCE = InstanceFacts(
    "main",
    "tiny-a",
    1,
    serving=True,
    running=True,
    swapping=False,
    drained_by="",
    drain_reason="",
    load_seconds=4.0,
).to_dict()
UPDATE = UpdateFacts(
    "main",
    "tiny-b",
    "tiny-b r image",
    origin=1,
    target=2,
    due=True,
    interrupted=False,
    serving=True,
    load_seconds=4.0,
    drained_by="",
    drained_until="",
    bridge=BridgeFacts("main_bridge", None, problem="it has no bridge_port"),
    problems=(),
).to_dict()


def test_the_plan_of_an_update_has_batches_problems_and_lines() -> None:
    hosts = {host: {"instances": [UPDATE], "gateways": [GATEWAY], "unreachable": []} for host in ("a", "b")}
    made = FILTERS["update_plan"](hosts, ["1"], allow_downtime=False)
    assert json.loads(json.dumps(made)) == made
    turn = {"name": "main", "origin": 1, "release": 2, "way": "others", "vouched": False}
    assert made["batches"] == [[{"host": "a", **turn}], [{"host": "b", **turn}]]
    assert made["problems"] == [] and len(made["lines"]) == 2
    assert FILTERS["update_plan"](hosts, ["1"], ["main"], "tiny-c")["problems"] == [
        "model 'tiny-c': no node of this run has this model: did you mean 'tiny-b'? known: tiny-b"
    ]


def test_the_plan_of_a_maintenance_has_batches_problems_and_lines() -> None:
    host = {"due": ["update curl"], "drain": True, "reboot": False, "gateway": False, "unreachable": []}
    hosts = {"a": {**host, "instances": [INSTANCE], "gateways": [{**GATEWAY, "up": ["a"]}]}}
    made = FILTERS["maintenance_plan"](hosts, ["1"], 90)
    assert made == {
        "batches": [[{"host": "a", "drain": True, "alone": ["main"], "drain_seconds": 30, "gangs": []}]],
        "problems": [],
        "lines": ["batch 1: a: update curl, drained"],
    }
    assert len(FILTERS["maintenance_plan"](hosts, ["1"], 121)["problems"]) == 1
    assert FILTERS["maintenance_plan"](hosts, ["1"], 121, True)["problems"] == []
    assert FILTERS["maintenance_plan"](hosts, ["1"], 90, left_out=["b"])["lines"][0].startswith("b cannot be reached")


@pytest.mark.parametrize(
    ("chosen", "names"),
    [
        ({"instance": "main"}, ["main"]),
        ({"model": "tiny-a"}, ["main"]),
        ({"everything": True}, ["main", "side"]),
        ({"orphans": True}, ["main"]),
        ({}, []),
    ],
)
def test_the_plan_of_a_removal_names_the_chosen_instances(chosen: dict[str, Any], names: list[str]) -> None:
    declared = [{"name": "side", "model": "tiny-b"}]
    hosts = {"a": {"instances": [INSTANCE], "declared": declared, "gateways": [GATEWAY], "unreachable": []}}
    made = FILTERS["removal_plan"](hosts, **chosen)
    assert (made["names"], made["problems"]) == ({"a": names}, [])
    assert made["lines"]


def test_an_update_reports_its_swaps_and_the_failed_nodes() -> None:
    swapped = {"name": "main", "origin": 1, "release": 2, "outcome": "done", "line": "it serves", "failure": ""}
    run = {
        "hosts": ["a", "b"],
        "playing": ["a", "b"],
        "kept": {"a": {"swaps": [swapped]}},
        "playbook": "baremetal.inference.update_model",
    }
    batch = [{"host": "a", "name": "main", "origin": 1, "release": 2}, {"host": "b", "name": "main", "release": 2}]
    assert FILTERS["update_turn"](batch, "b", run) == batch[1] and FILTERS["update_failed"](run) == []
    assert FILTERS["update_turn"](batch, "a", run, True)["release"] == 1
    assert FILTERS["update_report"](run, "a", {}) == {"lines": ["it serves"], "state": [], "failure": ""}
    lost = {**run, "playing": ["a"], "kept": {"b": {"under_way": "main"}}, "outdated_gateways": {}, "left_out": ["c"]}
    assert FILTERS["update_failed"](lost) == ["b"]
    report = FILTERS["update_report"](lost, "a", {"b": {"msg": "gone"}})
    assert report["state"] == ["b: its instances are unknown: gone"] and "c could not be reached" in report["failure"]


def test_the_texts_of_a_maintenance_and_of_waiting_changes_are_returned() -> None:
    settings = dict.fromkeys(("journal_max_mib", "journal_max_days", "keep_models", "keep_releases"), 0)
    days = {"certificate_warn_days": 3, "certificate_fail_days": 1}
    named = {f"maintenance_{key}": value for key, value in {**settings, **days, "updates": "all"}.items()}
    found = FILTERS["maintenance_mistakes"]({**named, "maintenance_parts": ["updates"]}, ["updates"])
    assert found == ["maintenance_keep_models must be 1 or more (found 0)"]
    assert "b is done.\nc could not" in FILTERS["maintenance_failure"](["a"], "b", "is done.", ["c"])
    assert FILTERS["maintenance_unsound"]({"certificates": [], "damaged": []}) == ""
    stage = {"releases": [], "orphans": ["old"], "bridges": []}
    assert FILTERS["waiting_lines"](stage, "a")[0].startswith("a still has old")


def test_a_renamed_variable_is_named_with_its_new_name() -> None:
    assert FILTERS["renamed_variables"](["vllm_update_force"]) == "vllm_update_force is now called update_force"


def test_a_plan_that_does_not_fit_is_refused_where_it_would_start() -> None:
    estimate = dict.fromkeys(("weights_gib", "overhead_gib", "kv_cache_gib", "spare_gib", "max_concurrency"))
    plan = {
        "ok": False,
        "instance": "main",
        "model": "tiny-b",
        "revision": None,
        "gpus": None,
        "devices": [],
        "estimate": estimate,
        "change": {"action": "update", "active": 1, "desired": 2, "served": False, "differences": []},
        "problems": [{"check": "length", "key": "max-model-len", "value": 9, "message": "is too long", "fits": []}],
    }
    found = {"plans": [plan], "problems": []}
    assert "max-model-len: 9: is too long" in FILTERS["fit_refusal"](found)
    assert FILTERS["fit_refusal"](found, swaps=False) == FILTERS["fit_refusal"](found, ["side"]) == ""


def test_the_models_of_one_run_replace_the_declared_models() -> None:
    assert FILTERS["set_models"]('{"main":', '"tiny-b"}') == {"main": "tiny-b"}
    with pytest.raises(AnsibleFilterError, match="a dictionary of models by instance"):
        FILTERS["set_models"]("main")
    assert FILTERS["with_models"]([{"name": "main", "model": "a"}], {"main": "b"}) == [{"name": "main", "model": "b"}]
