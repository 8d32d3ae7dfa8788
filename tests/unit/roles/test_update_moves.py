# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Before an update swaps to another port, address or key, it opens ports and configures gateways, or stops."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.engine.environment import mark

# The scenario `rolling` updates nodes with the newest ansible-core.
pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[3]
MODULES = ("engine_facts", "engine_swap", "firewall", "gateway", "gateway_facts", "node_lock")
OLD, NEW = "engine-key-of-before", "engine-key-of-today"
NODES = {"a": "192.0.2.11", "b": "192.0.2.12"}
HOSTS = "\n".join(["[inference]", *(f"{name} inference_address={address}" for name, address in NODES.items())])
HOSTS += "\n[gateway]\ng ansible_host=192.0.2.21"
RUNS = {"port": 5005, "marks": [mark(OLD)]}
INSTANCE = {"name": "main", "model": "tiny", "release": 1, "serving": True, "running": True, "swapping": False}
INSTANCE |= {"drained_by": "", "drain_reason": "", "load_seconds": 1.0}
BRIDGE: dict[str, Any] = {
    "name": "main_bridge",
    "port": None,
    "gpus": [],
    "left": False,
    "certain": True,
    "problem": "none",
}
DUE: dict[str, Any] = {"name": "main", "model": "tiny", "runs": "", "origin": 1, "target": 2, "due": True}
DUE |= {"interrupted": False, "serving": True, "load_seconds": 1.0, "drained_by": "", "drained_until": ""}
DUE |= {"bridge": BRIDGE, "problems": [], "coming": None}
SEEN = {"name": "main", "gateway": "g", "known": True, "silent": "", "bridge_known": False, "hold_seconds": 120}


@pytest.fixture
def update(staged: Callable[..., Any]) -> Callable[..., tuple[bool, str, Any]]:
    """The plays of the playbook from the plan to the swaps. `coming`: whether nodes get another endpoint."""
    found = yaml.safe_load((ROOT / "playbooks/update_model.yml").read_text(encoding="utf-8"))
    names = [play["name"] for play in found]
    plays = found[names.index("Plan the batches") : names.index("Swap the instances, batch by batch") + 1]
    variables: dict[str, Any] = {
        "instances": [{"name": "main", "model": "tiny", "port": 5006}],
        "models": {"tiny": {"model": "/m"}},
        "engine_image": "registry.example/vllm@sha256:" + "0" * 64,
        "gateway_keys": [{"name": "load", "key": "a-key-of-20-letters-"}],
        "common_firewall_enabled": True,
        "update_run_id": "run1",
        "vllm_api_key": NEW,
        "vllm_accepted_keys": [OLD],
    }

    def run(coming: bool, *failures: dict[str, Any], **extra: Any) -> tuple[bool, str, Any]:
        stage = staged(MODULES)
        seen: list[Any] = [({"module": "gateway_facts"}, {**SEEN, "up": ["a", "b"]})]
        seen.append(({"module": "firewall"}, {"differs": []}))
        for host, address in NODES.items():
            runs = [{**RUNS, "address": address}]
            reported = {"instances": [{**INSTANCE, "endpoints": runs}]}
            comes = {"address": address, "port": 5006, "marks": [mark(NEW), mark(OLD)]} if coming else None
            seen += [
                ({"module": "engine_facts", "on": host}, reported),
                ({"module": "engine_facts", "on": host, "names": ["main"]}, {"updates": [{**DUE, "coming": comes}]}),
            ]
        given = [{key: value for key, value in play.items() if key != "become"} for play in plays]
        options = ("-e", json.dumps({**variables, **extra}))
        succeeded, output = stage.run(given, HOSTS, *options, failures=failures, seen=seen)
        return succeeded, output, stage

    return run


def test_gateways_have_both_endpoints_before_the_first_swap(update: Callable[..., Any]) -> None:
    succeeded, output, stage = update(True)
    assert succeeded, output
    order = [call["module"] for call in stage.calls() if call["module"] in ("firewall", "gateway", "engine_swap")]
    assert order[-5:] == ["gateway", *["engine_swap"] * 4] and set(order[:-5]) == {"firewall"}
    (configured,) = stage.calls(module="gateway")
    config, maps = configured["plan"]["config"], configured["plan"]["maps"]
    for name, address in NODES.items():
        assert f"server {name} {address}:5005" in config and f"server main_next.{name} {address}:5006" in config
    assert maps["engines.map"] == f"set_main {OLD}\n"
    (compared,) = stage.calls(module="firewall", on="a")
    assert compared["allow"][0]["port"] == [5006, 5005]


def test_a_gateway_that_cannot_be_configured_stops_every_node(update: Callable[..., Any]) -> None:
    succeeded, output, stage = update(True, {"module": "gateway"})
    assert not succeeded and "gateway was told to fail" in output
    assert stage.calls(module="engine_swap") == []
    assert all(stage.calls(module="node_lock", on=on, state="released") for on in ("a", "b"))


def test_a_key_that_engines_do_not_accept_is_a_problem_of_the_plan(update: Callable[..., Any]) -> None:
    _succeeded, _output, stage = update(True, vllm_accepted_keys=[])
    # The module refuses a plan with problems, and its stand-in does not.
    (configured,) = stage.calls(module="gateway")
    assert "do not all accept one key of the inventory: a, b" in configured["plan"]["problems"][0]


def test_an_unchanged_endpoint_changes_no_gateway_and_no_firewall(update: Callable[..., Any]) -> None:
    succeeded, output, stage = update(False)
    assert succeeded, output
    assert not stage.calls(module="gateway") and not stage.calls(module="firewall")
    assert len(stage.calls(module="engine_swap")) == 4
