# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a scenario is run: by which controller, and what becomes of its nodes."""

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
    ("fails", "ran"),
    [(None, ["destroy", "test", "destroy"]), ("test", ["destroy", "test"])],
    ids=["passed", "failed, with its nodes left"],
)
def test_nodes_are_left_where_a_scenario_failed(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, fails: str | None, ran: list[str]
) -> None:
    actions: list[str] = []

    def molecule(_scenario: str, action: str, *_options: str, **_others: Any) -> bool:
        actions.append(action)
        return action != fails

    monkeypatch.setattr(tool, "molecule", molecule)
    assert tool.run("default") is (fails is None)
    assert actions == ran


def test_a_name_that_is_none_is_told_with_those_that_are(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["scenarios", "defualt"])
    with pytest.raises(SystemExit):
        tool.main()
    said = capsys.readouterr().err
    assert "There is no scenario defualt. Found: backup, default," in said
