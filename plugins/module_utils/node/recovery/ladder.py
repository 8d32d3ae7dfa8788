# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes the next step of the ladder, records the step and reports it. Private to the collection."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from ...core import commands, journal, systemd
from ...core.commands import Outcome
from ...core.docker_api import Docker, DockerError, DockerUnavailable
from ...core.paths import Paths, container_name, unit_name
from ...engine.state import drains
from ...engine.state.drains import Drain, format_time
from . import actions, alerts, deaths, evidence, managed, models, policy, state
from .inspect import Inspection, inspect_instance
from .policy import Decision, Situation
from .settings import Settings
from .state import Breaker, State, Step

DOCKER_TIMEOUT = 5.0
"""Seconds for a call of Docker. Short, so that a hanging daemon is found soon."""

STEPS_PER_RUN = 3
"""The most steps of one run. Only a restart of Docker has a next step: the run inspects the engine again."""

RUN_LOCK, STATE_LOCK = "recovery.lock", "recovery-state.lock"
"""The lock of a run, and the lock of a change of a recorded state. A run may take minutes. So `arm` takes only the
second: an operator can disarm recovery during a run."""

Run = Callable[..., Outcome]


@dataclass(frozen=True)
class Report:
    """The last decision of a run for an instance. `changed`: whether the run took a step."""

    instance: str
    act: str
    reason: str
    changed: bool
    outcome: str = ""

    def __str__(self) -> str:
        return f"{self.instance}: {self.act}: {self.reason}" + (f" -> {self.outcome}" if self.outcome else "")


