# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ladder: chooses the next step from the situation of an instance. Private to the collection; pure.

systemd restarts an engine that died. Recovery handles engines that hang, answer wrongly, or that systemd no longer
restarts. One budget counts the deaths and the restarts by recovery.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ...core.sizes import counted
from ...engine.probe import health
from ...engine.state.drains import RECOVERY, UPDATE, Drain, parse_time
from ...hardware.gpu import xid_actions
from .settings import Settings
from .state import State, in_window

NOTHING, WAIT, DOCKER, RESTART, RESET, GIVE_UP = "nothing", "wait", "restart-docker", "restart", "reset-gpu", "give-up"
"""Steps, from the mildest to the last."""

DOCKER_TRIES = 2
"""The most restarts of Docker within an hour, for all instances of the node together."""

FAILED_STARTS = 1
"""After this many failed starts in a row, files are suspected."""


SUSPECTS = 5
"""The most keys that a reason names."""


@dataclass(frozen=True)
class Situation:
    """The facts of an instance by which the policy chooses the next step."""

    name: str
    verdict: str
    detail: str
    stale: bool
    """Whether the verdict is too old to count, or belongs to an earlier start."""
    unit_state: str
    """systemd's ActiveState."""
    attempt: int
    """Starts in a row without success, the present one included."""
    state: State
    deaths: int = 0
    """How many deaths of the engine within the last hour count as faults of this node."""
    died_last: bool = False
    """Whether the last death came after the last step."""
    in_flight: Mapping[str, int] = field(default_factory=dict)
    """Names of keys that had requests in flight at deaths within the last hour, and at how many deaths."""
    lock: str | None = None
    drain: Drain | None = None
    docker_answers: bool = True
    docker_restarts: int = 0
    """Restarts of Docker within the last hour, by the recovery of any instance."""
    docker_hold: str = ""
    """Why Docker must not be restarted; empty if it may."""
    wrong_files: tuple[str, ...] = ()
    beyond_repair: tuple[str, ...] = ()
    damaged_models: tuple[str, ...] = ()
    damaged_copies: tuple[str, ...] = ()
    """Damaged files of fast copies whose originals in the store are whole."""
    gpu_action: str = xid_actions.NONE
    """The strongest action that the instance's GPUs need, by the driver and the kernel's log since the last reset."""
    gpu_words: str = ""
    gpu_shared: bool = False
    """Whether another instance computes on a GPU of this instance."""

    @property
    def repairable(self) -> tuple[str, ...]:
        """The files that are repaired before the next start."""
        return (*self.wrong_files, *self.damaged_copies)


@dataclass(frozen=True)
class Decision:
    """The next step, and why. `repair`: the files to repair first. `futile`: whether no start can succeed."""

    act: str
    reason: str
    repair: tuple[str, ...] = field(default=())
    futile: bool = False


def decide(situation: Situation, settings: Settings, now: datetime, *, by_hand: bool = False) -> Decision:
    """The next step. With `by_hand`, the node's lock and the drain of an update count, but not budget, back-off,
    arming, breaker and other drains."""
    if why := hold_reason(situation, settings, by_hand=by_hand):
        return Decision(NOTHING, why)
    if situation.stale or situation.verdict == health.UNKNOWN:
        return Decision(NOTHING, "the agent has no valid verdict: recovery takes no step without one")
    if situation.verdict in (*health.SERVING, health.STOPPED):
        return Decision(NOTHING, f"it is {situation.verdict}")
    futile = _why_futile(situation)
    if situation.unit_state == "activating" or situation.verdict == health.STARTING:
        return _while_it_starts(situation, settings, now, futile, by_hand=by_hand)
    if futile:
        return Decision(GIVE_UP, futile, futile=True)
    faults = _faults_in_window(situation, now)
    if faults >= settings.budget and not by_hand:
        answered = f"{counted(faults, 'fault')} within an hour {'was' if faults == 1 else 'were'} answered already"
        again = f"it is {situation.verdict} again: {situation.detail}"
        return Decision(GIVE_UP, f"{answered}, and {again}{_suspects(situation)}")
    if not situation.docker_answers:
        return _docker(situation, settings)
    if (until := _back_off(situation.state, settings, now)) and not by_hand:
        return Decision(WAIT, f"it is {situation.verdict}; the next step is due at {until:%H:%M:%SZ} (back-off)")
    return _restart(situation, settings, now)


