# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of GPUs at boot, from the file of the module gpu_settings, and errors of a damaged file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings import boot
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings.apply import Result
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings.settings import Wanted

WANTED = Wanted.of({"power_limit_w": 500}, [])


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    found = Paths(root=tmp_path)
    found.gpu_settings.parent.mkdir(parents=True, exist_ok=True)
    return found


def test_the_settings_in_the_file_are_applied_card_by_card(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record of the clocks is written even if a card fails."""
    seen: dict[str, Any] = {}

    class Setter:
        def __init__(self, run: Any, clocks: Any, wanted: Wanted) -> None:
            seen.update(clocks=clocks, wanted=wanted)

        def apply(self, *, all_or_nothing: bool) -> Result:
            seen["all_or_nothing"] = all_or_nothing
            raise OSError("a card fell off")

    text = boot.as_text(WANTED, "/x/nvidia-smi", 30)
    assert text is not None
    paths.gpu_settings.write_text(text)
    monkeypatch.setattr(boot, "Setter", Setter)
    monkeypatch.setattr(boot.Clocks, "write", lambda _self: seen.update(written=True))
    with pytest.raises(OSError, match="fell off"):
        boot.apply(paths)
    assert (seen["wanted"], seen["all_or_nothing"], seen["written"]) == (WANTED, False, True)


def test_without_settings_there_is_no_file(paths: Paths) -> None:
    assert boot.as_text(Wanted.of({}, []), "nvidia-smi", 30) is None
    assert boot.apply(paths) == Result()


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        ({"schema": 2}, "does not have schema 1"),
        ([], "does not have schema 1"),
        ({"schema": 1, "nvidia_smi": "x"}, "is damaged"),
        ({"schema": 1, "nvidia_smi": "x", "timeout_s": 7, "settings": [], "overrides": []}, "is damaged"),
    ],
)
def test_a_damaged_file_is_an_error(paths: Paths, stored: Any, words: str) -> None:
    paths.gpu_settings.write_text(json.dumps(stored))
    with pytest.raises(ValueError, match=f"{words}.*run baremetal.inference.site, which repairs it"):
        boot.apply(paths)


def test_the_program_runs_with_its_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boot, "run", lambda command, timeout: Outcome(0, f"{command} {timeout}"))
    assert boot.runner("smi", 7)(["-q"]).stdout == "['smi', '-q'] 7"
