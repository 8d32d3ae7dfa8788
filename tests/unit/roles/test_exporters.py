# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""dcgm-exporter and its port are only where engines have GPUs, also if all hosts have the variable of its image."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

# To save time, CI leaves out these tests with newer versions of ansible-core. `controllers --all` runs them there, too.
pytestmark = pytest.mark.once

MAIN = {"name": "main", "model": "tiny", "port": 5005}
INSTANCES = {
    "gpu": [MAIN, {**MAIN, "name": "side", "port": 5006, "accelerator": "cpu"}],
    "cpu": [{**MAIN, "accelerator": "cpu"}],
    "left": [{**MAIN, "state": "absent"}, {**MAIN, "name": "side", "port": 5006, "accelerator": "cpu"}],
}
IMAGE = f"registry.example.com/dcgm-exporter@sha256:{'0' * 64}"


def test_dcgm_runs_and_is_reached_only_where_engines_have_gpus(staged: Callable[[Sequence[str]], Any]) -> None:
    stage = staged(["firewall", "monitoring_exporters"])
    role = {"name": "baremetal.inference.monitoring", "tasks_from": "exporters/configure"}
    play = {
        "name": "Watch",
        "hosts": "all",
        "roles": ["site_variables"],
        "tasks": [
            {"name": "Open", "ansible.builtin.include_tasks": "tasks/firewall.yml"},
            {"name": "Export", "ansible.builtin.include_role": role},
        ],
    }
    variables = {
        "monitoring_dcgm_exporter_image": IMAGE,
        "monitoring_dcgm_exporter_port": 9401,
        "monitoring_sources": ["192.0.2.9"],
        "ansible_host": "192.0.2.2",
    }
    nodes = [f"{node} instances='{json.dumps(instances)}'" for node, instances in INSTANCES.items()]
    hosts = "\n".join(["[gateway]", "gate", "[inference]", *nodes])
    seen = [({"module": "firewall"}, {"installed": True, "differs": []})]
    done, said = stage.run([play], hosts, "--extra-vars", json.dumps(variables), seen=seen)
    assert done, said
    images = {call["on"]: call["dcgm_image"] for call in stage.calls(module="monitoring_exporters")}
    assert images == {"gpu": IMAGE, "cpu": "", "left": "", "gate": ""}
    ports = {
        call["on"]: rule["port"]
        for call in stage.calls(module="firewall")
        for rule in call["allow"]
        if rule["name"] == "exporters"
    }
    assert ports == {"gpu": [9100, 9401], "cpu": [9100], "left": [9100], "gate": [9100]}
