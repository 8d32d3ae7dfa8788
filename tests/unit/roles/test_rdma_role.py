# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role rdma: what makes it due, and what its tasks do. The modules are stand-ins."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .conftest import Stage

SAME: dict[str, Any] = {
    "due": False,
    "change_pending": False,
    "pending": [],
    "serving": [],
    "missing_packages": [],
    "desired": {},
}

MODULES = ("rdma_settings", "node_tool")


def role(*tasks_from: str) -> dict[str, Any]:
    name: dict[str, Any] = {"name": "baremetal.inference.rdma"}
    return {
        "name": "Rails",
        "ansible.builtin.include_role": name | ({"tasks_from": tasks_from[0]} if tasks_from else {}),
    }


def test_a_difference_makes_the_rails_due_and_a_change_that_waits_does_not(staged: Callable[..., Stage]) -> None:
    say = {
        "name": "Say",
        "ansible.builtin.debug": {"msg": "{{ inventory_hostname }}={{ rdma_due }},{{ rdma_change_pending }}"},
    }
    stage = staged(MODULES)
    seen = [
        ({"module": "rdma_settings"}, SAME),
        ({"module": "rdma_settings", "on": "differs"}, {"due": True}),
        (
            {"module": "rdma_settings", "on": "waits"},
            {"change_pending": True, "pending": ["mtu: 1"], "serving": ["main"]},
        ),
    ]
    play = {"name": "See", "hosts": "all", "tasks": [role("preflight"), say]}
    done, output = stage.run([play], "same\ndiffers\nwaits", seen=seen)
    assert done, output
    answers = dict(re.findall(r'"msg": "(\w+)=(\w+,\w+)"', output))
    assert answers == {"same": "False,False", "differs": "True,False", "waits": "False,True"}
    assert all(call["check_mode"] for call in stage.calls(module="rdma_settings"))
    waits = "so they wait until the node is drained. Instances that still serve: main. Run baremetal.inference."
    assert output.count(waits) == 1


def test_the_module_gets_the_variables_without_their_prefix(staged: Callable[..., Stage]) -> None:
    stage = staged(MODULES)
    variables = {
        "rdma_subnets": ["10.1.0.0/16"],
        "rdma_host_index": 7,
        "rdma_ets": {"0": 50, "3": 50},
        "rdma_lossless_priority": None,
        "rdma_management_address": "192.0.2.7",
        "rdma_peers": {"node2": [[], ["10.1.0.0/16"], 8]},
        "rdma_subnet_manager": True,
    }
    play = {"name": "See", "hosts": "all", "vars": variables, "tasks": [role("preflight")]}
    done, output = stage.run([play], "node1", seen=[({"module": "rdma_settings"}, SAME)])
    assert done, output
    (call,) = stage.calls(module="rdma_settings")
    given = call
    assert given["settings"]["subnets"] == ["10.1.0.0/16"] and given["settings"]["host_index"] == 7
    assert given["settings"]["lossless_priority"] is None and given["settings"]["ets"] == {"0": 50, "3": 50}
    assert given["settings"]["mtu"] == 9000 and given["settings"]["relaxed_ordering"] is True
    assert given["address"] == "192.0.2.7" and given["peers"] == {"node2": [[], ["10.1.0.0/16"], 8]}
    assert "opensm" in given["packages"] and given["settings"]["subnet_manager"] is True


def test_a_node_that_has_all_settings_is_left_alone(staged: Callable[..., Stage]) -> None:
    stage = staged(MODULES)
    done, output = stage.run(
        [{"name": "See", "hosts": "all", "tasks": [role()]}], "node1", seen=[({"module": "rdma_settings"}, SAME)]
    )
    assert done and "changed=0" in output, output
    assert len(stage.calls(module="rdma_settings")) == 1 and not stage.calls(module="node_tool")


def test_a_node_that_differs_gets_tools_and_settings(staged: Callable[..., Stage]) -> None:
    stage = staged(MODULES, {"roles/rdma/tasks/install.yml": INSTALL})
    answers = [({"module": "rdma_settings"}, {**SAME, "due": True})]
    done, output = stage.run([{"name": "See", "hosts": "all", "tasks": [role()]}], "node1", seen=answers)
    assert done, output
    assert [call["check_mode"] for call in stage.calls(module="rdma_settings")] == [True, False]
    assert len(stage.calls(module="node_tool")) == 1


INSTALL = """---
- name: Install | Install the command inferctl
  baremetal.inference.node_tool:
"""
"""The tasks without apt, which would change this machine."""
