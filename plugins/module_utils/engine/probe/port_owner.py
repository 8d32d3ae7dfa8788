# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the process on an instance's port is its container's. Private to the collection."""

from __future__ import annotations

from pathlib import Path

from ...core.docker_api import Docker, DockerError, DockerUnavailable
from ..listeners import PROC, listening, ownership
from .probe import Target


class PortOwner:
    """Finds a foreign process on an engine's port.

    A node has thousands of open files, and the agent probes every few seconds. So all of /proc is searched again only
    if the listening sockets changed, or if the last search did not show that they are the container's.
    """

    def __init__(self, docker: Docker, proc: Path = PROC) -> None:
        self._docker = docker
        self._proc = proc
        self._known: set[int] = set()

    def stranger(self, target: Target, container: str) -> str:
        """The foreign process that listens on the port; empty where there is none, or where unknown. Raises OSError."""
        sockets = listening(target.port, target.connect_address, self._proc)
        if sockets == self._known:
            return ""
        pid = self._first_process(container)
        if pid is None:
            return ""
        owner = ownership(target.port, target.connect_address, pid, self._proc)
        if owner.strangers:
            return ", ".join(str(process) for process in owner.strangers)
        if owner.ours and not owner.unknown:
            self._known = sockets
        return ""

    def _first_process(self, container: str) -> int | None:
        """The pid of the container's first process; None where the container does not run, or dockerd does not
        answer."""
        try:
            found = self._docker.inspect(container)
        except (DockerUnavailable, DockerError):
            return None
        return found["State"].get("Pid") or None if found else None
