# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of the commands to systemd when a release takes the place of another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import activation
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases

from ..conftest import stage

UNIT = "vllm@main.service"


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    made = Paths(tmp_path)
    stage(made, "main", 5005)
    return made


@pytest.fixture
def ordered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commands for systemd, by their first word."""
    made: list[str] = []
    monkeypatch.setattr(systemd, "systemctl", lambda *words: made.append(words[0]))
    monkeypatch.setattr(systemd, "active_state", lambda _unit: "active")
    return made


INSTALL = ["daemon-reload", "enable", "reset-failed"]


def test_the_engine_that_runs_is_stopped_first(paths: Paths, ordered: list[str]) -> None:
    activation.run(paths, "main", 1)
    assert ordered == ["stop", *INSTALL, "start"]
    assert activation.runs(paths, "main", 1)


def test_an_inactive_unit_is_not_stopped(paths: Paths, ordered: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systemd, "active_state", lambda _unit: "inactive")
    activation.run(paths, "main", 1)
    assert ordered == [*INSTALL, "start"]


def test_a_unit_restarts_itself_by_one_command(paths: Paths, ordered: list[str]) -> None:
    activation.restart(paths, "main", 1)
    assert ordered == [*INSTALL, "restart"]


def test_systemd_may_end_the_call_with_the_unit(
    paths: Paths, ordered: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """systemctl is a process of the unit that systemd stops."""
    failure: list[systemd.SystemdError] = [systemd.Terminated("systemctl restart: exit code -15")]

    def systemctl(*words: str) -> None:
        if words[0] == "restart":
            raise failure[0]

    monkeypatch.setattr(systemd, "systemctl", systemctl)
    activation.restart(paths, "main", 1)
    failure[0] = systemd.SystemdError("systemctl restart: Unit not found")
    with pytest.raises(systemd.SystemdError, match="not found"):
        activation.restart(paths, "main", 1)


@pytest.mark.parametrize("start", [activation.run, activation.restart])
def test_a_damaged_release_stops_no_engine(paths: Paths, ordered: list[str], start: object) -> None:
    (paths.release("main", 1) / releases.ENV_FILE).unlink()
    with pytest.raises(releases.ReleaseError):
        start(paths, "main", 1)  # type: ignore[operator]
    assert ordered == [] and releases.active_number(paths, "main") is None
