# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole ladder with a fake systemd and a fake Docker: its steps, their record, and the end of recovery."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, journal, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.core.docker_api import DockerUnavailable
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import health, wait
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import drains
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.drains import format_time
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import xid_actions
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery import (
    actions,
    alerts,
    gpus,
    policy,
    state,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.ladder import Ladder
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.settings import Settings
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.state import Breaker, State

from .conftest import NOW, SECOND, XID_95, FakeDocker, GpuMachine, Machine

ALL_THE_SAME = "; systemd starts the engine all the same"


def test_a_hung_engine_is_restarted_and_the_step_is_recorded(machine: Machine) -> None:
    machine.is_seen(health.HUNG)
    report = machine.ladder().recover("main")
    assert report.act == policy.RESTART and report.changed
    assert machine.docker.removed == ["vllm-main", "vllm-main"]
    assert machine.done == [
        "stop --no-block vllm@main.service",
        "daemon-reload",
        "reset-failed vllm@main.service",
        "start --no-block vllm@main.service",
    ]
    (step,) = state.read(machine.paths, "main").steps
    assert (step.act, step.verdict, step.outcome) == ("restart", "hung", "started again")
    assert (machine.paths.evidence("main")).is_dir()
    assert drains.read(machine.paths, "main", machine.time) is None


def test_a_busy_engine_gets_no_step(machine: Machine) -> None:
    machine.is_seen(health.BUSY)
    assert not machine.ladder().recover("main").changed
    assert machine.done == []
    assert not machine.paths.recovery.exists()


def test_a_verdict_about_an_earlier_start_does_not_count(machine: Machine) -> None:
    machine.is_seen(health.HUNG)
    machine.invocation = "second"
    assert not machine.ladder().recover("main").changed


def test_files_are_repaired_before_the_start(machine: Machine) -> None:
    good = machine.paths.unit("main").read_text()
    machine.paths.unit("main").write_text("rubbish")
    machine.is_seen(health.DEAD, "failed")
    report = machine.ladder().recover("main")
    assert machine.paths.unit("main").read_text() == good
    assert "repaired from" in report.outcome
    assert machine.done[-1] == "start --no-block vllm@main.service"


def test_a_deleted_unit_is_repaired_and_started_without_a_stop(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.paths.unit("main").unlink()
    machine.is_seen(health.DEAD, "inactive")

    def systemctl(*arguments: str) -> str:
        if arguments[0] == "stop":
            raise systemd.SystemdError("Unit vllm@main.service not loaded.")
        return machine.systemctl(*arguments)

    monkeypatch.setattr(systemd, "systemctl", systemctl)
    machine.ladder().recover("main")
    assert machine.done[-1] == "start --no-block vllm@main.service" and machine.paths.unit("main").exists()


def test_an_environment_that_is_no_text_is_repaired_too(machine: Machine) -> None:
    """Recovery reads the environment before the repair, to mask secrets in the evidence and the last log lines."""
    good = machine.paths.env("main").read_bytes()
    machine.paths.env("main").write_bytes(b"\xff\xfe")
    machine.is_seen(health.DEAD, "failed")
    report = machine.ladder().recover("main")
    assert machine.paths.env("main").read_bytes() == good
    assert "repaired from" in report.outcome


def test_the_error_of_the_last_start_is_in_the_reason(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    words = "Starting it\ninferctl: main: port 5005 is taken by pid 7 (python3)\nFailed to start it"
    monkeypatch.setattr(wait, "last_words", lambda _paths, _name, retrying: words)
    machine.is_seen(health.DEAD, "failed")
    assert "port 5005 is taken by pid 7" in machine.ladder().recover("main").reason


def test_a_run_that_restarts_docker_and_then_waits_has_changed_something(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.docker.alive = False
    machine.is_seen(health.HUNG)

    def restart(docker: Any) -> str:
        docker.alive = True
        machine.is_seen(health.HEALTHY)
        return "Docker answers after 1 s"

    monkeypatch.setattr(actions, "restart_docker", restart)
    report = machine.ladder().recover("main")
    assert (report.act, report.changed) == (policy.NOTHING, True)
    assert [step.act for step in state.read(machine.paths, "main").steps] == [policy.DOCKER]


def test_docker_is_restarted_first_and_then_the_engine_is_inspected_again(machine: Machine) -> None:
    machine.docker.alive = False
    machine.is_seen(health.HUNG)
    machine.ladder().recover("main")
    assert [step.act for step in state.read(machine.paths, "main").steps] == ["restart-docker", "restart"]
    assert "restart --no-block docker.socket docker.service" in machine.done


def test_recovery_gives_up_once_its_budget_is_spent_until_an_operator_resets_recovery(machine: Machine) -> None:
    for _fault in range(3):
        machine.time += timedelta(minutes=5)
        machine.is_seen(health.HUNG)
        assert machine.ladder().recover("main").act == policy.RESTART
    machine.time += timedelta(minutes=5)
    machine.is_seen(health.HUNG)
    assert machine.ladder().recover("main").act == policy.GIVE_UP
    assert machine.done == []
    drain = drains.read(machine.paths, "main", machine.time)
    assert drain and drain.owner == "recovery"
    known = state.read(machine.paths, "main")
    assert known.breaker and known.total == 4
    machine.time += timedelta(hours=3)
    machine.is_seen(health.HUNG)
    assert not machine.ladder().recover("main").changed
    assert machine.done == []

    machine.unit = "failed"
    assert machine.ladder().reset("main")
    assert drains.read(machine.paths, "main", machine.time) is None
    assert state.read(machine.paths, "main").breaker is None
    assert machine.done[-1] == "start --no-block vllm@main.service"
    machine.is_seen(health.HUNG)
    assert machine.ladder().recover("main").act == policy.RESTART


def test_a_loop_of_starts_that_cannot_succeed_is_ended(machine: Machine) -> None:
    (machine.paths.root / "models/tiny-a").rmdir()
    files.write_json(machine.paths.starts("main"), {"schema": 1, "attempt": 2})
    machine.is_seen(health.DEAD, "activating")
    report = machine.ladder().recover("main")
    assert report.act == policy.GIVE_UP and "models/tiny-a" in report.reason
    assert machine.done == ["stop --no-block vllm@main.service"]


def test_recovery_does_not_replace_the_drain_of_an_operator(machine: Machine) -> None:
    """The drain stays the operator's even if an operator's command makes recovery give up."""
    wanted = drains.Drain("jane", "disk", format_time(machine.time))
    drains.drain(machine.paths, ["main"], wanted)
    (machine.paths.root / "models/tiny-a").rmdir()
    machine.is_seen(health.HUNG)
    assert not machine.ladder().recover("main").changed
    assert machine.ladder().recover("main", by_hand=True).act == policy.GIVE_UP
    drain = drains.read(machine.paths, "main", machine.time)
    assert drain and drain.owner == "jane"


def test_an_alert_that_could_not_be_sent_is_sent_later(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.settings = Settings(budget=0, webhook="http://example.org/")
    tries: list[str] = []

    def post(url: str, _body: object) -> None:
        tries.append(url)
        if len(tries) < 2:
            raise OSError("no route")

    monkeypatch.setattr(alerts, "_post", post)
    for _round in range(4):
        machine.is_seen(health.HUNG)
        machine.ladder().recover("main")
    assert len(tries) == 2
    breaker = state.read(machine.paths, "main").breaker
    assert breaker and breaker.alerts == {"webhook": "sent"}


def test_an_alert_is_sent_after_a_kill_and_by_a_channel_that_is_set_later(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls: list[str] = []
    monkeypatch.setattr(alerts, "_post", lambda url, _body: urls.append(url))
    machine.settings = Settings(webhook="http://example.org/")
    # A run that was killed between the breaker and the alert leaves this state.
    state.write(machine.paths, State("main", breaker=Breaker("2026-05-04T03:00:00Z", "why")))
    machine.is_seen(health.HUNG)
    machine.ladder().recover("main")
    assert urls == ["http://example.org/"]
    machine.settings = replace(machine.settings, alertmanager="http://example.org:9093")
    machine.ladder().recover("main")
    machine.ladder().recover("main")
    assert urls[1:] == ["http://example.org:9093/api/v2/alerts"]
    machine.ladder().reset("main")
    assert urls[2:] == ["http://example.org:9093/api/v2/alerts"]


def test_a_loop_of_starts_is_ended_before_the_alert_is_sent(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.settings = Settings(webhook="http://example.org/")
    ended: list[list[str]] = []
    monkeypatch.setattr(alerts, "_post", lambda _url, _body: ended.append(machine.done))
    (machine.paths.root / "models/tiny-a").rmdir()
    files.write_json(machine.paths.starts("main"), {"schema": 1, "attempt": 2})
    machine.is_seen(health.DEAD, "activating")
    machine.ladder().recover("main")
    assert ended == [["stop --no-block vllm@main.service"]]


def test_a_reset_of_recovery_starts_an_engine_that_an_operator_has_drained(machine: Machine) -> None:
    drains.drain(machine.paths, ["main"], drains.Drain("jane", "disk", format_time(machine.time)))
    state.write(machine.paths, State("main", breaker=Breaker("2026-05-04T03:00:00Z", "why")))
    machine.is_seen(health.DEAD, "failed")
    assert machine.ladder().reset("main")
    assert machine.done[-1] == "start --no-block vllm@main.service"
    drain = drains.read(machine.paths, "main", machine.time)
    assert drain and drain.owner == "jane"
    # Without anything to reset, an engine that an operator has stopped stays stopped.
    machine.is_seen(health.STOPPED, "inactive")
    assert not machine.ladder().reset("main")
    assert machine.done == []


def test_a_disarming_during_a_step_is_not_lost(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.is_seen(health.HUNG)
    ladder = machine.ladder()
    monkeypatch.setattr(actions, "stop", lambda _name, _docker: machine.ladder().arm("main", False))
    ladder.recover("main")
    known = state.read(machine.paths, "main")
    assert not known.armed and known.steps[-1].outcome == "started again"


def test_a_disarming_at_the_beginning_of_a_run_loses_no_step(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.is_seen(health.HUNG)
    runs: list[threading.Thread] = []
    read = state.read

    def and_a_run_begins(paths: Paths, name: str) -> State:
        known = read(paths, name)
        if not runs:
            runs.append(threading.Thread(target=machine.ladder().recover, args=("main",)))
            runs[0].start()
            # The run must wait until arm() has written the state. Otherwise, it would record its step here.
            runs[0].join(0.5)
        return known

    monkeypatch.setattr(state, "read", and_a_run_begins)
    assert machine.ladder().arm("main", False)
    runs[0].join()
    known = read(machine.paths, "main")
    assert not known.armed and [step.outcome for step in known.steps] == ["started again"]


def test_an_engine_whose_container_stays_is_started_all_the_same(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recovery takes no step for a stopped instance: without the start, the engine would stay down without an alert."""

    def remove(_container: str) -> None:
        raise DockerUnavailable("Docker does not answer within 5 s")

    monkeypatch.setattr(machine.docker, "remove", remove)
    machine.is_seen(health.HUNG)
    outcome = machine.ladder().recover("main").outcome
    assert outcome.startswith("failed: the container vllm-main cannot be removed") and outcome.endswith(ALL_THE_SAME)
    assert machine.done[-1] == "start --no-block vllm@main.service"


def test_an_engine_whose_gpu_cannot_be_reset_is_started_all_the_same(
    gpu_machine: GpuMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program such as DCGM may use the GPU, and may not end."""

    def reset(_gpus: object, _run: object) -> str:
        raise systemd.SystemdError("systemctl stop nvidia-dcgm.service: a time limit was exceeded")

    monkeypatch.setattr(actions, "reset_gpus", reset)
    gpu_machine.log(XID_95)
    report = gpu_machine.recover()
    assert gpu_machine.done == ["stop", "start"]
    assert report.outcome == f"failed: systemctl stop nvidia-dcgm.service: a time limit was exceeded{ALL_THE_SAME}"
    assert not state.read(gpu_machine.paths, "main").gpus_reset


def test_a_gpu_gets_its_settings_again_after_its_reset(gpu_machine: GpuMachine) -> None:
    gpu_machine.log(XID_95)
    report = gpu_machine.recover()
    assert gpu_machine.done == ["stop", "reset", "settings", "start"]
    assert report.outcome == f"reset {SECOND}; its GPU settings: GPU 1: its power limit stays; started again"
    assert state.read(gpu_machine.paths, "main").gpus_reset == format_time(NOW)


def test_a_reset_of_a_gpu_is_reported_although_the_gpu_settings_cannot_be_applied(
    gpu_machine: GpuMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def apply(_paths: object) -> list[str]:
        raise systemd.SystemdError("systemd does not answer")

    monkeypatch.setattr(actions, "apply_gpu_settings", apply)
    gpu_machine.log(XID_95)
    assert gpu_machine.recover().outcome == f"failed: systemd does not answer; reset {SECOND}{ALL_THE_SAME}"


def test_a_reset_of_a_gpu_settles_earlier_xids_and_a_failed_reset_does_not(
    gpu_machine: GpuMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpus.time, "clock_gettime", lambda _clock: 100.0)
    gpu_machine.log(XID_95)
    gpu_machine.reset = Outcome(1, "GPU 00000000:9D:00.0 is currently in use by another process.")
    assert "in use" in gpu_machine.recover().outcome
    assert gpu_machine.done == ["stop", "reset", "start"]
    assert gpu_machine.decide().act == policy.RESET
    gpu_machine.reset = Outcome(0)
    gpu_machine.recover()
    assert gpu_machine.situation().gpu_action == xid_actions.NONE
    # The XIDs stay settled when an operator closes the breaker.
    docker: Any = FakeDocker()
    Ladder(gpu_machine.paths, Settings(), journal.Journal(), docker=docker, now=lambda: NOW).reset("main")
    assert gpu_machine.situation().gpu_action == xid_actions.NONE
    monkeypatch.setattr(gpus.time, "clock_gettime", lambda _clock: 90.0)
    assert gpu_machine.decide().act == policy.RESET


def test_nvidia_smi_does_not_run_while_recovery_must_do_nothing(gpu_machine: GpuMachine) -> None:
    """The agent requests recovery every half minute while the engine hangs, even if the breaker is open."""
    state.write(gpu_machine.paths, State("main", breaker=Breaker("2026-05-04T02:00:00Z", "why")))
    gpu_machine.recover()
    assert gpu_machine.asked == []
    state.write(gpu_machine.paths, State("main"))
    gpu_machine.recover()
    assert ["nvidia-smi", "-q", "-x"] in gpu_machine.asked
