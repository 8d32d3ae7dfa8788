# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ladder's decisions: its steps, the situations without a step, and when recovery gives up."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import health
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.drains import Drain, format_time
from ansible_collections.baremetal.inference.plugins.module_utils.hardware.gpu import xid_actions
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery import policy
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.policy import (
    DOCKER,
    GIVE_UP,
    NOTHING,
    RESET,
    RESTART,
    WAIT,
    Decision,
    Situation,
)
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.settings import Settings
from ansible_collections.baremetal.inference.plugins.module_utils.node.recovery.state import Breaker, State, Step

NOW = datetime(2026, 5, 4, 3, 0, tzinfo=UTC)

SETTINGS = Settings()


def situation(**changes: Any) -> Situation:
    """The situation of an engine that hangs, with changes."""
    hung = Situation("main", health.HUNG, "no token", False, "active", 0, State("main"))
    return replace(hung, **changes)


def steps(*ago: float, act: str = RESTART) -> State:
    """A state with a step of this kind for each number of seconds ago, the oldest first."""
    times = [format_time(NOW - timedelta(seconds=seconds)) for seconds in ago]
    return State("main", steps=tuple(Step(time, act, "hung", "", "") for time in times))


def decide(**changes: Any) -> Decision:
    return policy.decide(situation(**changes), SETTINGS, NOW)


@pytest.mark.parametrize(
    ("verdict", "state"),
    [(health.HUNG, "active"), (health.WRONG, "active"), (health.DEAD, "active"), (health.DEAD, "failed")],
)
def test_a_bad_verdict_restarts_the_engine(verdict: str, state: str) -> None:
    assert decide(verdict=verdict, unit_state=state).act == RESTART


@pytest.mark.parametrize(("settings", "way"), [(SETTINGS, "recover --arm"), (Settings(armed=False), "recovery_armed")])
def test_the_reason_for_no_step_names_the_way_to_arm_recovery(settings: Settings, way: str) -> None:
    assert way in policy.hold_reason(situation(state=State("main", armed=False)), settings)


@pytest.mark.parametrize("verdict", [health.HEALTHY, health.BUSY, health.STOPPED, health.UNKNOWN])
def test_an_engine_without_a_bad_verdict_gets_no_step(verdict: str) -> None:
    """A saturated engine is busy, and is never restarted, even with damaged files or without Docker."""
    assert decide(verdict=verdict, damaged_models=("x",), docker_answers=False).act == NOTHING


def test_a_stale_verdict_does_not_count() -> None:
    assert decide(stale=True).act == NOTHING


def test_an_engine_that_loads_or_that_systemd_restarts_gets_no_step() -> None:
    assert decide(verdict=health.STARTING, unit_state="activating", attempt=1).act == NOTHING
    assert decide(verdict=health.DEAD, unit_state="activating", attempt=3).act == NOTHING
    for state in ("active", "inactive", "deactivating"):
        assert decide(verdict=health.STARTING, unit_state=state).act == NOTHING
    # The verdict is from before the present start.
    assert decide(verdict=health.HUNG, unit_state="activating").act == NOTHING


@pytest.mark.parametrize(
    "held",
    [
        {"lock": "update_model of jane@control"},
        {"drain": Drain("update", "rolls", "2026-05-04T02:00:00Z")},
        {"drain": Drain("jane@control", "new disk", "2026-05-04T02:00:00Z")},
        {"state": State("main", armed=False)},
        {"state": State("main", breaker=Breaker("2026-05-04T02:00:00Z", "why"))},
    ],
)
def test_locks_drains_disarming_and_breakers_prevent_a_step(held: dict[str, Any]) -> None:
    assert decide(**held).act == NOTHING


def test_the_drain_of_recovery_does_not_prevent_a_step() -> None:
    assert decide(drain=Drain("recovery", "gave up", "2026-05-04T02:00:00Z")).act == RESTART


def test_locks_and_updates_prevent_a_command_of_an_operator_but_budget_and_arming_do_not() -> None:
    def by_hand(**changes: Any) -> str:
        return policy.decide(situation(**changes), SETTINGS, NOW, by_hand=True).act

    assert by_hand(state=steps(1800, 900, 5)) == RESTART
    assert by_hand(state=State("main", armed=False, breaker=Breaker("x", "y"))) == RESTART
    assert by_hand(drain=Drain("jane", "disk", "2026-05-04T02:00:00Z")) == RESTART
    assert by_hand(lock="an update") == NOTHING
    assert by_hand(drain=Drain("update", "rolls", "2026-05-04T02:00:00Z")) == NOTHING
    assert by_hand(verdict=health.HEALTHY) == NOTHING
    # A budget that deaths have used up does not make a command of an operator drain the instance.
    dying = {"verdict": health.STARTING, "unit_state": "activating", "deaths": 9, "died_last": True}
    assert by_hand(**dying) == NOTHING and decide(**dying).act == GIVE_UP


def test_the_budget_counts_steps_and_deaths_of_one_hour() -> None:
    assert decide(state=steps(3000, 2000)).act == RESTART
    assert decide(state=steps(3000, 2000), deaths=1).act == GIVE_UP
    assert decide(state=steps(3000, 2000, 1000)).act == GIVE_UP
    assert decide(state=steps(9000, 8000, 3700)).act == RESTART
    assert policy.budget_left(steps(3000), 1, SETTINGS, NOW) == 1
    assert policy.budget_left(steps(3000), 9, SETTINGS, NOW) == 0


