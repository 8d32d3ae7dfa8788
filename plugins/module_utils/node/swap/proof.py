# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judges whether a release is fit to serve, by the acceptance probe and the watch. Private to the collection."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from ...core import systemd
from ...core.docker_api import Docker, DockerError, DockerUnavailable
from ...core.paths import Paths, unit_name
from ...engine import environment, task
from ...engine.probe import acceptance, health, probe, throughput, wait
from ...engine.probe import golden as golden_prompts
from ...engine.release import Release
from ...engine.state import history, probe_state, releases
from ...engine.state.drains import parse_time
from ...engine.unit_text import LABEL

ANSWER_SECONDS = 300.0
"""Limit for each answer in the probe, in seconds. The first request may compile kernels."""

POLL_SECONDS = 1.0

CONDEMNED = frozenset({health.HUNG, health.DEAD, health.WRONG, health.STOPPED})


class Unfit(Exception):
    """A release is not fit to serve; the message says why."""


def identity(release: Release, target: probe.Target, docker: Docker) -> str:
    """Why the process that answers is not the release's; empty if it is. Raises DockerError, DockerUnavailable."""
    container = docker.inspect(release.container)
    if container is None or not container["State"]["Running"]:
        return f"the container {release.container} does not run"
    label = container["Config"]["Labels"].get(LABEL)
    if label != str(release.number):
        return f"the container {release.container} runs release {label} instead of {release.number}"
    verdict = probe.check(target, container["State"]["Pid"])
    return "" if verdict.ready else verdict.message


def accept(
    paths: Paths,
    name: str,
    number: int,
    golden: Sequence[Mapping[str, Any]],
    *,
    origin: int | None = None,
    speed_bound: float = 0.0,
) -> acceptance.Result:
    """Probe a release that has started. `origin` is the release for the comparison of speed. Raises Unfit."""
    key = ""

    def unfit(message: str, *, words: bool = True) -> Unfit:
        shown = environment.mask(message, [key])
        if words:
            shown += f". Its last log lines:\n{wait.last_words(paths, name, retrying=False)}"
        return Unfit(f"release {number} of {name} is not fit to serve: {shown}")

    try:
        release = releases.load(paths, name, number)
        target = probe.target(release, environment.read(paths, name), task.of(release))
        key = target.api_key
        if wrong := identity(release, target, Docker()):
            raise unfit(wrong)
        found = acceptance.run(target, golden_prompts.read({"golden-prompts": golden}), ANSWER_SECONDS)
    except (acceptance.ProbeFailed, releases.ReleaseError, DockerError, DockerUnavailable, OSError) as error:
        raise unfit(str(error)) from error
    before = _speed_before(paths, name, release, origin)
    speed = found.tokens_per_second
    if before is not None and speed is not None and speed < speed_bound * before:
        raise unfit(
            f"one request alone gets {speed} tokens per second, the release before got {before}, and"
            f" update_speed_bound is {speed_bound}",
            words=False,
        )
    return found


def _speed_before(paths: Paths, name: str, release: Release, number: int | None) -> float | None:
    """Tokens per second of the release before, if it served the same model; else None."""
    known = history.last(paths, name, number) if number is not None else None
    if known is None or number is None:
        return None
    try:
        same = releases.load(paths, name, number).model == release.model
    except releases.ReleaseError:
        return None
    return known.tokens_per_second if same else None


def watch(
    paths: Paths,
    name: str,
    seconds: float,
    *,
    before: Sequence[Mapping[str, Any]] = (),
    speed_bound: float = 0.0,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Watch an engine that serves. `before` has the engine's counters at some times before the swap.

    Returns its speed as text; empty without a limit. Raises Unfit, SystemdError.
    """
    unit = unit_name(name)
    began, deadline = datetime.now(UTC), time.monotonic() + seconds
    first = systemd.show([unit], ["InvocationID"])[unit]["InvocationID"]
    looked = throughput.read(paths, name)
    while True:
        shown = systemd.show([unit], ["ActiveState", "InvocationID"])[unit]
        if shown["ActiveState"] != "active" or shown["InvocationID"] != first:
            words = wait.last_words(paths, name, retrying=shown["ActiveState"] == "activating")
            raise Unfit(f"{name} stopped serving while it was watched. Its last log lines:\n{words}")
        verdict, detail = _verdict_since(paths, name, began)
        if verdict in CONDEMNED:
            words = wait.last_words(paths, name, retrying=False)
            raise Unfit(f"{name} was found {verdict} while it was watched: {detail}. Its last log lines:\n{words}")
        if time.monotonic() >= deadline:
            break
        sleep(POLL_SECONDS)
    if not speed_bound:
        return ""
    looks = [throughput.Counters(**one) for one in before if one]
    earlier = throughput.between(looks[0], looks[-1]) if len(looks) > 1 else None
    slow, speed = throughput.judge(earlier, throughput.between(looked, throughput.read(paths, name)), speed_bound)
    if slow:
        raise Unfit(
            f"{name} is too slow: {speed};"
            f" update_watch_speed_bound allows no less than {speed_bound} times the speed before"
        )
    return speed


def _verdict_since(paths: Paths, name: str, began: datetime) -> tuple[str, str]:
    """The agent's verdict and its detail. `unknown` if there is none, or none since the watch began."""
    state = probe_state.read(paths, name)
    if state is None or parse_time(state.checked) < began.replace(microsecond=0):
        return health.UNKNOWN, ""
    return state.verdict, state.detail


def counted(paths: Paths, name: str) -> dict[str, Any]:
    """The engine's counters now, for `before`; empty if the engine does not answer."""
    found = throughput.read(paths, name)
    return asdict(found) if found else {}
