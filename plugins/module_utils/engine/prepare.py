# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks Docker, image, model and port before an engine's container is created. Private to the collection."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from ..core.docker_api import Docker, DockerError, DockerUnavailable
from ..models.file_names import ADAPTER_CONFIG
from .listeners import PROC, Ownership, Process, ownership
from .release import Release

DOCKER_TIMEOUT = 90.0
"""Seconds to wait for dockerd: less than PREPARE_TIMEOUT of the unit, so that the journal has this file's message."""

REPORT_INTERVAL = 10.0
"""Seconds between two lines in the journal about the wait."""


class NotPrepared(Exception):
    """An engine cannot start; `problems` are the reasons."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


def prepare(
    release: Release,
    docker: Docker,
    say: Callable[[str], None],
    *,
    timeout: float = DOCKER_TIMEOUT,
    proc: Path = PROC,
) -> None:
    """Wait for dockerd, remove a leftover container, and check model, image and port. Raises NotPrepared."""
    wait_for_docker(docker, say, timeout)
    problems: list[str] = []
    try:
        if docker.inspect(release.container) is not None:
            say(f"removing the container {release.container} that an earlier run left behind")
            docker.remove(release.container)
        problems += missing(release, docker)
    except (DockerUnavailable, DockerError) as error:
        raise NotPrepared([f"{error}: read journalctl -u docker"]) from error
    problems += _port_problems(release, docker, proc)
    if problems:
        raise NotPrepared(problems)


def wait_for_docker(docker: Docker, say: Callable[[str], None], timeout: float) -> None:
    """Return once dockerd answers. Raises NotPrepared after `timeout` seconds."""
    began = time.monotonic()
    next_report = began
    while True:
        try:
            docker.ping()
            return
        except (DockerUnavailable, DockerError) as error:
            spent = time.monotonic() - began
            if spent >= timeout:
                raise NotPrepared([f"{error} after {timeout:.0f} s: systemctl status docker"]) from error
            if time.monotonic() >= next_report:
                say(f"waiting for dockerd ({spent:.0f} of {timeout:.0f} s): {error}")
                next_report += REPORT_INTERVAL
        time.sleep(min(1.0, timeout))


def missing(release: Release, docker: Docker) -> list[str]:
    """The parts of a release that this node lacks. Raises DockerUnavailable and DockerError."""
    problems = []
    if docker.inspect_image(release.image) is None:
        problems.append(
            f"the image {release.image} is not on this node:"
            f" run baremetal.inference.site, or docker pull {release.image}"
        )
    return problems + _model_problems(release)


def _model_problems(release: Release) -> list[str]:
    path = Path(release.model_path)
    if not path.is_dir():
        return [
            f"the model {release.model} is not at {path}:"
            " is the disk mounted? baremetal.inference.site puts models there"
        ]
    if not os.access(path / "config.json", os.R_OK):
        return [f"{path} holds no readable config.json: baremetal.inference.site repairs the model {release.model}"]
    if release.draft and not os.access(Path(release.draft) / "config.json", os.R_OK):
        return [f"the draft model has no readable config.json at {release.draft}: baremetal.inference.site repairs it"]
    lost = [path for path in release.mounts if not Path(path).exists()]
    return [
        *(
            f"{path}, which flags of {release.model} need, is missing: baremetal.inference.site copies files of"
            " the controller; create any other path on the node"
            for path in lost
        ),
        *_lost_adapters(release),
    ]


def _lost_adapters(release: Release) -> list[str]:
    return [
        f"the adapter {name} has no readable {ADAPTER_CONFIG} at {place}: baremetal.inference.site repairs it"
        for name, place in release.lora.items()
        if not os.access(Path(place) / ADAPTER_CONFIG, os.R_OK)
    ]


def _port_problems(release: Release, docker: Docker, proc: Path) -> list[str]:
    found = ownership(release.port, release.address, None, proc)
    if found.unknown:
        # Most likely the process was about to end: look again.
        time.sleep(0.5)
        found = ownership(release.port, release.address, None, proc)
    advice = f"stop that process, or give the instance {release.instance} another port"
    problems = [f"port {release.port} is taken by {_named(process, docker)}: {advice}" for process in _distinct(found)]
    if found.unknown and not problems:
        problems.append(f"port {release.port} is taken by a process that cannot be found in /proc: {advice}")
    return problems


def _distinct(found: Ownership) -> list[Process]:
    """One process of each container: the workers of a server share one socket."""
    return list({process.container_id or process.pid: process for process in reversed(found.strangers)}.values())


def _named(process: Process, docker: Docker) -> str:
    """The process with the name of its container, where dockerd has the container."""
    container = None
    if process.container_id:
        try:
            container = docker.inspect(process.container_id)
        except (DockerUnavailable, DockerError):
            # Pid and command are known, and are enough.
            container = None
    return f"{process} in container {container['Name'].lstrip('/')}" if container else str(process)
