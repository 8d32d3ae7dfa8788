# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the images and models of the tests are built again, and from which sources."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from parts import controller, engine, models


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """An empty cache, and a fake of the training. Returns the directories in which the fake has written models."""
    calls: list[Path] = []

    def train(target: Path) -> None:
        calls.append(target)
        for name in models.NAMES:
            (target / name).mkdir(parents=True, exist_ok=True)
            (target / name / models.weights(name)).touch()

    monkeypatch.setattr(models, "CACHE", tmp_path)
    monkeypatch.setattr(models, "train", train)
    return calls


def test_models_are_trained_once(trained: list[Path]) -> None:
    models.build()
    models.build()
    assert len(trained) == 1


@pytest.mark.parametrize("file", ["tiny-b/model.safetensors", "tiny-legal/adapter_model.safetensors"])
def test_a_model_that_was_removed_is_trained_again(trained: list[Path], tmp_path: Path, file: str) -> None:
    models.build()
    (tmp_path / "models" / file).unlink()
    models.build()
    assert len(trained) == 2


def build_engine(monkeypatch: pytest.MonkeyPatch, pulled: bool, failing: str) -> list[str]:
    """Build the engine. Returns a list of one: the image that gets the engine's tag, or `wheels`.

    `pulled`: upstream's image is on this machine.
    """
    made: list[str] = []

    def run(argv: list[str], **_options: Any) -> subprocess.CompletedProcess[str]:
        fails = argv[argv.index("--entrypoint") + 1] == failing
        return subprocess.CompletedProcess(
            argv, int(fails), "", "INFO: starting\nIllegal instruction\n" if fails else ""
        )

    monkeypatch.setattr(engine, "image_exists", lambda _name: False)
    monkeypatch.setattr(engine, "succeeds", lambda *_argv: pulled)
    monkeypatch.setattr(engine.subprocess, "run", run)
    monkeypatch.setattr(engine, "from_wheels", lambda _name: made.append("wheels"))
    monkeypatch.setattr(engine, "name_image", lambda name, _moving: made.append(name))
    engine.build()
    return made[:1]


def test_upstreams_engine_is_used_where_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert build_engine(monkeypatch, True, "") == [engine.UPSTREAM]


@pytest.mark.parametrize("failing", ["vllm", "python3"])
def test_wheels_replace_an_upstream_engine_that_does_not_run_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], failing: str
) -> None:
    assert build_engine(monkeypatch, True, failing) == ["wheels"]
    assert f"does not run here ({failing}: Illegal instruction)" in capsys.readouterr().out


def test_without_upstreams_image_the_engine_comes_from_wheels(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build_engine(monkeypatch, False, "") == ["wheels"]
    assert "cannot be pulled" in capsys.readouterr().out


def test_the_requirements_of_each_newer_core_pin_that_core() -> None:
    assert controller.CORES
    for core, path in controller.CORES.items():
        assert f"\nansible-core=={core}." in path.read_text()
