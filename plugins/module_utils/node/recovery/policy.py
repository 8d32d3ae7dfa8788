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
from .state import State, within

NOTHING, WAIT, DOCKER, RESTART, RESET, GIVE_UP = "nothing", "wait", "restart-docker", "restart", "reset-gpu", "give-up"
"""Steps, from the mildest to the last."""

DOCKER_TRIES = 2
"""Restarts of Docker within an hour, for whichever instance."""

FAILED_STARTS = 1
"""Starts in a row that have failed before files are suspected."""


@dataclass(frozen=True)
class Situation:
    """How an instance stands. None where nobody knows."""

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


def decide(now: Situation, settings: Settings, time: datetime, *, by_hand: bool = False) -> Decision:
    """The next step. `by_hand` waits for no back-off, budget or arming: a person decides; holds count all the same."""
    if why := held(now, settings, by_hand=by_hand):
        return Decision(NOTHING, why)
    if now.stale or now.verdict == health.UNKNOWN:
        return Decision(NOTHING, "its agent cannot tell how it is: nothing is done without evidence")
    if now.verdict in (*health.SERVING, health.STOPPED):
        return Decision(NOTHING, f"it is {now.verdict}")
    futile = _futile(now)
    if now.unit_state == "activating" or now.verdict == health.STARTING:
        return _while_it_starts(now, settings, time, futile)
    if futile:
        return Decision(GIVE_UP, futile, futile=True)
    spent = _spent(now, time)
    if spent >= settings.budget and not by_hand:
        answered = f"{spent} faults within an hour were answered already"
        return Decision(GIVE_UP, f"{answered}, and it is {now.verdict} again: {now.detail}")
    if not now.docker_answers:
        return _docker(now, settings)
    if (until := _back_off(now.state, settings, time)) and not by_hand:
        return Decision(WAIT, f"it is {now.verdict}; the next step is due at {until:%H:%M:%SZ} (back-off)")
    return _restart(now, settings, time)


def held(now: Situation, settings: Settings, *, by_hand: bool = False) -> str:
    """Why nothing may be done, empty where it may."""
    if now.lock:
        return f"the node's lock is held: {now.lock}"
    if now.drain and now.drain.owner != RECOVERY and (not by_hand or now.drain.owner == UPDATE):
        return f"it is {now.drain}"
    if by_hand:
        return ""
    if not (settings.armed and now.state.armed):
        return "recovery is disarmed: inferctl recover --arm"
    if now.state.breaker:
        return f"its breaker is open since {now.state.breaker.since}: inferctl recover {now.name} --reset"
    return ""


def _futile(now: Situation) -> str:
    """Why a start would fail again, empty where it need not."""
    if now.damaged_models:
        return f"the model is damaged: {'; '.join(now.damaged_models)}. site.yml copies it anew"
    if now.beyond_repair:
        return f"{'; '.join(now.beyond_repair)}. site.yml stages it anew"
    return ""


def _while_it_starts(now: Situation, settings: Settings, time: datetime, futile: str) -> Decision:
    """systemd brings it up: that is left to it, unless it cannot succeed."""
    failed = now.attempt > FAILED_STARTS
    # vLLM 0.32 may sit on a truncated file until its start times out: that it is damaged is evidence enough.
    if futile and (failed or now.damaged_models):
        return Decision(GIVE_UP, futile, futile=True)
    spent = _spent(now, time)
    if now.died_last and spent > settings.budget:
        return Decision(GIVE_UP, f"it serves and dies: {spent} faults within an hour, {now.deaths} of them deaths")
    if not now.docker_answers:
        return _docker(now, settings)
    if now.damaged_copies:
        return Decision(RESTART, "the fast copy of its model is damaged, and the store has it whole", now.repairable)
    if failed and now.wrong_files:
        return Decision(RESTART, "its starts fail, and managed files are wrong", now.wrong_files)
    return Decision(NOTHING, f"systemd starts it (attempt {max(now.attempt, 1)}): {now.detail}")


def _docker(now: Situation, settings: Settings) -> Decision:
    if not settings.restart_docker:
        return Decision(GIVE_UP, "Docker does not answer, and recovery_restart_docker is off")
    if now.docker_hold:
        return Decision(GIVE_UP, f"Docker does not answer, and {now.docker_hold}")
    if now.docker_restarts >= DOCKER_TRIES:
        times = f"{now.docker_restarts} times within an hour"
        return Decision(GIVE_UP, f"Docker does not answer, though it was restarted {times}")
    return Decision(DOCKER, "Docker does not answer")


def _restart(now: Situation, settings: Settings, time: datetime) -> Decision:
    if now.gpu_action in (xid_actions.REBOOT, xid_actions.REPLACE):
        return Decision(GIVE_UP, f"no restart cures its GPU: {now.gpu_words}")
    reason = f"it is {now.verdict}: {now.detail}"
    if now.gpu_action == xid_actions.RESET and settings.reset_gpus:
        # One that failed has cured nothing; one of the hour that --reset has forgotten counts no more.
        if now.state.recent(time, RESET) and within(now.state.gpus_reset, time):
            return Decision(GIVE_UP, f"its GPU was reset within the hour and fails again: {now.gpu_words}")
        if not now.gpu_shared:
            return Decision(RESET, f"{reason}; {now.gpu_words}", now.repairable)
        if now.state.recent(time, RESTART):
            return Decision(GIVE_UP, f"its GPU wants a reset, and another instance uses it: {now.gpu_words}")
    return Decision(RESTART, reason, now.repairable)


def _spent(now: Situation, time: datetime) -> int:
    """How much of the hour's budget is gone."""
    return len(now.state.recent(time, RESTART, RESET)) + now.deaths


def budget_left(state: State, deaths: int, settings: Settings, time: datetime) -> int:
    """How many more faults within this hour are answered."""
    return max(0, settings.budget - len(state.recent(time, RESTART, RESET)) - deaths)


def _back_off(state: State, settings: Settings, time: datetime) -> datetime | None:
    """Until when to wait; None where the next step may be taken. The first two are not held up."""
    steps = state.recent(time, RESTART, RESET)
    if len(steps) < 2:
        return None
    until = parse_time(steps[-1].time) + timedelta(seconds=settings.backoff * 2 ** (len(steps) - 2))
    # A step of the future says only that the clock was set back.
    return until if time < until <= time + timedelta(hours=1) else None
