# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ladder: from how an instance stands to the next step. Private to the collection; pure.

systemd restarts deaths; this is for hangs, wrong answers and what systemd has given up. One budget counts both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ...engine.probe import health
from ...engine.state.drains import RECOVERY, UPDATE, Drain, parse_time
from ...hardware.gpu import xid_actions
from .settings import Settings
from .state import State, in_window

NOTHING, WAIT, DOCKER, RESTART, RESET, GIVE_UP = "nothing", "wait", "restart-docker", "restart", "reset-gpu", "give-up"
"""Steps, from the mildest to the last."""

DOCKER_TRIES = 2
"""Restarts of Docker within an hour, for whichever instance."""

FAILED_STARTS = 1
"""Starts in a row that have failed before files are suspected."""


@dataclass(frozen=True)
class Situation:
    """How an instance stands. None where unknown."""

    name: str
    verdict: str
    detail: str
    stale: bool
    """Whether the verdict is too old to count, or about an earlier start."""
    unit_state: str
    """systemd's ActiveState."""
    attempt: int
    """Starts without success, the one under way included."""
    state: State
    deaths: int = 0
    """Within the hour, of an engine that served."""
    died_last: bool = False
    """Whether the last of them came after the last step."""
    lock: str | None = None
    drain: Drain | None = None
    docker_answers: bool = True
    docker_restarts: int = 0
    """By the recovery of any instance, within the hour."""
    docker_hold: str = ""
    """Why Docker must not be restarted; empty where it may be."""
    wrong_files: tuple[str, ...] = ()
    beyond_repair: tuple[str, ...] = ()
    damaged_models: tuple[str, ...] = ()
    damaged_copies: tuple[str, ...] = ()
    """Files of fast copies whose originals in the store are whole."""
    gpu_action: str = xid_actions.NONE
    """The worst that the XIDs of its GPUs ask for, since they were last reset."""
    gpu_words: str = ""
    gpu_shared: bool = False
    """Whether another instance computes on one of its GPUs."""

    @property
    def repairable(self) -> tuple[str, ...]:
        """What is put right before the next start."""
        return (*self.wrong_files, *self.damaged_copies)


@dataclass(frozen=True)
class Decision:
    """The next step, and why. `repair` says what is put right first, `futile` that no start succeeds."""

    act: str
    reason: str
    repair: tuple[str, ...] = field(default=())
    futile: bool = False


def decide(situation: Situation, settings: Settings, now: datetime, *, by_hand: bool = False) -> Decision:
    """The next step. `by_hand` waits for no back-off, budget or arming: a person decides; holds count all the same."""
    if why := hold_reason(situation, settings, by_hand=by_hand):
        return Decision(NOTHING, why)
    if situation.stale or situation.verdict == health.UNKNOWN:
        return Decision(NOTHING, "its agent cannot tell how it is: nothing is done without evidence")
    if situation.verdict in (*health.SERVING, health.STOPPED):
        return Decision(NOTHING, f"it is {situation.verdict}")
    futile = _why_futile(situation)
    if situation.unit_state == "activating" or situation.verdict == health.STARTING:
        return _while_it_starts(situation, settings, now, futile)
    if futile:
        return Decision(GIVE_UP, futile, futile=True)
    faults = _faults_in_window(situation, now)
    if faults >= settings.budget and not by_hand:
        answered = f"{faults} faults within an hour were answered already"
        return Decision(GIVE_UP, f"{answered}, and it is {situation.verdict} again: {situation.detail}")
    if not situation.docker_answers:
        return _docker(situation, settings)
    if (until := _back_off(situation.state, settings, now)) and not by_hand:
        return Decision(WAIT, f"it is {situation.verdict}; the next step is due at {until:%H:%M:%SZ} (back-off)")
    return _restart(situation, settings, now)


def hold_reason(situation: Situation, settings: Settings, *, by_hand: bool = False) -> str:
    """Why nothing may be done, empty where it may."""
    if situation.lock:
        return f"the node's lock is held: {situation.lock}"
    if situation.drain and situation.drain.owner != RECOVERY and (not by_hand or situation.drain.owner == UPDATE):
        return f"it is {situation.drain}"
    if by_hand:
        return ""
    if not (settings.armed and situation.state.armed):
        return "recovery is disarmed: inferctl recover --arm"
    if situation.state.breaker:
        return f"its breaker is open since {situation.state.breaker.since}: inferctl recover {situation.name} --reset"
    return ""