def hold_reason(situation: Situation, settings: Settings, *, by_hand: bool = False) -> str:
    """Why recovery must not act; empty if it may."""
    if situation.lock:
        return f"the node's lock is held: {situation.lock}"
    if situation.drain and situation.drain.owner != RECOVERY and (not by_hand or situation.drain.owner == UPDATE):
        return f"it is {situation.drain}"
    if by_hand:
        return ""
    if not (settings.armed and situation.state.armed):
        way = "inferctl recover --arm" if settings.armed else "set recovery_armed, and run baremetal.inference.site"
        return f"recovery is disarmed: {way}"
    if situation.state.breaker:
        return f"its breaker is open since {situation.state.breaker.since}: inferctl recover {situation.name} --reset"
    return ""


def _why_futile(situation: Situation) -> str:
    """Why each start would fail; empty if a start can succeed."""
    if situation.damaged_models:
        damaged = "; ".join(situation.damaged_models)
        return f"the model is damaged: {damaged}. baremetal.inference.site copies the model again"
    if situation.beyond_repair:
        return f"{'; '.join(situation.beyond_repair)}. baremetal.inference.site stages the release again"
    return ""


def _while_it_starts(
    situation: Situation, settings: Settings, now: datetime, futile: str, *, by_hand: bool
) -> Decision:
    """The step while systemd starts the unit: none, unless the start cannot succeed, the engine dies too often, Docker
    does not answer, or files must be repaired."""
    failed = situation.attempt > FAILED_STARTS
    # With a truncated file, vLLM 0.32 may hang until the start times out: damage counts before any start has failed.
    if futile and (failed or situation.damaged_models):
        return Decision(GIVE_UP, futile, futile=True)
    faults = _faults_in_window(situation, now)
    if situation.died_last and faults > settings.budget and not by_hand:
        died = f"{counted(faults, 'fault')} within an hour, {situation.deaths} of them deaths"
        return Decision(GIVE_UP, f"it serves and dies: {died}{_suspects(situation)}")
    if not situation.docker_answers:
        return _docker(situation, settings)
    if situation.damaged_copies:
        return Decision(
            RESTART, "the fast copy of its model is damaged, and the store has it whole", situation.repairable
        )
    if failed and situation.wrong_files:
        return Decision(RESTART, "its starts fail, and managed files are wrong", situation.wrong_files)
    return Decision(NOTHING, f"systemd starts it (attempt {max(situation.attempt, 1)}): {situation.detail}")


def _suspects(situation: Situation) -> str:
    """The keys with requests in flight at deaths, for the end of a reason; empty if there are none."""
    shown = ", ".join(f"{key} ({count})" for key, count in list(situation.in_flight.items())[:SUSPECTS])
    return f"; keys in flight at its deaths: {shown}" if shown else ""


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
        # Only a reset that succeeded counts, and only while its step is recorded: `--reset` removes the steps.
        if situation.state.recent(now, RESET) and in_window(situation.state.gpus_reset, now):
            return Decision(GIVE_UP, f"its GPU was reset within the hour and fails again: {situation.gpu_words}")
        if not situation.gpu_shared:
            return Decision(RESET, f"{reason}; {situation.gpu_words}", situation.repairable)
        if situation.state.recent(now, RESTART):
            return Decision(GIVE_UP, f"its GPU needs a reset, and another instance uses the GPU: {situation.gpu_words}")
    return Decision(RESTART, reason, situation.repairable)


def _faults_in_window(situation: Situation, now: datetime) -> int:
    """How many faults of the last hour count against the budget."""
    return len(situation.state.recent(now, RESTART, RESET)) + situation.deaths


def budget_left(state: State, deaths: int, settings: Settings, now: datetime) -> int:
    """How many more faults recovery answers within this hour."""
    return max(0, settings.budget - len(state.recent(now, RESTART, RESET)) - deaths)


def _back_off(state: State, settings: Settings, now: datetime) -> datetime | None:
    """The time until which to wait; None if the next step may be taken. The first two steps do not wait."""
    steps = state.recent(now, RESTART, RESET)
    if len(steps) < 2:
        return None
    until = parse_time(steps[-1].time) + timedelta(seconds=settings.backoff * 2 ** (len(steps) - 2))
    # A step in the future only means that the clock was set back.
    return until if now < until <= now + timedelta(hours=1) else None
