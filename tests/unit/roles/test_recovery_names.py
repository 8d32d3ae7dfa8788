# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which instances an action of recovery changes, on two nodes whose inferctl is a stand-in."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]

TASKS = "roles/recovery/tasks"

Call = dict[str, Any]

Undrain = Callable[[Sequence[str]], tuple[bool, str, list[Call]]]


def status(on: str, *names: str) -> tuple[Call, Call]:
    """The answer of inferctl status on a node with these instances."""
    asked = {"module": "inferctl", "on": on, "argv": ["inferctl", "status", "--json"]}
    return asked, {"rc": 0, "stdout": json.dumps({"instances": [{"name": name} for name in names]})}


def tasks(*names: str) -> dict[str, str]:
    """These files of the role, with the stand-in in place of inferctl."""
    return {
        f"{TASKS}/{name}": (ROOT / TASKS / name)
        .read_text(encoding="utf-8")
        .replace("ansible.builtin.command:", "baremetal.inference.inferctl:")
        for name in names
    }


@pytest.fixture
def undrain(staged: Callable[..., Any]) -> Undrain:
    """Undrain instances of the nodes a (main) and b (main, side). Returns the calls of undrain."""
    stage = staged(("inferctl",), tasks("names.yml", "undrain.yml"))

    def run(names: Sequence[str]) -> tuple[bool, str, list[Call]]:
        include = {"name": "baremetal.inference.recovery", "tasks_from": "undrain"}
        task = {"ansible.builtin.include_role": include, "vars": {"recovery_names": names}}
        done = ({"module": "inferctl"}, {"stdout": json.dumps({"changed": True})})
        seen = [done, status("a", "main"), status("b", "main", "side")]
        succeeded, output = stage.run([{"hosts": "a:b", "tasks": [task]}], "a\nb", seen=seen)
        return succeeded, output, [call for call in stage.calls() if "undrain" in call["argv"]]

    return run


def test_an_instance_is_undrained_only_on_nodes_that_have_it(undrain: Undrain) -> None:
    succeeded, output, calls = undrain(["side"])
    assert succeeded, output
    assert [(call["on"], call["argv"][-1]) for call in calls] == [("b", "side")]


def test_a_name_that_no_node_has_is_refused_before_any_instance_is_undrained(undrain: Undrain) -> None:
    succeeded, output, calls = undrain(["main", "mian"])
    assert not succeeded and "None of a, b has an instance mian." in output, output
    assert calls == []


@pytest.mark.parametrize(("names", "fails"), [([], False), (["main"], True)])
def test_an_action_on_a_follower_alone_names_the_leader_and_fails_for_a_named_gang(
    staged: Callable[..., Any], names: list[str], fails: bool
) -> None:
    stage = staged(("inferctl",), tasks("names.yml", "operate.yml"))
    include = {"name": "baremetal.inference.recovery", "tasks_from": "operate"}
    variables = {"recovery_names": names, "recovery_action": "reset"}
    task = {"ansible.builtin.include_role": include, "vars": variables}
    asked, answer = status("b", "main")
    answer["stdout"] = json.dumps({"instances": [{"name": "main", "leader": "a"}]})
    succeeded, output = stage.run([{"hosts": "a:b", "tasks": [task]}], "a\nb", "-l", "b", seen=[(asked, answer)])
    said = " ".join(output.split())
    assert "b is only a follower of main: " in said and "Run the playbook again with -l a." in said, output
    assert succeeded != fails, output
    assert not [call for call in stage.calls() if "recover" in call["argv"]]


@pytest.mark.parametrize("verb", ["drain", "undrain"])
@pytest.mark.parametrize("changed", [True, False])
def test_check_mode_reports_what_would_change(staged: Callable[..., Any], verb: str, changed: bool) -> None:
    stage = staged(("inferctl",), tasks("names.yml", f"{verb}.yml"))
    include = {"name": "baremetal.inference.recovery", "tasks_from": verb}
    variables = {"recovery_names": [], "recovery_drain_reason": "disk"}
    task = {"ansible.builtin.include_role": include, "vars": variables}
    outcomes = [{"instance": "main", "changed": changed}, {"instance": "side", "changed": False}]
    done = ({"module": "inferctl"}, {"stdout": json.dumps({"changed": changed, "instances": outcomes})})
    seen = [done, status("a", "main", "side")]
    succeeded, output = stage.run([{"hosts": "a", "tasks": [task]}], "a", "--check", seen=seen)
    assert succeeded, output
    (call,) = [call for call in stage.calls() if verb in call["argv"]]
    assert "--dry-run" in call["argv"] and call["argv"][-2:] == ["main", "side"] and not call["check_mode"]
    assert (f'a: would {verb} main"' in output) == changed, output
    assert f"changed={int(changed)} " in output


@pytest.mark.parametrize(
    ("action", "changed", "act", "would"),
    [
        ("reset", True, "", True),
        ("disarm", False, "", False),
        ("recover", False, "restart", True),
        ("recover", False, "wait", False),
        ("status", False, "", False),
    ],
)
def test_check_mode_of_an_action_reports_what_would_change(
    staged: Callable[..., Any], action: str, changed: bool, act: str, would: bool
) -> None:
    stage = staged(("inferctl",), tasks("names.yml", "operate.yml"))
    include = {"name": "baremetal.inference.recovery", "tasks_from": "operate"}
    task = {
        "ansible.builtin.include_role": include,
        "vars": {"recovery_names": ["main"], "recovery_action": action},
    }
    reports = [{"instance": "main", "act": act}] if act else []
    document = {"changed": changed, "reports": reports, "instances": [{"instance": "main"}]}
    seen = [({"module": "inferctl"}, {"rc": 0, "stdout": json.dumps(document)}), status("a", "main")]
    succeeded, output = stage.run([{"hosts": "a", "tasks": [task]}], "a", "--check", seen=seen)
    assert succeeded, output
    (call,) = [call for call in stage.calls() if "recover" in call["argv"]]
    assert ("--dry-run" in call["argv"]) == (action != "status") and not call["check_mode"]
    assert (f'a: would {action} main"' in output) == would, output
    assert f"changed={int(would)} " in output
