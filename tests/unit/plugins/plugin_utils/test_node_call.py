# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the controller calls a module that needs the node's library: once, or twice where the node has another."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.plugins.action import ActionBase

from ansible_collections.baremetal.inference.plugins.module_utils.core.node_call import MISSING
from ansible_collections.baremetal.inference.plugins.module_utils.fleet import node_library
from ansible_collections.baremetal.inference.plugins.plugin_utils import node_call

ASKS = {"changed": False, MISSING: True}
ANSWER = {"changed": True, "release": 2}


class Library:
    """The library of a run."""

    digest = "d1"

    def encoded(self) -> str:
        return "the archive"


def called(
    monkeypatch: pytest.MonkeyPatch,
    *said: dict[str, Any],
    transport: str = "ssh",
    background: int = 0,
    action: Any = node_call.NodeCall,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The action's result where the module answers so, and what the module was given each time."""
    answers, calls = list(said), []

    def execute(_self: ActionBase, module_args: dict[str, Any], task_vars: Any, **how: Any) -> dict[str, Any]:
        assert task_vars == {"a": 1} and module_args["name"] == "main"
        calls.append({**module_args["library"], **how})
        return dict(answers[len(calls) - 1])

    monkeypatch.setattr(ActionBase, "run", lambda *_arguments: {})
    monkeypatch.setattr(ActionBase, "_execute_module", execute)
    monkeypatch.setattr(node_library, "of_run", lambda directory: Library())
    plugin: Any = action.__new__(action)
    plugin._task = SimpleNamespace(args={"name": "main"}, async_val=background)
    plugin._connection = SimpleNamespace(transport=transport, has_native_async=False)
    result = plugin.run(task_vars={"a": 1})
    assert len(calls) == len(answers)
    return result, calls


def test_a_node_with_this_library_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert called(monkeypatch, ANSWER) == (ANSWER, [{"digest": "d1"}])


def test_a_node_without_this_library_gets_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    archive = {"digest": "d1", "archive": "the archive"}
    assert called(monkeypatch, ASKS, ANSWER) == (ANSWER, [{"digest": "d1"}, archive])


def test_a_failure_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = {"failed": True, "msg": "no"}
    assert called(monkeypatch, failed)[0] == failed
    assert called(monkeypatch, ASKS, failed)[0] == failed


def test_the_controller_runs_the_collection_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    assert called(monkeypatch, ANSWER, transport="local")[1] == [{"digest": "d1", "path": str(node_library.ROOT)}]


def test_a_job_in_the_background_starts_when_the_library_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    job, only = {"ansible_job_id": "j1", "started": 1}, {"digest": "d1", "only": True}
    started = {"digest": "d1", "wrap_async": True}
    there = {"changed": False}
    assert called(monkeypatch, there, job, background=60) == (job, [only, started])
    shipped = [only, {**only, "archive": "the archive"}, started]
    assert called(monkeypatch, ASKS, there, job, background=60) == (job, shipped)
    failed = {"failed": True, "unreachable": True}
    assert called(monkeypatch, failed, background=60) == (failed, [only])


def test_every_module_of_the_library_has_its_action() -> None:
    """And each action and module has its implementation."""
    plugins = node_library.ROOT.parent
    calls = {path.name for path in (node_library.ROOT / node_library.CALLS).glob("[a-z]*.py")}
    for folder, mark in {"modules": "node_call.run(", "action": "plugin_utils.node_call"}.items():
        assert {path.name for path in (plugins / folder).glob("*.py") if mark in path.read_text()} == calls, folder


def test_each_module_names_its_own_implementation() -> None:
    for path in (node_library.ROOT / node_library.CALLS).glob("[a-z]*.py"):
        module = (Path(node_library.ROOT).parent / "modules" / path.name).read_text()
        assert f'node_call.run(module, "{path.stem}")' in module and "**node_call.OPTIONS" in module
        assert "baremetal.inference.node_call" in module, f"{path.name} does not document the option library"
