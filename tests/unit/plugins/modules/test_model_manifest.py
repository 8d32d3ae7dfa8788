# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the module model_manifest."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.modules import model_manifest


@pytest.fixture
def run(run_module: Any) -> Any:
    return partial(run_module, model_manifest)


def test_describes_the_models_of_one_side(run: Any, tmp_path: Path, write_model: Callable[..., Path]) -> None:
    root = write_model(tmp_path / "m")
    models = {"here": {"model": str(root)}, "there": {"model": f"controller:{root}"}}
    for origin, name in (("node", "here"), ("controller", "there")):
        result = run(models=models, origin=origin)
        assert list(result["manifests"]) == [name]
        assert result["manifests"][name]["weight_bytes"] == 8000
        assert not result["changed"]
        assert result["problems"] == []


def test_reports_all_problems_of_all_models(run: Any, tmp_path: Path, write_model: Callable[..., Path]) -> None:
    whole, broken = write_model(tmp_path / "whole"), write_model(tmp_path / "broken")
    (broken / "config.json").unlink()
    models = {
        "whole": {"model": str(whole)},
        "broken": {"model": str(broken)},
        "gone": {"model": "/nowhere/at/all"},
        "pinned": {"model": str(whole), "revision": "000000000000"},
        "hub": {"model": "org/name"},
    }
    result = run(models=models)
    assert list(result["manifests"]) == ["whole"]
    assert len(result["problems"]) == 4
    assert result["manifests"]["whole"]["revision"] in "".join(result["problems"])
    # What belongs to no side is reported by the node alone.
    assert run(models=models, origin="controller")["problems"] == []


def test_writes_its_cache_but_not_in_check_mode(run: Any, tmp_path: Path, write_model: Callable[..., Path]) -> None:
    models = {"m": {"model": str(write_model(tmp_path / "m"))}}
    cache = tmp_path / "cache" / "manifests.json"
    run(models=models, cache=str(cache), check=True)
    assert not cache.parent.exists()
    run(models=models, cache=str(cache))
    assert cache.exists()


def test_names_a_cache_that_cannot_be_used(run: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    result = run(models={}, cache=str(tmp_path / "file" / "manifests.json"))
    assert result["failed"]
    assert str(tmp_path / "file" / "manifests.json") in result["msg"]
