# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A change on trial: confirmed, undone by hand, and undone by the timer."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.debian import ssh_session, trial


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """What would have been asked of systemd; the shell's scripts run for real."""
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
    """A trial of a file that said old and says new."""
    file = tmp_path / "file"
    file.write_text("new")
    one = trial.Trial("x")
    kept = one.keep("old", "old")
    one.begin(["false", f"cp {kept} {file}"], 60)
    return one, file


def test_the_timer_brings_the_old_state_back(tmp_path: Path, commands: list[tuple[str, ...]]) -> None:
    one, file = begun(tmp_path)
    assert one.pending
    assert "--on-active=60" in commands[1]
    # What the timer starts, after a step that fails.
    subprocess.run(commands[1][-2:], check=True)
    assert file.read_text() == "old"
    assert not one.rollback()
    with pytest.raises(trial.TrialError, match="ended before it was confirmed"):
        one.confirm()


def test_what_is_confirmed_stays(tmp_path: Path, commands: list[tuple[str, ...]]) -> None:
    one, file = begun(tmp_path)
    one.confirm()
    assert commands[-1] == ("systemctl", "stop", "inference-trial-x.timer")
    # The timer fires at the same moment.
    subprocess.run(commands[1][-2:], check=True)
    assert file.read_text() == "new"


def test_a_rollback_is_at_once_and_only_once(tmp_path: Path, commands: list[tuple[str, ...]]) -> None:
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


def test_a_trial_that_was_over_is_not_confirmed(tmp_path: Path, commands: list[tuple[str, ...]]) -> None:
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


def test_old_texts_are_for_root_alone(tmp_path: Path, commands: list[tuple[str, ...]]) -> None:
    one, _file = begun(tmp_path)
    assert one.directory.stat().st_mode & 0o077 == 0


def test_the_oldest_ancestor_tells_who_has_logged_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """sshd, a shell of the user, sudo without its environment, a shell of root that kept it."""
    lines = {10: (1, ""), 11: (10, "192.0.2.7 5 192.0.2.1 22"), 12: (11, ""), 13: (12, "203.0.113.9 5 192.0.2.1 22")}
    for pid, (parent, connection) in lines.items():
        directory = tmp_path / str(pid)
        directory.mkdir()
        directory.joinpath("stat").write_text(f"{pid} (a ) b) S {parent} 1 1")
        directory.joinpath("environ").write_text(f"A=b\0SSH_CONNECTION={connection}\0" if connection else "A=b\0")
    monkeypatch.setattr(ssh_session, "PROC", tmp_path)
    found = ssh_session.login(13)
    assert found is not None and found.address == "192.0.2.7"
    assert ssh_session.login(10) is None
