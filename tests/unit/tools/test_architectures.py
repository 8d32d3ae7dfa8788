# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of what architectures can do."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location, spec_from_loader
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

TOOLS = Path(__file__).parents[3] / "tests/tools"


def tool() -> Any:
    """The command, which has no extension that an import would know it by."""
    loader = SourceFileLoader("architectures_tool", str(TOOLS / "architectures"))
    spec = spec_from_loader(loader.name, loader)
    assert spec
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def questions() -> Any:
    """What runs in the image."""
    spec = spec_from_file_location("engine_architectures", TOOLS / "engine_architectures.py")
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_has_a_row_for_each_architecture() -> None:
    made: dict[str, Any] = {}
    exec(tool().text({"vllm": "0.99.0"}, {"B": ["pools"], "A": ["generates", "stages"], "C": []}), made)
    assert list(made["ARCHITECTURES"].items()) == [("A", ("generates", "stages")), ("B", ("pools",)), ("C", ())]
    assert "vllm 0.99.0" in made["__doc__"]


def test_an_ability_is_what_the_engine_tells_of_a_class() -> None:
    asked = questions()
    told = SimpleNamespace(
        is_text_generation_model=False,
        is_pooling_model=True,
        supports_transcription=False,
        supports_transcription_only=False,
        score_type="cross-encoder",
        supports_pp=False,
    )
    lists = {key: {"A": 1} if key == "_REWARD_MODELS" else {} for key in asked.LISTS}
    kind = SimpleNamespace(supports_lora=True, embedding_modules={})
    assert asked.abilities(told, kind, lists, "A") == ["pools", "scores pairs", "rewards", "adapters"]
    assert asked.abilities(told, object(), lists, "B") == ["pools", "scores pairs"]


def test_packages_that_the_image_lacks_are_stood_in_for(monkeypatch: pytest.MonkeyPatch) -> None:
    finder = questions().StandIn()
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, finder])
    made = import_module("torchaudio.functional")
    for name in ("torchaudio", "torchaudio.functional"):
        monkeypatch.delitem(sys.modules, name)
    assert made.resample.anything is made.resample and made.resample(1)
    assert finder.find_spec("json", None) is None
