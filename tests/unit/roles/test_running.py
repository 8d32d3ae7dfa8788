# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gateways and targets of Prometheus name the models that the nodes report."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

# The scenario `rolling` runs these plays with the newest ansible-core.
pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[3]

HOSTS = """
[inference]
a inference_address=192.0.2.1
b inference_address=192.0.2.2
[gateway]
gw ansible_host=192.0.2.8
[monitoring]
mon ansible_host=192.0.2.9
"""

RUNNING = {"ansible.builtin.include_role": {"name": "baremetal.inference.vllm", "tasks_from": "running"}}

Call = dict[str, Any]


RETURNED = {"name": "main", "origin": 1, "release": 2, "outcome": "returned", "failure": "it is bad."}

SWAPPED = [
    {
        "name": "Swap",
        "ansible.builtin.set_fact": {"__update_outcome": {"swaps": [RETURNED]}},
        "when": "inventory_hostname in failing | default([])",
    }
]
"""A task that replaces those that swap."""


@pytest.fixture
def stage(staged: Callable[..., Any]) -> Any:
    return staged(["engine_facts", "gateway", "node_lock"], {"roles/update/tasks/main.yml": json.dumps(SWAPPED)})


def reports(on: str, model: str, release: int | None = 2) -> tuple[Call, Call]:
    """What a node reports of its engine."""
    state = {"serving": True, "running": True, "swapping": False, "drained_by": "", "drain_reason": ""}
    engine = {"name": "main", "model": model, "release": release, **state, "load_seconds": None}
    return {"module": "engine_facts", "on": on}, {"instances": [engine]}


@pytest.mark.full
@pytest.mark.parametrize("limit", ["a,gw", "gw"])
def test_every_node_is_read_once_and_an_unreachable_node_stops_no_host(stage: Any, limit: str) -> None:
    each = "{{ node }}={{ hostvars[node].vllm_engines.instances | default(['?']) | length }}"
    counts = f"{{% for node in groups.inference %}}{each} {{% endfor %}}"
    variables = {"vllm_nodes": "{{ groups.inference }}", "vllm_namers": ["gw"]}
    play = {"hosts": "all", "vars": variables, "tasks": [RUNNING]}
    say = {"ansible.builtin.debug": {"msg": f"counts: {counts}"}}
    hosts = HOSTS.replace("[gateway]", f"gone {stage.gone}\n[gateway]")
    again = {**play, "hosts": "gateway", "tasks": [RUNNING, say]}
    succeeded, output = stage.run([play, again], hosts, "--limit", limit, seen=[reports("gw", "x"), reports("a", "x")])
    assert succeeded, output
    assert "counts: a=1 b=1 gone=1" in output and output.count("gone cannot report what its engines run") == 1, output
    # Each node of the play reads its own engines. The first host reads the others'. A call on gone leaves no record.
    asked = [call["on"] for call in stage.calls(module="engine_facts")]
    assert sorted(asked) == (["a", "a"] if limit == "a,gw" else ["gw", "gw"])


@pytest.mark.full
def test_without_a_gateway_in_the_run_only_its_own_nodes_are_read(stage: Any) -> None:
    variables = {"vllm_nodes": "{{ groups.inference }}", "vllm_namers": ["gw", "mon"]}
    play = {"hosts": "all", "vars": variables, "tasks": [RUNNING]}
    succeeded, output = stage.run([play], HOSTS, "--limit", "a", seen=[reports("a", "x")])
    assert succeeded and [call["on"] for call in stage.calls(module="engine_facts")] == ["a"], output
    assert "cannot report what its engines run" not in output


@pytest.fixture
def update(stage: Any, tmp_path: Path) -> Callable[..., tuple[bool, str]]:
    """The plays of update_model.yml from the swaps to the report. SWAPPED replaces the swaps."""
    plays = yaml.safe_load((ROOT / "playbooks/update_model.yml").read_text(encoding="utf-8"))
    names = [play["name"] for play in plays]
    plays = plays[
        names.index("Swap the instances, batch by batch") : names.index("Report the result of the update") + 1
    ]
    (tmp_path / "engine.json").write_text("[]")
    variables = {
        "ansible_become": False,
        "instances": [{"name": "main", "model": "new", "port": 5005}],
        "models": {},
        "gateway_keys": [{"name": "portal", "key": "a-key-of-20-letters-", "models": ["new"]}],
        "update_run_id": "run1",
        "reached": {"ping": "pong"},
        "__monitoring_engine_targets": str(tmp_path / "engine.json"),
        "__gateway_state": str(tmp_path / "gateway.json"),
    }

    def run(hosts: str, *options: str, **more: Any) -> tuple[bool, str]:
        given = json.dumps({**variables, **more.pop("extra", {})})
        found: tuple[bool, str] = stage.run(plays, hosts, "--extra-vars", given, *options, **more)
        return found

    return run


