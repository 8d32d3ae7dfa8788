# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of what architectures can do."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import engine_architectures
import pytest


def test_the_table_has_a_row_for_each_architecture(script: Callable[[str], ModuleType]) -> None:
    made: dict[str, Any] = {}
    abilities = {"B": ["pools"], "A": ["generates", "stages"], "C": []}
    exec(script("architectures").text({"vllm": "0.99.0"}, abilities), made)
    assert list(made["ARCHITECTURES"].items()) == [("A", ("generates", "stages")), ("B", ("pools",)), ("C", ())]
    assert "vllm 0.99.0" in made["__doc__"]


def test_an_ability_is_what_the_engine_reports_about_a_class() -> None:
    reported = SimpleNamespace(
        is_text_generation_model=False,
        is_pooling_model=True,
        supports_transcription=False,
        supports_transcription_only=False,
        score_type="cross-encoder",
        supports_pp=False,
    )
    lists = {key: {"A": 1} if key == "_REWARD_MODELS" else {} for key in engine_architectures.LISTS}
    kind = SimpleNamespace(supports_lora=True, embedding_modules={})
    found = engine_architectures.abilities(reported, kind, lists, "A")
    assert found == ["pools", "scores pairs", "rewards", "adapters"]
    assert engine_architectures.abilities(reported, object(), lists, "B") == ["pools", "scores pairs"]


def test_an_empty_package_replaces_each_package_that_the_image_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    finder = engine_architectures.StandIn()
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, finder])
    made = import_module("torchaudio.functional")
    for name in ("torchaudio", "torchaudio.functional"):
        monkeypatch.delitem(sys.modules, name)
    assert made.resample.anything is made.resample and made.resample(1)
    assert finder.find_spec("json", None) is None


@pytest.mark.parametrize("text", [None, "no JSON"])
def test_an_answer_that_cannot_be_read_is_named(
    script: Callable[[str], ModuleType],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    text: str | None,
) -> None:
    file = tmp_path / "answer.json"
    if text is not None:
        file.write_text(text)
    monkeypatch.setattr(sys, "argv", ["architectures", "--answer", str(file)])
    assert script("architectures").main() == 1
    assert f"architectures: {file}: " in capsys.readouterr().err
