# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a scenario is run: by which controller, and which of its nodes stay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def tool(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("scenarios")


def test_a_scenario_that_names_a_controller_runs_there(tool: ModuleType) -> None:
    assert tool.where("default") == []
    program, version = tool.where("rolling")
    assert Path(program).name == "controller" and version == (ROOT / "molecule/rolling/controller").read_text().strip()


@pytest.mark.parametrize(
    ("fails", "remains", "ran"),
    [
        (None, True, ["destroy", "test", "destroy"]),
        (None, False, ["test", "destroy"]),
        ("test", True, ["destroy", "test"]),
    ],
    ids=["passed", "passed, without an earlier run", "failed, with its nodes left"],
)
def test_only_the_nodes_of_a_failed_scenario_stay(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, fails: str | None, remains: bool, ran: list[str]
) -> None:
    monkeypatch.setattr(tool, "has_remains", lambda _scenario: remains)
    actions: list[str] = []

    def molecule(_scenario: str, action: str, *_options: str, **_others: Any) -> bool:
        actions.append(action)
        return action != fails

    monkeypatch.setattr(tool, "molecule", molecule)
    assert tool.run("default") is (fails is None)
    assert actions == ran


@pytest.mark.parametrize(
    ("container", "file", "found"),
    [("", "", False), ("aa11\n", "", True), ("", "molecule.1.default/hosts", True), ("", "molecule.1.vm/hosts", False)],
)
def test_remains_are_nodes_or_files_of_the_scenario(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, container: str, file: str, found: bool
) -> None:
    monkeypatch.setattr(tool.Path, "home", lambda: tmp_path)
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    if file:
        path = tmp_path / ".ansible/tmp" / file
        path.parent.mkdir(parents=True)
        path.touch()
    answer = tool.subprocess.CompletedProcess([], 0, container, "")
    monkeypatch.setattr(tool.subprocess, "run", lambda *_argv, **_options: answer)
    assert tool.has_remains("default") is found


def test_an_unknown_scenario_is_an_error_that_lists_all_names(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["scenarios", "defualt"])
    with pytest.raises(SystemExit):
        tool.main()
    said = capsys.readouterr().err
    assert "There is no scenario defualt. Found: backup, default," in said
