# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inspects an instance: its situation, on which the policy decides. Private to the collection."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ...core import systemd
from ...core.commands import Outcome
from ...core.docker_api import Docker
from ...core.paths import Paths, unit_name
from ...engine.probe import health, wait
from ...engine.release import Release
from ...engine.state import attempts, drains, lock, probe_state, releases
from ...hardware import kernel_log
from ...hardware.gpu import facts as gpu_facts
from ...hardware.gpu import xid_actions
from . import actions, deaths, gpus, managed, models, policy, state
from .gpus import Gpus
from .managed import WrongFile
from .models import Damage
from .policy import Situation

Run = Callable[[Sequence[str], float], Outcome]

GPU_TIMEOUT = 15.0
"""Seconds for nvidia-smi. Without an answer, it is unknown what the GPUs need."""

DAEMON_JSON = "etc/docker/daemon.json"


@dataclass(frozen=True)
class Inspection:
    """A situation, and what the next step needs."""

    situation: Situation
    release: Release | None
    wrong: list[WrongFile]
    damaged: list[Damage]
    gpus: list[Mapping[str, Any]]


def inspect_instance(
    paths: Paths,
    name: str,
    now: datetime,
    docker: Docker,
    run: Run,
    hold_reason: Callable[[Situation], str] = lambda _situation: "",
) -> Inspection:
    """The situation of an instance. Takes a minute at most if Docker and nvidia-smi hang. Raises SystemdError.

    `hold_reason` returns why recovery must do nothing. If there is a reason, nvidia-smi does not run.
    """
    unit = systemd.show([unit_name(name)], ["ActiveState", "InvocationID"])[unit_name(name)]
    probe = probe_state.read(paths, name)
    release, broken = _release(paths, name)
    wrong = managed.verify(paths, name)
    damaged = models.find_damage(release) if release else []
    known, died = state.read(paths, name), deaths.read(paths, name)
    recent = died.recent(now)
    situation = Situation(
        name=name,
        verdict=probe.verdict if probe else health.UNKNOWN,
        detail=_detail(paths, probe, unit) if probe else "its agent has recorded no verdict",
        stale=probe is None or probe_state.stale(probe, now) or _of_earlier_start(probe, unit),
        unit_state=unit.get("ActiveState", ""),
        attempt=attempts.count(paths, name),
        state=known,
        deaths=recent.faults,
        died_last=deaths.died_last(died, known),
        in_flight=recent.by_key,
        lock=str(holder) if (holder := lock.held(paths, now)) else None,
        drain=drains.read(paths, name, now),
        docker_answers=actions.docker_answers(docker),
        docker_restarts=sum(len(state.read(paths, each).recent(now, policy.DOCKER)) for each in releases.names(paths)),
        docker_hold=_docker_hold(paths, name),
        wrong_files=tuple(str(one) for one in wrong if one.source),
        beyond_repair=(*broken, *(str(one) for one in wrong if one.source is None)),
        damaged_models=tuple(str(one) for one in damaged if one.fallback is None),
        damaged_copies=tuple(str(one) for one in damaged if one.fallback),
    )
    condemned = situation.verdict in health.CONDEMNED
    # nvidia-smi takes seconds, or hangs. While a breaker is open, this function runs every 30 s.
    if not condemned or not release or release.accelerator != "nvidia" or hold_reason(situation):
        return Inspection(situation, release, wrong, damaged, [])
    found = _gpus(paths.root, run)
    own = gpus.used_by(release, found)
    action, words = _needed(paths.root, own, found, known, now)
    shared = _shared(paths, name, own, found)
    situation = replace(situation, gpu_action=action, gpu_words=words, gpu_shared=shared)
    return Inspection(situation, release, wrong, damaged, own)


def _detail(paths: Paths, probe: probe_state.ProbeState, unit: Mapping[str, str]) -> str:
    """The detail of the last probe. If systemd has given up, also the error that the last start logged."""
    if unit.get("ActiveState") != "failed":
        return probe.detail
    words = wait.last_words(paths, probe.instance, retrying=False)
    errors = [line for line in words.splitlines() if line.startswith("inferctl: ") or "Error" in line]
    return f"{probe.detail}; its last start said: {errors[-1]}" if errors else probe.detail


def _of_earlier_start(probe: probe_state.ProbeState, unit: Mapping[str, str]) -> bool:
    """Whether the verdict is about a process that is gone: the last step may have started a new one since."""
    current = unit.get("InvocationID", "")
    return bool(current and probe.invocation) and current != probe.invocation


def _release(paths: Paths, name: str) -> tuple[Release | None, list[str]]:
    number = releases.active_number(paths, name)
    number = releases.current_number(paths, name) if number is None else number
    if number is None:
        return None, [f"{name} has no release that could be started"]
    try:
        return releases.load(paths, name, number), []
    except releases.ReleaseError:
        # managed.verify reports the damaged release.
        return None, []


def _gpus(root: Path, run: Run) -> list[Mapping[str, Any]]:
    facts = gpu_facts.gather(
        root, lambda command: run(command, GPU_TIMEOUT), "nvidia-smi", (gpu_facts.NVIDIA_SMI,), GPU_TIMEOUT
    )
    # A GPU that the driver excludes has no index.
    return [gpu for gpu in facts["gpus"] if not gpu["excluded"]]


def _needed(root: Path, own: Gpus, found: Gpus, known: state.State, now: datetime) -> tuple[str, str]:
    """The worst action that the GPUs of an instance need, and why, by the kernel's log and the driver."""
    addresses = {str(gpu["pci_bus_id"]) for gpu in own}
    log = kernel_log.read(root, GPU_TIMEOUT) if addresses else None
    since = gpus.last_reset(known, now)
    missing = {str(gpu["pci_bus_id"]) for gpu in own if not gpu["reported"]}
    needs = (gpus.needed_by_log(log or "", addresses, since, missing), gpus.needed_by_driver(own, found))
    words = "; ".join(dict.fromkeys(words for _action, words in needs if words))
    return xid_actions.worst([action for action, _words in needs]), words


def _shared(paths: Paths, name: str, own: Sequence[Mapping[str, Any]], found: list[Mapping[str, Any]]) -> bool:
    addresses = {gpu["pci_bus_id"] for gpu in own}
    for other in releases.names(paths):
        number = releases.active_number(paths, other)
        if other == name or number is None:
            continue
        try:
            release = releases.load(paths, other, number)
        except releases.ReleaseError:
            # The other instance may use any GPU.
            return True
        if addresses & {gpu["pci_bus_id"] for gpu in gpus.used_by(release, found)}:
            return True
    return False


def live_restore(paths: Paths) -> bool:
    """Whether containers outlive a restart of dockerd, by the setting in daemon.json."""
    try:
        text = (paths.root / DAEMON_JSON).read_text(encoding="utf-8")
        return json.loads(text).get("live-restore") is True
    except (OSError, ValueError, AttributeError):
        return False


def _docker_hold(paths: Paths, name: str) -> str:
    """Why Docker must not be restarted: without live-restore, other engines would end with it."""
    if live_restore(paths):
        return ""
    others = [other for other in releases.names(paths) if other != name]
    shown = systemd.show(map(unit_name, others), ["ActiveState"])
    serving = [other for other in others if shown[unit_name(other)].get("ActiveState") == "active"]
    return f"its restart would end {', '.join(serving)} (live-restore is off)" if serving else ""
