# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action node_lock adds the run's process, and takes over the lock of a killed run of the same playbook."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible.plugins.action import ActionBase

from ansible_collections.baremetal.inference.plugins.action import node_lock
from ansible_collections.baremetal.inference.plugins.module_utils.fleet import playbook_process

GIVEN = {"playbook": "baremetal.inference.update_model", "run_id": "run2"}
HOLDER = {**GIVEN, "run_id": "run1", "process": "its process"}
HELD = {"failed": True, "msg": "run1 has it", "holder": HOLDER}
TAKEN = {"changed": True}


def locked(
    monkeypatch: pytest.MonkeyPatch, answers: list[dict[str, Any]], ended: bool
) -> tuple[Any, list[dict[str, Any]]]:
    """The action's result if the module returns these answers in turn, and the options of each call."""
    calls: list[dict[str, Any]] = []

    def execute(_self: ActionBase, module_args: dict[str, Any], task_vars: dict[str, Any]) -> dict[str, Any]:
        calls.append(module_args)
        return answers[len(calls) - 1]

    monkeypatch.setattr(ActionBase, "run", lambda *_arguments: {})
    monkeypatch.setattr(ActionBase, "_execute_module", execute)
    monkeypatch.setattr(playbook_process, "of_this_run", lambda: "this process")
    monkeypatch.setattr(playbook_process, "has_ended", lambda process: ended and process == "its process")
    action: Any = node_lock.ActionModule.__new__(node_lock.ActionModule)
    action._task = SimpleNamespace(args=GIVEN)
    return action.run(task_vars={}), calls


def test_the_module_gets_the_process_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    assert locked(monkeypatch, [TAKEN], ended=False) == (TAKEN, [{**GIVEN, "process": "this process"}])


def test_the_lock_of_a_run_that_was_killed_on_this_controller_is_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    result, calls = locked(monkeypatch, [HELD, TAKEN], ended=True)
    assert result == TAKEN
    assert [call.get("take") for call in calls] == [None, "run1"]


@pytest.mark.parametrize(
    ("playbook", "ended"),
    [("baremetal.inference.update_model", False), ("baremetal.inference.maintenance", True)],
    ids=["alive", "another playbook"],
)
def test_another_run_keeps_its_lock(monkeypatch: pytest.MonkeyPatch, playbook: str, ended: bool) -> None:
    held = {**HELD, "holder": {**HOLDER, "playbook": playbook}}
    assert locked(monkeypatch, [held], ended)[0] == held
