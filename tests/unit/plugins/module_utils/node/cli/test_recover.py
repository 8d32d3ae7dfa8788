# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`inferctl recover`: a step on command, the state of recovery, and the calls of its units."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import health
from ansible_collections.baremetal.inference.plugins.module_utils.node.cli import inferctl, recover, unit_steps
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery import actions, deaths, requests, state
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.deaths import Deaths, Seen
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.settings import Settings
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.state import Breaker, State, Step

from ..conftest import install
from ..recovery.conftest import Machine


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_the_command_recover_shows_and_changes_the_state_of_recovery(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.is_seen(health.HUNG)
    machine.ladder().recover("main")
    assert inferctl.main(["recover", "--json"], machine.paths) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["instances"][0]["budget_left"] == 2
    assert inferctl.main(["recover", "--disarm"], machine.paths) == 0
    assert "DISARMED" in capsys.readouterr().out
    assert inferctl.main(["recover", "main", "--arm", "--json"], machine.paths) == 0
    assert json.loads(capsys.readouterr().out)["changed"] is True
    assert inferctl.main(["recover", "nobody"], machine.paths) == 2


def test_an_inventory_that_disarms_recovery_is_named(
    machine: Machine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The option --arm cannot arm recovery against the inventory."""
    monkeypatch.setattr(recover.settings, "read", lambda _paths: replace(Settings(), armed=False))
    assert inferctl.main(["recover", "--arm"], machine.paths) == 0
    assert "main: DISARMED by recovery_armed in the inventory, " in capsys.readouterr().out


def test_a_dry_run_prints_the_next_step_and_takes_none(
    machine: Machine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recover, "Ladder", lambda *_arguments: machine.ladder())
    machine.is_seen(health.HUNG)
    assert inferctl.main(["recover", "--dry-run", "main", "--json"], machine.paths) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["changed"] is False
    assert document["reports"] == [
        {"instance": "main", "act": "restart", "reason": "it is hung: why", "changed": False, "outcome": ""}
    ]
    assert machine.done == [] and state.read(machine.paths, "main").steps == ()
    assert inferctl.main(["recover", "--dry-run"], machine.paths) == 0
    assert capsys.readouterr().out == "main: restart: it is hung: why\n"


@pytest.mark.parametrize("verb", ["--reset", "--disarm", "--arm"])
def test_a_dry_run_of_a_verb_reports_whether_the_verb_would_change_anything(
    machine: Machine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setattr(recover, "Ladder", lambda *_arguments: machine.ladder())

    def changed(*words: str) -> bool:
        inferctl.main(["recover", "main", verb, "--json", *words], machine.paths)
        return bool(json.loads(capsys.readouterr().out)["changed"])

    state.write(machine.paths, State("main", armed=True))
    assert changed("--dry-run") == (verb == "--disarm")
    step = Step("2026-11-25T12:00:00Z", "restart", "hung", "why")
    known = State("main", armed=verb != "--arm", steps=(step,), breaker=Breaker("2026-11-25T12:00:00Z", "why"))
    state.write(machine.paths, known)
    assert changed("--dry-run") and changed("--dry-run"), "a dry run changes nothing"
    assert state.read(machine.paths, "main") == known and machine.done == []
    assert changed() and not changed("--dry-run")


@pytest.mark.parametrize("call", ["--triggered", "--dispatch"])
def test_the_calls_of_units_have_no_dry_run(machine: Machine, call: str) -> None:
    machine.is_seen(health.HUNG)
    assert inferctl.main(["recover", "main", call, "--dry-run"], machine.paths) == 2
    assert machine.done == []


def test_a_step_is_reported_with_its_outcome(
    machine: Machine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recover, "Ladder", lambda *_arguments: machine.ladder())
    machine.is_seen(health.HUNG)
    assert inferctl.main(["recover", "main", "--json"], machine.paths) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["changed"] is True
    assert document["reports"] == [
        {"instance": "main", "act": "restart", "reason": "it is hung: why", "changed": True, "outcome": "started again"}
    ]


def test_a_step_whose_stop_failed_is_a_failure(
    machine: Machine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_name: str, _docker: object) -> None:
        raise actions.ActionError("the container vllm-main cannot be removed")

    monkeypatch.setattr(actions, "stop", stop)
    monkeypatch.setattr(recover, "Ladder", lambda *_arguments: machine.ladder())
    machine.is_seen(health.HUNG)
    assert inferctl.main(["recover", "main"], machine.paths) == 1
    assert "-> failed: the container vllm-main cannot be removed; " in capsys.readouterr().out


def test_options_without_names_apply_to_every_instance(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    install(machine.paths, "side")

    def known() -> list[State]:
        return [state.read(machine.paths, name) for name in ("main", "side")]

    inferctl.main(["recover", "--disarm"], machine.paths)
    assert [one.armed for one in known()] == [False, False]
    inferctl.main(["recover", "--arm"], machine.paths)
    assert [one.armed for one in known()] == [True, True]
    for one in known():
        state.write(machine.paths, replace(one, breaker=Breaker("2026-05-04T03:00:00Z", "why")))
    assert inferctl.main(["recover", "--reset"], machine.paths) == 0
    assert [one.breaker for one in known()] == [None, None]


def test_a_death_costs_budget_and_a_failed_start_does_not(machine: Machine) -> None:
    unit_steps.count_start(machine.paths, "main", 0)
    assert deaths.read(machine.paths, "main") == Deaths()
    machine.paths.starts("main").unlink()
    unit_steps.count_start(machine.paths, "main", 1)
    unit_steps.count_start(machine.paths, "main", 2)
    assert deaths.read(machine.paths, "main").recent(datetime.now(UTC)).faults == 1
    assert deaths.died_last(deaths.read(machine.paths, "main"), state.read(machine.paths, "main"))
    machine.time += timedelta(minutes=1)
    machine.is_seen(health.HUNG)
    machine.ladder().recover("main")
    assert not deaths.died_last(deaths.read(machine.paths, "main"), state.read(machine.paths, "main"))


def test_one_death_is_counted_in_the_singular(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    deaths.record(machine.paths, "main", datetime.now(UTC), [Seen("main", "node1", 1, ("bob",), ())], "node1")
    assert inferctl.main(["recover"], machine.paths) == 0
    assert "1 death within an hour, keys in flight: bob (1)" in capsys.readouterr().out


def test_the_keys_in_flight_at_deaths_are_shown(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    for seconds, keys in ((60, ("bob", "alice")), (30, ("bob",))):
        seen = [Seen("main", "node1", 1, keys, ())]
        deaths.record(machine.paths, "main", datetime.now(UTC) - timedelta(seconds=seconds), seen, "node1")
    assert inferctl.main(["recover"], machine.paths) == 0
    assert "2 deaths within an hour, keys in flight: bob (2), alice (1)" in capsys.readouterr().out
    inferctl.main(["recover", "--json"], machine.paths)
    (shown,) = json.loads(capsys.readouterr().out)["instances"]
    assert (shown["deaths"], shown["in_flight"], shown["budget_left"]) == (2, {"bob": 2, "alice": 1}, 1)


def test_an_open_breaker_is_shown_and_fails_the_command_but_not_the_unit(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    state.write(machine.paths, State("main", breaker=Breaker("2026-05-04T03:00:00Z", "it hung again")))
    machine.is_seen(health.BUSY)
    assert inferctl.main(["recover"], machine.paths) == 1
    assert "main: BREAKER OPEN since 2026-05-04T03:00:00Z: it hung again, armed, " in capsys.readouterr().out
    assert inferctl.main(["recover", "--dry-run"], machine.paths) == 1
    assert inferctl.main(["recover", "main", "--triggered"], machine.paths) == 0


def test_the_last_step_is_shown(
    machine: Machine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recover, "Ladder", lambda *_arguments: machine.ladder())
    machine.is_seen(health.HUNG)
    machine.ladder().recover("main")
    assert inferctl.main(["recover"], machine.paths) == 0
    out = capsys.readouterr().out
    assert out.startswith("main: armed, 2 of this hour's budget left, last step ")
    assert out.endswith(": restart: started again\n")


def test_a_triggered_call_without_an_instance_is_wrong_usage(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert inferctl.main(["recover", "--triggered"], machine.paths) == 2
    assert "inference-recovery@NAME.service" in capsys.readouterr().err


def test_only_an_operator_can_start_a_step_of_disarmed_recovery(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recover, "Ladder", lambda *_arguments: machine.ladder())
    machine.ladder().arm("main", False)
    machine.is_seen(health.HUNG)
    assert inferctl.main(["recover", "main", "--triggered"], machine.paths) == 0
    assert machine.done == []
    assert inferctl.main(["recover", "main"], machine.paths) == 0
    assert "start --no-block vllm@main.service" in machine.done


def test_a_dispatch_passes_the_requests_on_and_prints_nothing(
    machine: Machine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Paths] = []
    monkeypatch.setattr(requests, "dispatch", asked.append)
    assert inferctl.main(["recover", "--dispatch"], machine.paths) == 0
    assert asked == [machine.paths]
    assert capsys.readouterr().out == ""


def test_the_command_recover_reports_a_node_without_instances(
    machine: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert inferctl.main(["recover"], Paths(tmp_path / "empty")) == 0
    assert capsys.readouterr().out == "no instance on this node\n"
