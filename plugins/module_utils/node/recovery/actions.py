# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the steps of recovery do on the node, each action with a time limit. Private to the collection."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

from ...core import systemd
from ...core.commands import Outcome
from ...core.docker_api import Docker, DockerError, DockerUnavailable
from ...core.paths import Paths, container_name, unit_name
from ...hardware.gpu_settings import boot
from ...hardware.gpu_settings.apply import NoAnswer

DOCKER_UNITS = ("docker.socket", "docker.service")

DOCKER_SECONDS = 120.0
"""Limit for a restarted dockerd to answer, in seconds. With hundreds of containers, it takes half a minute."""

DOCKER_KILL_AFTER = 45.0
"""Seconds after which a dockerd that does not end is killed. With live-restore, containers continue."""

STOP_SECONDS = 60.0
"""Limit for a unit to end after its container is gone, in seconds."""

RESET_SECONDS = 60.0

PING_TRIES, PING_PAUSE = 3, 3.0
"""How often Docker is called before it counts as silent, and seconds between the calls."""

GPU_CLIENTS = (
    "nvidia-cdi-refresh.path",
    "nvidia-cdi-refresh.service",
    "nvidia-dcgm.service",
    "dcgm-exporter.service",
    "prometheus-dcgm-exporter.service",
    "nvidia-persistenced.service",
)
"""Units that use a GPU and so prevent a reset, in the order in which they are stopped. Source: OCI's gpu_reset.sh,
NVSentinel's reset job. The fabric manager keeps running: GPUs of Hopper and later can be reset with it."""

Run = Callable[[Sequence[str], float], Outcome]


class ActionError(Exception):
    """An action has failed; the message says which."""


def docker_answers(docker: Docker, pause: Callable[[float], None] = time.sleep) -> bool:
    """Whether dockerd answers one of several calls."""
    for attempt in range(PING_TRIES):
        if attempt:
            pause(PING_PAUSE)
        with contextlib.suppress(DockerUnavailable, DockerError):
            docker.ping()
            return True
    return False


def restart_docker(docker: Docker) -> str:
    """Restart dockerd with its socket, and kill it if it does not end. Raises ActionError, SystemdError."""
    began = time.monotonic()
    _forget_failures(*DOCKER_UNITS)
    systemd.systemctl("restart", "--no-block", *DOCKER_UNITS)
    killed = False
    while time.monotonic() - began < DOCKER_SECONDS:
        time.sleep(1)
        with contextlib.suppress(DockerUnavailable, DockerError):
            docker.ping()
            return f"Docker answers after {time.monotonic() - began:.0f} s"
        stuck = systemd.active_state("docker.service") == "deactivating"
        if stuck and not killed and time.monotonic() - began > DOCKER_KILL_AFTER:
            killed = True
            systemd.systemctl("kill", "--signal=KILL", "docker.service")
    raise ActionError(f"Docker does not answer {DOCKER_SECONDS:.0f} s after its restart: journalctl -u docker")


def stop(name: str, docker: Docker) -> None:
    """End an engine and its container, without waiting for requests that the engine will not answer.

    Raises ActionError, SystemdError.
    """
    unit = unit_name(name)
    # systemd reports an error for a stopped unit whose file was deleted.
    if systemd.active_state(unit) != "inactive":
        systemd.systemctl("stop", "--no-block", unit)
    # The supervisor sees the death of the container and ends. The removal also ends a paused container. The removal may
    # take longer than Docker's time limit, as a process releases its GPUs. A second removal shows the result.
    with contextlib.suppress(ActionError):
        _remove(name, docker)
    deadline = time.monotonic() + STOP_SECONDS
    while systemd.active_state(unit) not in ("inactive", "failed"):
        if time.monotonic() >= deadline:
            systemd.systemctl("kill", "--signal=KILL", unit)
            break
        time.sleep(0.5)
    _remove(name, docker)


def _remove(name: str, docker: Docker) -> None:
    try:
        docker.remove(container_name(name))
    except (DockerError, DockerUnavailable) as error:
        raise ActionError(f"the container {container_name(name)} cannot be removed: {error}") from error


def start(name: str) -> None:
    """Start an engine, and do not wait for it: the agent judges the result. Raises SystemdError."""
    unit = unit_name(name)
    systemd.systemctl("daemon-reload")
    _forget_failures(unit)
    systemd.systemctl("start", "--no-block", unit)


def _forget_failures(*units: str) -> None:
    """Reset systemd's count of failures, which could prevent a start. A unit that is not loaded has none: no error."""
    for unit in units:
        with contextlib.suppress(systemd.SystemdError):
            systemd.systemctl("reset-failed", unit)


def reset_gpus(gpus: Sequence[dict[str, Any]], run: Run) -> str:
    """Reset GPUs that no engine uses. Raises ActionError, SystemdError."""
    addresses = [str(gpu["pci_bus_id"]) for gpu in gpus]
    running = [unit for unit in GPU_CLIENTS if systemd.active_state(unit) in systemd.RUNNING]
    try:
        for unit in running:
            systemd.systemctl("stop", unit)
        outcome = run(["nvidia-smi", "--gpu-reset", f"--id={','.join(addresses)}"], RESET_SECONDS)
    finally:
        for unit in reversed(running):
            # If one unit does not start, the others must start all the same.
            with contextlib.suppress(systemd.SystemdError):
                systemd.systemctl("start", "--no-block", unit)
    if outcome.failure or outcome.code:
        words = outcome.message or outcome.stdout.strip() or outcome.stderr.strip()
        raise ActionError(f"the reset of {', '.join(addresses)} failed: {words}")
    return f"reset {', '.join(addresses)}"


def apply_gpu_settings(paths: Paths) -> list[str]:
    """Apply the role's GPU settings. Returns the failures: the engine starts with other clocks, too."""
    try:
        failures = boot.apply(paths).failures
    except (NoAnswer, OSError, ValueError) as error:
        failures = [str(error)]
    return [f"its GPU settings: {'; '.join(failures)}"] if failures else []
