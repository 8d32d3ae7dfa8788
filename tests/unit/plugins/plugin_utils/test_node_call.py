# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls of modules that need the library on the node."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.plugins.action import ActionBase

from ansible_collections.baremetal.inference.plugins.module_utils.core.node_call import MISSING, Wanted
from ansible_collections.baremetal.inference.plugins.module_utils.fleet import node_library
from ansible_collections.baremetal.inference.plugins.plugin_utils import node_call

ASKS = {"changed": False, MISSING: True}
SPECIFICATION = {"argument_spec": {"name": {"type": "str"}}}

ANSWER = {"changed": True, "release": 2}


class Library:
    """The library of a run."""

    digest = "d1"

    def encoded(self) -> str:
        return "the archive"


def called(
    monkeypatch: pytest.MonkeyPatch,
    *given: dict[str, Any],
    transport: str = "ssh",
    background: int = 0,
    action: Any = node_call.NodeCall,
    become: Any = None,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The action's result if the module returns these answers in turn, and the options of each call."""
    answers, calls = list(given), []

    def execute(
        _self: ActionBase, module_name: str, module_args: dict[str, Any], task_vars: Any, **how: Any
    ) -> dict[str, Any]:
        wanted = asdict(Wanted.from_text(module_args["node_call"]))
        assert (wanted.pop("module"), wanted.pop("specification")) == ("engine_drain", SPECIFICATION)
        assert module_name == "baremetal.inference.node_call"
        assert task_vars == {"a": 1} and module_args["name"] == "main"
        calls.append({key: value for key, value in {**wanted, **how}.items() if value})
        return dict(answers[len(calls) - 1])

    monkeypatch.setattr(ActionBase, "run", lambda *_arguments: {})
    monkeypatch.setattr(ActionBase, "_execute_module", execute)
    monkeypatch.setattr(node_library, "of_run", lambda directory: Library())
    plugin: Any = action.__new__(action)
    plugin._specification = SPECIFICATION
    plugin._task = SimpleNamespace(
        action="baremetal.inference.engine_drain", args={"name": "main"}, async_val=background
    )
    plugin._connection = SimpleNamespace(transport=transport, has_native_async=False, become=become)
    result = plugin.run(task_vars={"a": 1})
    assert len(calls) == len(answers)
    return result, calls


def test_a_node_with_the_library_of_the_run_is_called_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert called(monkeypatch, ANSWER) == (ANSWER, [{"digest": "d1"}])


def test_a_node_without_the_library_of_the_run_gets_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    archive = {"digest": "d1", "archive": "the archive"}
    assert called(monkeypatch, ASKS, ANSWER) == (ANSWER, [{"digest": "d1"}, archive])


def test_the_failure_of_a_module_is_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = {"failed": True, "msg": "no"}
    assert called(monkeypatch, failed)[0] == failed
    assert called(monkeypatch, ASKS, failed)[0] == failed


def test_a_local_call_uses_the_collection_of_the_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    assert called(monkeypatch, ANSWER, transport="local")[1] == [{"digest": "d1", "path": str(node_library.ROOT)}]


class Own(node_call.NodeCall):
    """An action whose call the controller answers itself."""

    def _is_own_question(self) -> bool:
        return True

    def _answer(self) -> dict[str, Any]:
        return {"own": True}


def test_the_controller_answers_its_own_question_only_locally_and_without_become(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert called(monkeypatch, transport="local", action=Own) == ({"own": True}, [])
    assert called(monkeypatch, ANSWER, transport="local", action=Own, become="sudo")[0] == ANSWER
    assert called(monkeypatch, ANSWER, action=Own)[0] == ANSWER


def test_models_on_the_controller_are_described_in_this_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(ActionBase, "run", lambda *_arguments: {})
    action = import_module("ansible_collections.baremetal.inference.plugins.action.model").ActionModule
    plugin = action.__new__(action)
    models = {"lost": {"model": f"controller:{tmp_path}/lost"}}
    given = {"state": "described", "origin": "controller", "models": models}
    plugin._task = SimpleNamespace(action="baremetal.inference.model", args=given, async_val=0, check_mode=False)
    plugin._connection = SimpleNamespace(transport="local", has_native_async=False, become=None)
    (problem,) = plugin.run(task_vars={})["problems"]
    assert f"{tmp_path}/lost" in problem


def test_a_job_in_the_background_starts_only_after_the_node_has_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    job, only = {"ansible_job_id": "j1", "started": 1}, {"digest": "d1", "only": True}
    started = {"digest": "d1", "wrap_async": True}
    there = {"changed": False}
    assert called(monkeypatch, there, job, background=60) == (job, [only, started])
    shipped = [only, {**only, "archive": "the archive"}, started]
    assert called(monkeypatch, ASKS, there, job, background=60) == (job, shipped)
    failed = {"failed": True, "unreachable": True}
    assert called(monkeypatch, failed, background=60) == (failed, [only])


def test_ansible_gets_the_name_of_the_tasks_module_for_its_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    named: list[str] = []
    monkeypatch.setattr(ActionBase, "_update_module_args", lambda _self, name, *_others, **_more: named.append(name))
    plugin: Any = node_call.NodeCall.__new__(node_call.NodeCall)
    plugin._task = SimpleNamespace(action="baremetal.inference.engine_drain")
    plugin._update_module_args(node_call.MODULE, {}, {}, ignore_unknown_opts=False)
    assert named == ["baremetal.inference.engine_drain"]


PLUGINS = node_library.ROOT.parent
CALLED = sorted(path.stem for path in (node_library.ROOT / node_library.CALLS).glob("[a-z]*.py"))


@pytest.mark.parametrize("name", CALLED)
def test_each_implementation_has_its_module_and_its_action(name: str) -> None:
    """The module's specification can also be sent as text."""
    module = import_module(f"ansible_collections.baremetal.inference.plugins.modules.{name}")
    action = import_module(f"ansible_collections.baremetal.inference.plugins.action.{name}").ActionModule
    assert issubclass(action, node_call.NodeCall) and action._specification is module.SPECIFICATION
    # node_tool and engine_plan compare the installed library with the library that runs.
    assert action._runs_collection is (name not in ("node_tool", "engine_plan"))
    wanted = Wanted(name, module.SPECIFICATION, "d1")
    assert json.loads(json.dumps(module.SPECIFICATION)) == Wanted.from_text(wanted.to_text()).specification


def test_only_modules_with_an_implementation_have_an_action_that_calls_the_node() -> None:
    refusing = {path.stem for path in (PLUGINS / "modules").glob("*.py") if "node_call.refuse(" in path.read_text()}
    acting = {path.stem for path in (PLUGINS / "action").glob("*.py") if "NodeCall" in path.read_text()}
    assert refusing == acting == set(CALLED)