def _why_futile(situation: Situation) -> str:
    """Why a start would fail again, empty where it need not."""
    if situation.damaged_models:
        return f"the model is damaged: {'; '.join(situation.damaged_models)}. baremetal.inference.site copies it anew"
    if situation.beyond_repair:
        return f"{'; '.join(situation.beyond_repair)}. baremetal.inference.site stages it anew"
    return ""


def _while_it_starts(situation: Situation, settings: Settings, now: datetime, futile: str) -> Decision:
    """systemd brings it up: that is left to it, unless it cannot succeed."""
    failed = situation.attempt > FAILED_STARTS
    # vLLM 0.32 may sit on a truncated file until its start times out: that it is damaged is evidence enough.
    if futile and (failed or situation.damaged_models):
        return Decision(GIVE_UP, futile, futile=True)
    faults = _faults_in_window(situation, now)
    if situation.died_last and faults > settings.budget:
        return Decision(
            GIVE_UP, f"it serves and dies: {faults} faults within an hour, {situation.deaths} of them deaths"
        )
    if not situation.docker_answers:
        return _docker(situation, settings)
    if situation.damaged_copies:
        return Decision(
            RESTART, "the fast copy of its model is damaged, and the store has it whole", situation.repairable
        )
    if failed and situation.wrong_files:
        return Decision(RESTART, "its starts fail, and managed files are wrong", situation.wrong_files)
    return Decision(NOTHING, f"systemd starts it (attempt {max(situation.attempt, 1)}): {situation.detail}")


def _docker(situation: Situation, settings: Settings) -> Decision:
    if not settings.restart_docker:
        return Decision(GIVE_UP, "Docker does not answer, and recovery_restart_docker is off")
    if situation.docker_hold:
        return Decision(GIVE_UP, f"Docker does not answer, and {situation.docker_hold}")
    if situation.docker_restarts >= DOCKER_TRIES:
        times = f"{situation.docker_restarts} times within an hour"
        return Decision(GIVE_UP, f"Docker does not answer, though it was restarted {times}")
    return Decision(DOCKER, "Docker does not answer")


def _restart(situation: Situation, settings: Settings, now: datetime) -> Decision:
    if situation.gpu_action in (xid_actions.REBOOT, xid_actions.REPLACE):
        return Decision(GIVE_UP, f"no restart cures its GPU: {situation.gpu_words}")
    reason = f"it is {situation.verdict}: {situation.detail}"
    if situation.gpu_action == xid_actions.RESET and settings.reset_gpus:
        # One that failed has cured nothing; one of the hour that --reset has forgotten counts no more.
        if situation.state.recent(now, RESET) and in_window(situation.state.gpus_reset, now):
            return Decision(GIVE_UP, f"its GPU was reset within the hour and fails again: {situation.gpu_words}")
        if not situation.gpu_shared:
            return Decision(RESET, f"{reason}; {situation.gpu_words}", situation.repairable)
        if situation.state.recent(now, RESTART):
            return Decision(GIVE_UP, f"its GPU wants a reset, and another instance uses it: {situation.gpu_words}")
    return Decision(RESTART, reason, situation.repairable)


def _faults_in_window(situation: Situation, now: datetime) -> int:
    """How much of the hour's budget is gone."""
    return len(situation.state.recent(now, RESTART, RESET)) + situation.deaths


def budget_left(state: State, deaths: int, settings: Settings, now: datetime) -> int:
    """How many more faults within this hour are answered."""
    return max(0, settings.budget - len(state.recent(now, RESTART, RESET)) - deaths)


def _back_off(state: State, settings: Settings, now: datetime) -> datetime | None:
    """Until when to wait; None where the next step may be taken. The first two are not held up."""
    steps = state.recent(now, RESTART, RESET)
    if len(steps) < 2:
        return None
    until = parse_time(steps[-1].time) + timedelta(seconds=settings.backoff * 2 ** (len(steps) - 2))
    # A step of the future says only that the clock was set back.
    return until if now < until <= now + timedelta(hours=1) else None
