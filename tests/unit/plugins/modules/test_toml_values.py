# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module toml_values: predicted, done, done again, and refused without a change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.modules import toml_values

Call = Callable[..., dict[str, Any]]


@pytest.fixture
def call(run_module: Call) -> Call:
    def run(path: Path, values: Any, check: bool = False) -> dict[str, Any]:
        return run_module(toml_values, check, path=str(path), values=values)

    return run


def test_predicted_done_and_done_again(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "new/config.toml"
    values = {"runtime": {"mode": "cdi"}}
    assert call(path, values, check=True)["changed"] and not path.exists()
    result = call(path, values)
    assert result["changed"] and result["diff"]["after"] == path.read_text() == '[runtime]\nmode = "cdi"\n'
    assert path.stat().st_mode & 0o777 == 0o644
    assert not call(path, values)["changed"]


def test_the_mode_stays(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[a]\n")
    path.chmod(0o600)
    assert call(path, {"a": {"b": True}})["changed"]
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("text", "values"), [("broken", {"a": {"b": 1}}), ("[a]\n", {"a": 1})])
def test_what_cannot_be_done_changes_nothing(call: Call, tmp_path: Path, text: str, values: Any) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    result = call(path, values)
    assert result["failed"] and "Nothing was changed" in result["msg"]
    assert path.read_text() == text