def test_an_engine_that_serves_and_dies_over_and_over_is_given_up() -> None:
    loading = {"verdict": health.STARTING, "unit_state": "activating", "attempt": 1}
    assert decide(**loading, deaths=3, died_last=True).act == NOTHING
    assert decide(**loading, deaths=4, died_last=True).act == GIVE_UP
    assert decide(**loading, deaths=2, died_last=True, state=steps(900, 300)).act == GIVE_UP
    # The reason, and so the alert, names the keys that were in flight at most deaths.
    keys = {f"key-{number}": 9 - number for number in range(7)}
    given_up = [decide(**loading, deaths=4, died_last=True, in_flight=keys), decide(deaths=3, in_flight=keys)]
    for decision in given_up:
        assert decision.reason.endswith(
            "; keys in flight at its deaths: key-0 (9), key-1 (8), key-2 (7), key-3 (6), key-4 (5)"
        )
    assert "in flight" not in decide(**loading, deaths=4, died_last=True).reason
    # An engine that an operator has just started is not given up while it loads.
    assert decide(**loading, deaths=2, state=steps(900, 300, 5)).act == NOTHING


def test_each_further_step_waits_longer() -> None:
    assert decide(state=steps(20)).act == RESTART
    assert decide(state=steps(600, 20)).act == WAIT
    assert decide(state=steps(600, 40)).act == RESTART
    roomy = Settings(budget=9)
    assert policy.decide(situation(state=steps(600, 500, 40)), roomy, NOW).act == WAIT
    assert policy.decide(situation(state=steps(600, 500, 70)), roomy, NOW).act == RESTART


def test_after_a_clock_was_set_back_steps_do_not_wait_for_ever() -> None:
    assert decide(state=steps(-86400, -86300)).act == RESTART


def test_wrong_files_are_repaired_with_the_restart() -> None:
    wrong = ("/etc/systemd/system/vllm@main.service was changed",)
    assert decide(wrong_files=wrong) == Decision(RESTART, "it is hung: no token", wrong)
    # Files are repaired while systemd's restarts fail, too, but not during the first try, which may succeed.
    starting = {"verdict": health.DEAD, "unit_state": "activating", "wrong_files": wrong}
    assert decide(**starting, attempt=2).act == RESTART
    assert decide(**starting, attempt=1).act == NOTHING


@pytest.mark.parametrize("state", ["active", "activating", "failed"])
def test_an_engine_that_no_start_can_cure_is_given_up_at_once(state: str) -> None:
    damaged = decide(
        verdict=health.DEAD, unit_state=state, attempt=2, damaged_models=("/mnt/models/a/w has 7 bytes instead of 9",)
    )
    assert damaged.act == GIVE_UP and "/mnt/models/a/w" in damaged.reason
    loading = {"verdict": health.STARTING, "unit_state": "activating", "attempt": 1}
    assert decide(**loading, damaged_models=("w",)).futile
    lost = decide(verdict=health.DEAD, unit_state=state, attempt=2, beyond_repair=("engine.env is damaged",))
    assert lost.act == GIVE_UP and "engine.env" in lost.reason


def test_a_damaged_fast_copy_is_replaced_at_once_unless_the_store_is_damaged_too() -> None:
    copy = {"damaged_copies": ("/nvme/models/a/w has 7 bytes instead of 9",)}
    loading = {"verdict": health.STARTING, "unit_state": "activating", "attempt": 1}
    for inspection in (loading, {"verdict": health.DEAD, "unit_state": "failed"}, {"verdict": health.HUNG}):
        decision = decide(**inspection, **copy)
        assert (decision.act, decision.repair) == (RESTART, copy["damaged_copies"])
    assert decide(**loading, **copy, damaged_models=("w",)).act == GIVE_UP
    assert decide(verdict=health.HEALTHY, **copy).act == NOTHING


def test_docker_is_restarted_only_if_it_does_not_answer_and_no_other_engine_ends() -> None:
    assert decide(docker_answers=False).act == DOCKER
    starting = {"verdict": health.STARTING, "unit_state": "activating", "attempt": 1}
    assert decide(**starting, docker_answers=False).act == DOCKER
    hold = decide(docker_answers=False, docker_hold="its restart would end other (live-restore is off)")
    assert hold.act == GIVE_UP and "other" in hold.reason
    assert decide(docker_answers=False, docker_restarts=1).act == DOCKER
    assert decide(docker_answers=False, docker_restarts=2).act == GIVE_UP
    never = Settings(restart_docker=False)
    assert policy.decide(situation(docker_answers=False), never, NOW).act == GIVE_UP


def test_a_gpu_is_reset_if_its_xid_needs_a_reset_and_no_other_instance_uses_the_gpu() -> None:
    wants = {"gpu_action": xid_actions.RESET, "gpu_words": "XID 95"}
    assert decide(**wants).act == RESET
    assert decide(**wants, gpu_shared=True).act == RESTART
    assert decide(**wants, gpu_shared=True, state=steps(900)).act == GIVE_UP
    once = steps(900, act=RESET)
    assert decide(**wants, state=replace(once, gpus_reset=once.steps[0].time)).act == GIVE_UP
    # A reset that failed does not count.
    assert decide(**wants, state=once).act == RESET
    assert policy.decide(situation(**wants), Settings(reset_gpus=False), NOW).act == RESTART
    assert decide(gpu_action=xid_actions.REBOOT, gpu_words="XID 79").act == GIVE_UP
    assert decide(gpu_action=xid_actions.APPLICATION).act == RESTART
