# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The actions of the ladder, with a fake systemd and a fake Docker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings import boot
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu_settings.apply import Result
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery import (
    actions,
)

from .conftest import FIRST, SECOND, FakeDocker


def test_clients_of_a_gpu_stop_for_its_reset_and_start_again_even_after_a_failed_reset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(systemd, "systemctl", lambda *arguments: calls.append(arguments))
    monkeypatch.setattr(systemd, "active_state", lambda unit: "active" if "persistenced" in unit else "inactive")

    def run(command: Sequence[str], _timeout: float) -> Outcome:
        calls.append(tuple(command))
        return Outcome(1, "GPU 00000000:1B:00.0 is currently in use by another process.")

    with pytest.raises(actions.ActionError, match="in use"):
        actions.reset_gpus([{"pci_bus_id": "0000:1b:00.0"}], run)
    assert [call[0] for call in calls] == ["stop", "nvidia-smi", "start"]
    assert "--id=0000:1b:00.0" in calls[1]


class Unit:
    """A fake unit of systemd: the commands to it, and its states one after the other."""

    def __init__(self, *states: str) -> None:
        self.states = list(states)
        self.calls: list[str] = []
        self.unknown: set[str] = set()

    def systemctl(self, *arguments: str) -> str:
        self.calls.append(" ".join(arguments))
        if arguments[0] in self.unknown:
            raise systemd.SystemdError("not loaded")
        return ""

    def active_state(self, _unit: str) -> str:
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]


class Clock:
    """Time that passes only during sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(actions, "time", clock)
    return clock


Install = Callable[..., Unit]


@pytest.fixture
def unit(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Install:
    """Installs a systemd whose units have the given states, one after the other."""

    def install(*states: str) -> Unit:
        unit = Unit(*states)
        monkeypatch.setattr(systemd, "systemctl", unit.systemctl)
        monkeypatch.setattr(systemd, "active_state", unit.active_state)
        return unit

    return install


class SlowDocker(FakeDocker):
    """Answers all calls after the first `after` calls."""

    def __init__(self, after: float) -> None:
        super().__init__()
        self.after = after
        self.asked = 0

    def ping(self) -> None:
        self.asked += 1
        self.alive = self.asked > self.after
        super().ping()


def slow(after: float) -> Any:
    """A SlowDocker, with a type that type checkers take for a Docker."""
    return SlowDocker(after)


def test_docker_counts_as_down_only_after_several_calls(clock: Clock) -> None:
    docker = slow(2)
    assert actions.docker_answers(docker, clock.sleep)
    assert (docker.asked, clock.now) == (3, 2 * actions.PING_PAUSE)
    docker = slow(9)
    assert not actions.docker_answers(docker, clock.sleep) and docker.asked == actions.PING_TRIES


def test_docker_is_restarted_with_its_socket(unit: Install) -> None:
    found = unit("activating")
    found.unknown.add("reset-failed")
    assert actions.restart_docker(slow(2)) == "Docker answers after 3 s"
    assert found.calls[-1] == "restart --no-block docker.socket docker.service"


def test_a_docker_that_does_not_end_is_killed_once(unit: Install) -> None:
    found = unit("deactivating")
    with pytest.raises(actions.ActionError, match="does not answer 120 s after its restart"):
        actions.restart_docker(slow(float("inf")))
    assert [call for call in found.calls if call.startswith("kill")] == ["kill --signal=KILL docker.service"]


def test_an_engine_is_stopped_with_its_container(unit: Install) -> None:
    found, docker = unit("active", "deactivating", "inactive"), slow(0)
    actions.stop("main", docker)
    assert found.calls == ["stop --no-block vllm@main.service"]
    assert docker.removed == ["vllm-main", "vllm-main"]


def test_a_unit_that_has_ended_is_not_stopped_again(unit: Install) -> None:
    found = unit("inactive")
    actions.stop("main", slow(0))
    assert found.calls == []


def test_a_unit_that_does_not_end_is_killed(unit: Install, clock: Clock) -> None:
    found = unit("deactivating")
    actions.stop("main", slow(0))
    assert found.calls[-1] == "kill --signal=KILL vllm@main.service" and clock.now == actions.STOP_SECONDS


def test_a_container_that_stays_is_an_error(unit: Install) -> None:
    unit("inactive")
    with pytest.raises(actions.ActionError, match="vllm-main cannot be removed: the Docker engine does not answer"):
        actions.stop("main", slow(float("inf")))


def test_a_container_whose_removal_takes_longer_than_a_call_is_no_error(unit: Install) -> None:
    found, docker = unit("active", "inactive"), slow(1)
    actions.stop("main", docker)
    assert (found.calls, docker.removed) == (["stop --no-block vllm@main.service"], ["vllm-main"])


def test_a_start_resets_the_failed_state_of_the_unit(unit: Install) -> None:
    found = unit("failed")
    found.unknown.add("reset-failed")
    actions.start("main")
    assert found.calls == ["daemon-reload", "reset-failed vllm@main.service", "start --no-block vllm@main.service"]


def test_gpus_are_reset_together(unit: Install) -> None:
    unit("inactive")
    commands: list[list[str]] = []

    def run(command: Sequence[str], _timeout: float) -> Outcome:
        commands.append([*command])
        return Outcome(0)

    assert actions.reset_gpus([{"pci_bus_id": FIRST}, {"pci_bus_id": SECOND}], run) == f"reset {FIRST}, {SECOND}"
    assert commands == [["nvidia-smi", "--gpu-reset", f"--id={FIRST},{SECOND}"]]


def test_gpu_settings_that_fail_are_reported_and_raise_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Result | Exception] = [Result(), Result(failures=["no clocks"]), OSError("no tool")]

    def apply(_paths: Paths) -> Result:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(boot, "apply", apply)
    reported = [actions.apply_gpu_settings(Paths(tmp_path)) for _time in range(3)]
    assert reported == [[], ["its GPU settings: no clocks"], ["its GPU settings: no tool"]]