class Ladder:
    """Recovers instances of one node, one at a time."""

    def __init__(
        self,
        paths: Paths,
        settings: Settings,
        entries: journal.Journal,
        *,
        docker: Docker | None = None,
        run: Run = commands.run,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._paths = paths
        self._settings = settings
        self._entries = entries
        self._docker = docker or Docker(timeout=DOCKER_TIMEOUT)
        self._run = run
        self._now = now

    def recover(self, name: str, *, by_hand: bool = False) -> Report:
        """Take the next step for an instance, if a step is due. After a restart of Docker, also take the step that
        follows. Raises SystemdError, OSError."""
        with self._locked(RUN_LOCK):
            changed = False
            for _time in range(STEPS_PER_RUN):
                inspection, decision = self._decide(name, by_hand)
                report = self._take_step(name, inspection, decision)
                changed |= report.changed
                if decision.act != policy.DOCKER:
                    break
            return replace(report, changed=changed)

    def preview(self, name: str) -> Report:
        """What `recover` by hand would do now, and why. Changes nothing. Raises SystemdError."""
        _seen, decision = self._decide(name, by_hand=True)
        return Report(name, decision.act, decision.reason, changed=False)

    def _decide(self, name: str, by_hand: bool) -> tuple[Inspection, Decision]:
        def hold_reason(situation: Situation) -> str:
            return policy.hold_reason(situation, self._settings, by_hand=by_hand)

        inspection = inspect_instance(self._paths, name, self._now(), self._docker, self._run, hold_reason)
        return inspection, policy.decide(inspection.situation, self._settings, self._now(), by_hand=by_hand)

    def reset(self, name: str, *, check: bool = False) -> bool:
        """Close the breaker, restore the whole budget, and undrain what recovery has drained. If a breaker was open or
        recovery had drained the instance, also start an engine that does not run.

        Returns whether anything changed; with `check`, only whether anything would. Raises SystemdError, OSError.
        """
        if check:
            known = state.read(self._paths, name)
            drained = drains.undrain(self._paths, name, drains.RECOVERY, self._now(), check=True).changed
            return known.steps != () or known.breaker is not None or self._paths.deaths(name).exists() or drained
        with self._locked(RUN_LOCK):
            with self._locked(STATE_LOCK):
                before = state.read(self._paths, name)
                changed = state.write(self._paths, self._reset_state(before)) and before.steps != ()
            changed = changed or before.breaker is not None
            if self._paths.deaths(name).exists():
                self._paths.deaths(name).unlink()
                changed = True
            lifted = drains.undrain(self._paths, name, drains.RECOVERY, self._now())
            # An instance that an operator had drained has no drain of recovery: the open breaker counts as well.
            started = (lifted.changed or before.breaker is not None) and self._start_again(name)
            if changed or lifted.changed:
                self._say(name, "reset", "the breaker is closed, and the whole budget is left", journal.NOTICE)
            if before.breaker and self._settings.alertmanager:
                self._resolve(name, before.breaker)
            return changed or lifted.changed or started

    def arm(self, name: str, armed: bool, *, check: bool = False) -> bool:
        """Let recovery act on an instance by itself, or not.

        Returns whether that changed; with `check`, only whether it would change. Raises OSError.
        """
        if check:
            return state.read(self._paths, name).armed != armed
        with self._locked(STATE_LOCK):
            before = state.read(self._paths, name)
            if before.armed == armed:
                return False
            state.write(self._paths, replace(before, armed=armed))
        self._say(name, "arm" if armed else "disarm", f"recovery is {'armed' if armed else 'disarmed'}", journal.NOTICE)
        return True

    def _reset_state(self, known: State) -> State:
        """A state without steps and breaker."""
        return State(known.instance, known.armed, total=known.total, gpus_reset=known.gpus_reset)

    def _resolve(self, name: str, breaker: Breaker) -> None:
        """Resolve the alert in Alertmanager. If no alert was received there, nothing changes."""
        outcome = alerts.resolve(self._settings, socket.gethostname(), name, breaker.since, self._now())
        if outcome != alerts.SENT:
            self._say(name, "reset", f"the alert stays in Alertmanager: {outcome}", journal.WARNING)

    def _start_again(self, name: str) -> bool:
        unit = unit_name(name)
        if systemd.active_state(unit) in systemd.RUNNING:
            return False
        actions.start(name)
        return True

    def _take_step(self, name: str, inspection: Inspection, decision: Decision) -> Report:
        if decision.act in (policy.NOTHING, policy.WAIT):
            self._send_missing_alerts(inspection)
            return Report(name, decision.act, decision.reason, changed=False)
        evidence_path = self._capture(name)
        known = inspection.situation.state
        step = Step(format_time(self._now()), decision.act, inspection.situation.verdict, decision.reason)
        # Recorded before the action: a step counts, even if the action never returns or the node reboots meanwhile.
        self._remember(known.with_step(step))
        self._say(
            name,
            decision.act,
            decision.reason,
            journal.WARNING,
            verdict=inspection.situation.verdict,
            evidence=evidence_path,
        )
        try:
            outcome = self._act(name, inspection, decision, evidence_path)
        except (actions.ActionError, systemd.SystemdError, OSError, DockerError, DockerUnavailable) as error:
            outcome = f"failed: {error}"
        # Read again: the action may have opened the breaker, or recorded a reset of GPUs.
        known = state.read(self._paths, name)
        if known.steps[-1:] != (step,):
            # The record of the step could be written neither to disk nor to memory.
            known = known.with_step(step)
        done = replace(step, outcome=outcome)
        self._remember(replace(known, steps=(*known.steps[:-1], done)))
        self._say(name, decision.act, outcome, journal.NOTICE, verdict=inspection.situation.verdict)
        return Report(name, decision.act, decision.reason, changed=True, outcome=outcome)

    def _act(self, name: str, inspection: Inspection, decision: Decision, evidence_path: str) -> str:
        if decision.act == policy.DOCKER:
            return actions.restart_docker(self._docker)
        if decision.act == policy.GIVE_UP:
            return self._give_up(name, inspection, decision, evidence_path)
        done = []
        if decision.repair:
            done += managed.repair(self._paths, name, inspection.wrong, self._now())
            done += models.link_to_store(inspection.damaged)
        for line in done:
            self._say(name, "repair", line, journal.WARNING)
        failure = ""
        try:
            actions.stop(name, self._docker)
            if decision.act == policy.RESET:
                self._reset_gpus(name, inspection, done)
        except (actions.ActionError, systemd.SystemdError) as error:
            failure = str(error)
        # The engine is started also after a failure: recovery takes no step for an instance that stays stopped.
        actions.start(name)
        if failure:
            raise actions.ActionError("; ".join([failure, *done, "systemd starts the engine all the same"]))
        return "; ".join([*done, "started again"])

    def _reset_gpus(self, name: str, inspection: Inspection, done: list[str]) -> None:
        """Reset the GPUs of an engine that has ended, and apply their settings again. Adds to `done` what was done,
        also if a later part fails.

        Raises ActionError, SystemdError.
        """
        done.append(actions.reset_gpus([dict(gpu) for gpu in inspection.gpus], self._run))
        known = state.read(self._paths, name)
        self._remember(replace(known, gpus_reset=format_time(self._now())))
        # A reset loses the GPU's settings, and the unit that applies them runs only at boot.
        done += actions.apply_gpu_settings(self._paths)

    def _give_up(self, name: str, inspection: Inspection, decision: Decision, evidence_path: str) -> str:
        """Drain the instance, open the breaker, stop a unit whose starts cannot succeed, and send alerts."""
        now = format_time(self._now())
        notes = []
        try:
            drains.drain(self._paths, [name], Drain(drains.RECOVERY, decision.reason, now))
            notes.append("drained")
        except (drains.Held, OSError) as error:
            notes.append(f"not drained: {error}")
        self._remember(replace(state.read(self._paths, name), breaker=Breaker(now, decision.reason)))
        # Stopped before the alerts, which may take half a minute. A failure to stop does not prevent the alerts.
        if decision.futile and inspection.situation.unit_state == "activating":
            try:
                systemd.systemctl("stop", "--no-block", unit_name(name))
                notes.append("stopped: its starts fail")
            except systemd.SystemdError as error:
                notes.append(f"not stopped: {error}")
        sent = self._alert(inspection, Breaker(now, decision.reason), evidence_path)
        notes += [f"{channel}: {outcome}" for channel, outcome in sent.items()] or [
            "no alert is sent: no channel is set"
        ]
        return "; ".join(notes)

    def _send_missing_alerts(self, inspection: Inspection) -> None:
        """Send the alerts that were not sent when the breaker opened: they failed, or their channel was set later."""
        breaker = inspection.situation.state.breaker
        if breaker and alerts.unsent_channels(self._settings, breaker.alerts):
            self._alert(inspection, breaker, "")

    def _alert(self, inspection: Inspection, breaker: Breaker, evidence_path: str) -> dict[str, str]:
        known = state.read(self._paths, inspection.situation.name)
        steps = [f"{step.time} {step.act}: {step.outcome or step.reason}" for step in known.steps[-5:]]
        alert = alerts.Alert(
            socket.gethostname(),
            known.instance,
            inspection.situation.verdict,
            breaker.reason,
            breaker.since,
            steps,
            evidence_path,
        )
        sent = alerts.send(self._settings, alert, breaker.alerts, self._now(), self._run)
        self._remember(replace(known, breaker=replace(breaker, alerts=sent)))
        return sent

    def _capture(self, name: str) -> str:
        """The directory of the evidence; if there is none, the reason."""
        pid = None
        try:
            container = self._docker.inspect(container_name(name))
            pid = container["State"]["Pid"] if container else None
        except (DockerError, DockerUnavailable, KeyError):
            pid = None
        try:
            where = evidence.capture(
                self._paths, name, self._now(), pid, self._settings.evidence_kept, self._run, self._paths.root
            )
        except OSError as error:
            return f"none: {error}"
        return str(where)

    def _remember(self, known: State) -> None:
        """Record the state. A failure is only logged: a full disk must not keep an engine down. `armed` is read again,
        because an operator may have changed it since this run began."""
        try:
            with self._locked(STATE_LOCK):
                state.write(self._paths, replace(known, armed=state.read(self._paths, known.instance).armed))
        except OSError as error:
            self._say(known.instance, "state", f"the state cannot be recorded: {error}", journal.WARNING)

    def _say(self, name: str, act: str, words: str, priority: int, **fields: str) -> None:
        self._entries.say(
            f"{name}: recovery: {act}: {words}", priority, event="recovery", instance=name, act=act, **fields
        )

    @contextmanager
    def _locked(self, lock: str) -> Iterator[None]:
        """Allow one run at a time on a node (two must not restart Docker at the same time), or one change of a recorded
        state. Raises OSError."""
        directory: Path = self._paths.recovery_requests.parent
        directory.mkdir(parents=True, exist_ok=True)
        handle = os.open(directory / lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def summaries(paths: Paths, names: Sequence[str], settings: Settings, now: datetime) -> list[dict[str, object]]:
    """The state of recovery of each instance, as `inferctl recover --json` shows it."""
    found: list[dict[str, object]] = []
    for name in names:
        known, died = state.read(paths, name), deaths.read(paths, name).recent(now)
        found.append(
            {
                **known.to_json(),
                "armed": known.armed and settings.armed,
                "deaths": len(died.own),
                "in_flight": died.by_key,
                "budget_left": policy.budget_left(known, died.faults, settings, now),
            }
        )
    return found
