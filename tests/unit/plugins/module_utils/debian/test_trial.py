# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A change on trial: confirmed, undone by hand, and undone by the timer."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import trial


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The commands for systemd, which do not run. Shell scripts run."""
    asked: list[tuple[str, ...]] = []
    real = trial._run

    def run(*command: str) -> tuple[int, str]:
        if command[0] == "/bin/sh":
            return real(*command)
        asked.append(command)
        return 0, ""

    monkeypatch.setattr(trial, "RUN", tmp_path / "trials")
    monkeypatch.setattr(trial, "_run", run)
    return asked


def begun(tmp_path: Path) -> tuple[trial.Trial, Path]:
    """A trial of a file whose text was old and is new."""
    file = tmp_path / "file"
    file.write_text("new")
    one = trial.Trial("x")
    kept = one.keep("old", "old")
    one.begin([f"cp {kept} {file}"], 60)
    return one, file


def test_the_timer_restores_the_old_state(tmp_path: Path, commands: list[tuple[str, ...]]) -> None:
    one, file = begun(tmp_path)
    assert one.pending
    assert "--on-active=60" in commands[1]
    # Run what the timer starts.
    subprocess.run(commands[1][-2:], check=True)
    assert file.read_text() == "old"
    assert not one.rollback()
    with pytest.raises(trial.TrialError, match="ended before it was confirmed"):
        one.confirm()


@pytest.mark.parametrize("failing", ["false", "if true; then false\nelse true; fi"])
@pytest.mark.parametrize("place", [0, 1])
def test_a_step_that_fails_stops_no_other_step_and_is_reported(
    tmp_path: Path, commands: list[tuple[str, ...]], failing: str, place: int
) -> None:
    file = tmp_path / "file"
    file.write_text("new")
    one = trial.Trial("x")
    steps = [f"cp {one.keep('old', 'old')} {file}"]
    steps.insert(place, failing)
    one.begin(steps, 60)
    with pytest.raises(trial.TrialError, match=r"rollback failed \(1\)"):
        one.rollback()
    assert file.read_text() == "old"


def test_a_confirmed_change_stays(tmp_path: Path, commands: list[tuple[str, ...]]) -> None:
    one, file = begun(tmp_path)
    one.confirm()
    assert commands[-1] == ("systemctl", "stop", "inference-trial-x.timer")
    # The timer fires at the same moment.
    subprocess.run(commands[1][-2:], check=True)
    assert file.read_text() == "new"


def test_a_rollback_restores_at_once_and_only_once(tmp_path: Path, commands: list[tuple[str, ...]]) -> None:
    one, file = begun(tmp_path)
    assert one.rollback()
    assert file.read_text() == "old"
    file.write_text("newer")
    assert not one.rollback()
    assert file.read_text() == "newer"


@pytest.mark.parametrize(("phase", "text"), [("confirm", "new"), ("rollback", "old")])
def test_check_mode_predicts_and_ends_nothing(
    tmp_path: Path, commands: list[tuple[str, ...]], phase: str, text: str
) -> None:
    one, file = begun(tmp_path)
    asked = list(commands)
    assert one.end(phase, check_mode=True)
    assert (one.pending, file.read_text(), commands) == (True, "new", asked)
    assert one.end(phase, check_mode=False)
    assert (one.pending, file.read_text()) == (False, text)
    assert commands[-1] == ("systemctl", "stop", "inference-trial-x.timer")


def test_a_trial_that_has_ended_cannot_be_confirmed(tmp_path: Path, commands: list[tuple[str, ...]]) -> None:
    one, _file = begun(tmp_path)
    one.rollback()
    assert not one.end("rollback", check_mode=False)
    assert not one.end("confirm", check_mode=True)
    with pytest.raises(trial.TrialError, match="the old state is back"):
        one.end("confirm", check_mode=False)


@pytest.mark.parametrize("act", ["begin", "rollback", "confirm"])
def test_a_command_that_hangs_is_an_error_of_the_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    def hang(command: tuple[str, ...], **_how: object) -> None:
        raise subprocess.TimeoutExpired(command, trial.QUICK)

    monkeypatch.setattr(trial, "RUN", tmp_path / "trials")
    one = trial.Trial("x")
    one.keep("pending", "")
    monkeypatch.setattr(subprocess, "run", hang)
    acts = {
        "begin": lambda: one.begin(["true"], 60),
        "rollback": one.rollback,
        "confirm": lambda: one.end("confirm", check_mode=False),
    }
    with pytest.raises(trial.TrialError, match="did not end within 60 s"):
        acts[act]()
    assert act != "begin" or not one.pending, "no timer runs that would end the trial"


def test_only_root_can_read_old_texts(tmp_path: Path, commands: list[tuple[str, ...]]) -> None:
    one, _file = begun(tmp_path)
    assert one.directory.stat().st_mode & 0o077 == 0
