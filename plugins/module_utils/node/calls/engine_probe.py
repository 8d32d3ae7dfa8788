# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The implementation of the module engine_probe."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from ...core import systemd
from ...core.call import Call
from ...core.docker_api import (
    Docker,
    DockerError,
    DockerUnavailable,
)
from ...core.paths import Paths, unit_name
from ...engine import environment
from ...engine.probe import (
    acceptance,
    health,
    probe,
    throughput,
    wait,
)
from ...engine.release import LABEL, Release
from ...engine.state import history, probe_state, releases
from ...engine.state.drains import parse_time
from ...models.registry.variants import resolve

ACCEPTED = "accepted"
WATCHED = "watched"

POLL_SECONDS = 1.0

CONDEMNED = frozenset({health.HUNG, health.DEAD, health.WRONG, health.STOPPED})


def identity(release: Release, target: probe.Target, docker: Docker) -> str:
    """What is wrong with the process that answers; empty where it is the release's. Raises DockerError and the like."""
    container = docker.inspect(release.container)
    if container is None or not container["State"]["Running"]:
        return f"the container {release.container} does not run"
    label = container["Config"]["Labels"].get(LABEL)
    if label != str(release.number):
        return f"the container {release.container} runs release {label}, and not {release.number}"
    verdict = probe.check(target, container["State"]["Pid"])
    return "" if verdict.ready else verdict.message


def accept(module: Call) -> None:
    """Run the acceptance probe of a release."""
    given, paths = module.params, Paths()
    name = given["name"]
    key = ""

    def refuse(message: str, steps: list[str], *, words: bool = True) -> None:
        shown = environment.mask(message, [key])
        if words:
            shown += f". Its last words:\n{wait.last_words(paths, name, retrying=False)}"
        module.fail_json(msg=f"release {given['release']} of {name} is not fit to serve: {shown}", steps=steps)

    try:
        release = releases.load(paths, name, given["release"])
        key = environment.read(paths, name).get(environment.API_KEY, "")
        target = probe.Target(release.address, release.port, release.served_names, key)
        if wrong := identity(release, target, Docker()):
            refuse(wrong, [])
        golden = acceptance.golden_prompts(resolve(given["models"], release.model) or {})
        found = acceptance.run(target, golden, given["timeout"])
        before = _speed_before(paths, name, release, given["compare_to"])
    except acceptance.ProbeFailed as error:
        refuse(str(error), error.steps)
    except (releases.ReleaseError, DockerError, DockerUnavailable, OSError) as error:
        refuse(str(error), [])
    speed, bound = found.tokens_per_second, given["speed_bound"]
    if before is not None and speed < bound * before:
        refuse(
            f"one request alone gets {speed} tokens per second, the release before got {before}, and speed_bound is"
            f" {bound}",
            found.steps,
            words=False,
        )
    module.exit_json(changed=False, steps=["answered a completion", *found.steps], tokens_per_second=speed)


def _speed_before(paths: Paths, name: str, release: Release, number: int | None) -> float | None:
    """Tokens per second of the release before, where it served the same model."""
    known = history.last(paths, name, number) if number is not None else None
    if known is None or number is None:
        return None
    try:
        same = releases.load(paths, name, number).model == release.model
    except releases.ReleaseError:
        return None
    return known.tokens_per_second if same else None


def verdict_since(paths: Paths, name: str, began: datetime) -> tuple[str, str]:
    """The agent's verdict and its detail; `unknown` where it is from before the watch, or is not known."""
    state = probe_state.read(paths, name)
    if state is None or parse_time(state.checked) < began.replace(microsecond=0):
        return health.UNKNOWN, ""
    return state.verdict, state.detail


def judge(given: dict[str, Any], now: throughput.Pace | None) -> tuple[bool, str]:
    """Whether it is too slow for its bound, and what is known of that, in words."""
    if not given["speed_bound"]:
        return False, ""
    looks = [throughput.Counters(**one) if one else None for one in given["before"]]
    return throughput.judge(throughput.between(*looks) if looks else None, now, given["speed_bound"])


def watch(module: Call) -> None:
    """Watch an engine that serves."""
    paths, name = Paths(), module.params["name"]
    unit = unit_name(name)
    began, deadline = datetime.now(UTC), time.monotonic() + module.params["seconds"]
    verdict = health.UNKNOWN
    try:
        first = systemd.show([unit], ["InvocationID"])[unit]["InvocationID"]
        looked = throughput.read(paths, name)
        while True:
            shown = systemd.show([unit], ["ActiveState", "InvocationID"])[unit]
            verdict, detail = verdict_since(paths, name, began)
            if shown["ActiveState"] != "active" or shown["InvocationID"] != first:
                words = wait.last_words(paths, name, retrying=shown["ActiveState"] == "activating")
                module.fail_json(msg=f"{name} stopped serving while it was watched. Its last words:\n{words}")
            if verdict in CONDEMNED:
                words = wait.last_words(paths, name, retrying=False)
                found = f"{name} was found {verdict} while it was watched: {detail}"
                module.fail_json(msg=f"{found}. Its last words:\n{words}")
            if time.monotonic() >= deadline:
                break
            time.sleep(POLL_SECONDS)
    except (systemd.SystemdError, OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    slow, speed = judge(module.params, throughput.between(looked, throughput.read(paths, name)))
    if slow:
        bound = f"vllm_update_watch_speed_bound allows no less than {module.params['speed_bound']} of before"
        module.fail_json(msg=f"{name} got too slow: {speed}; {bound}")
    module.exit_json(changed=False, verdict=verdict, speed=speed)


def run(module: Call) -> None:
    """Answer a call."""
    (accept if module.params["state"] == ACCEPTED else watch)(module)