@pytest.mark.full
@pytest.mark.parametrize(
    ("model", "back", "refused"), [("new", False, False), ("gone", False, True), ("gone", True, False)]
)
def test_an_update_first_checks_the_configuration_of_the_gateways(
    stage: Any, model: str, back: bool, refused: bool
) -> None:
    """A rollback is not refused."""
    plays = yaml.safe_load((ROOT / "playbooks/update_model.yml").read_text(encoding="utf-8"))
    (play,) = [play for play in plays if play["name"] == "Check the new configuration of the gateways"]
    given = {
        "instances": [{"name": "main", "model": "new", "port": 5005}],
        "gateway_keys": [{"name": "portal", "key": "a-key-of-20-letters-", "models": [model]}],
        "update_back": back,
    }
    # The check needs no connection to a host.
    hosts = HOSTS.replace("gw ", f"gw {stage.gone} ")
    succeeded, output = stage.run([play], hosts, "--extra-vars", json.dumps(given))
    assert succeeded is not refused, output
    assert not refused or "gateway_keys[0] (portal)" in output


def names(call: Call) -> list[str]:
    """The model names that a gateway lists with this configuration."""
    return [model["id"] for model in json.loads(call["plan"]["files"]["models.json"])["data"]]


def test_gateways_and_targets_have_the_served_models_after_an_update(stage: Any, update: Any, tmp_path: Path) -> None:
    succeeded, output = update(HOSTS, seen=[reports("a", "new"), reports("b", "old", 1)])
    assert succeeded, output
    (call,) = stage.calls(module="gateway")
    assert call["on"] == "gw" and names(call) == ["main", "new", "old"]
    labels = {group["labels"]["node"]: group["labels"] for group in json.loads((tmp_path / "engine.json").read_text())}
    assert {node: (found["model"], found["release"]) for node, found in labels.items()} == {
        "a": ("new", "2"),
        "b": ("old", "1"),
    }


@pytest.mark.once
def test_gateways_are_configured_after_a_failed_update_before_the_run_fails(stage: Any, update: Any) -> None:
    succeeded, output = update(HOSTS, seen=[reports("a", "old"), reports("b", "old")], extra={"failing": ["a"]})
    assert (
        not succeeded and "baremetal.inference.update_model stopped: it failed on a. a, main: it is bad." in output
    ), output
    assert "b: main: release 2 (old) serves" in output
    (call,) = stage.calls(module="gateway")
    # The key may use the model of the inventory, whichever release serves.
    assert names(call) == ["main", "old"] and call["plan"]["maps"]["rights.map"].endswith("|set_main 1\n")
    assert {call["on"] for call in stage.calls(module="node_lock", state="released")} == {"a", "b"}


@pytest.mark.once
def test_an_update_keeps_the_active_settings_of_a_gateway(stage: Any, update: Any, tmp_path: Path) -> None:
    (tmp_path / "gateway.json").write_text(json.dumps({"settings": {"port": 8100, "memory_max": "40%"}}))
    succeeded, output = update(HOSTS, seen=[reports("a", "new"), reports("b", "new")], extra={"gateway_port": 8200})
    assert (
        succeeded
        and "gw: the gateway runs without these changes of the inventory: gateway_memory_max, gateway_port." in output
    ), output
    assert "run baremetal.inference.site -l gw." in output
    (call,) = stage.calls(module="gateway")
    assert ":8100" in call["plan"]["config"] and ":8200" not in call["plan"]["config"]
    assert (call["settings"]["port"], call["memory_max"]) == (8100, "40%")


def test_a_gateway_that_fails_or_is_unreachable_is_reported_at_the_end(stage: Any, update: Any, tmp_path: Path) -> None:
    more = "".join(f"{name} ansible_host=192.0.2.7 {stage.gone}\n" for name in ("gone", "out"))
    hosts = HOSTS.replace("gw ", f"{more}gw ")
    refused = [{"module": "gateway", "on": "gw"}]
    gateways = {"update_gateways": ["gw", "gone"]}
    succeeded, output = update(hosts, failures=refused, seen=[reports("a", "new"), reports("b", "new")], extra=gateways)
    assert (
        not succeeded and "has swapped all due instances, but some gateways do not have the new model names" in output
    ), output
    before = "still has the model names from before the run:"
    assert f"gw {before} Configure | Configure HAProxy: gateway was told to fail" in output
    assert f"gone {before} Refresh | Refuse to go on without this gateway: gone cannot be reached" in output
    # A gateway outside of update_gateways is not configured. The targets change nevertheless.
    assert f"out {before}" not in output and '"release": "2"' in (tmp_path / "engine.json").read_text()
    assert {call["on"] for call in stage.calls(module="node_lock", state="released")} == {"a", "b"}


@pytest.mark.full
def test_hosts_outside_of_the_limit_are_reported(stage: Any, update: Any) -> None:
    succeeded, output = update(HOSTS, "--limit", "a", seen=[reports("a", "new")])
    assert succeeded and "gw, mon were not updated" in output and "baremetal.inference.site -l gw,mon" in output, output
    assert stage.calls(module="gateway") == []
