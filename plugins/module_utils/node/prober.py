# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Probes one instance: from its unit and release to a finding. Private to the collection."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from ..core import systemd
from ..core.docker_api import Docker
from ..core.paths import Paths, unit_name
from ..engine import environment, task
from ..engine.listeners import PROC
from ..engine.probe import health, wait
from ..engine.probe.health import Finding, History
from ..engine.probe.observation import LIMIT, Observation, Seen, observe
from ..engine.probe.port_owner import PortOwner
from ..engine.probe.probe import Target
from ..engine.probe.probe import target as engine_target
from ..engine.release import Release
from ..engine.state import attempts, releases

DOCKER_TIMEOUT = 5.0
"""Limit in seconds. Docker is read after each start of an engine, until the port is known to be the engine's. Without
Docker's answer, the probe continues."""

SYSTEMD_TIMEOUT = 10.0
"""Limit in seconds. Without systemd's answer, the unit's state is unknown, and the probe continues."""

OWNER_INTERVAL = 60.0
"""Seconds between two checks of who listens on the port of an engine that serves.
For each check, the kernel reads all its connections."""

Show = Callable[[list[str], tuple[str, ...]], Mapping[str, dict[str, str]]]


def _show(units: list[str], properties: tuple[str, ...]) -> Mapping[str, dict[str, str]]:
    return systemd.show(units, properties)


async def _no_stranger() -> str:
    return ""


class Prober:
    """Probes an instance. Keeps facts of the current start for the next probe."""

    def __init__(
        self,
        paths: Paths,
        name: str,
        docker: Docker,
        *,
        limit: float = LIMIT,
        show: Show = _show,
        proc: Path = PROC,
        known: tuple[str, str] = ("", health.UNKNOWN),
    ) -> None:
        """`known` has systemd's id of the start that was probed last, and the last verdict."""
        self.invocation, verdict = known
        self._paths = paths
        self._name = name
        self._limit = limit
        self._show = show
        self._owner = PortOwner(docker, proc)
        self._history = History(verdict)
        self._serves = False
        self._owner_due = 0.0

    async def round(self) -> Finding:
        """Probe once, or judge by systemd if the unit does not run. Takes up to 40 s if engine, systemd and Docker
        hang.

        Raises OSError.
        """
        # If the engine served in the last probe, systemd is not read first: this saves a process every ten seconds.
        if not self._serves and (finding := await self._of_unit()):
            return finding
        check_owner = not self._serves or time.monotonic() >= self._owner_due
        self._serves = False
        try:
            release = self._release()
            if release.gang is not None and not release.gang.leads:
                return Finding(health.UNKNOWN, f"follows {release.gang.leader.node}, whose engine alone can be probed")
            # task.of() reads files of the model once, perhaps from a slow disk.
            target = await asyncio.to_thread(self._target, release)
        except (releases.ReleaseError, OSError, ValueError) as error:
            return Finding(health.UNKNOWN, str(error))
        observation, stranger = await asyncio.gather(
            observe(target, self._limit), self._stranger(target, release) if check_owner else _no_stranger()
        )
        # Meanwhile, the engine may have been stopped, or may have died and be loading again.
        if observation.seen is not Seen.TOKEN and (finding := await self._of_unit()):
            return finding
        if stranger:
            observation = Observation(Seen.WRONG, f"port {target.port} is taken by {stranger}: stop it")
        finding = self._history.judge(self._masked(observation))
        self._serves = finding.verdict in health.SERVING
        return finding

    def _release(self) -> Release:
        number = releases.active_number(self._paths, self._name)
        if number is None:
            raise ValueError(
                f"{self._paths.active(self._name)} does not name the active release: run baremetal.inference.site"
            )
        return releases.load(self._paths, self._name, number)

    def _target(self, release: Release) -> Target:
        return engine_target(release, environment.read(self._paths, self._name), task.of(release))

    async def _of_unit(self) -> Finding | None:
        """A finding from systemd's state; None if the engine must be probed. A new start resets the history."""
        unit = unit_name(self._name)
        try:
            async with asyncio.timeout(SYSTEMD_TIMEOUT):
                shown = await asyncio.to_thread(self._show, [unit], (*wait.PROPERTIES, "InvocationID"))
        except (systemd.SystemdError, TimeoutError):
            return None
        invocation = shown[unit].get("InvocationID", "")
        if invocation != self.invocation:
            self.invocation = invocation
            self._history = History()
        return health.of_unit(shown[unit], attempts.count(self._paths, self._name), declared=self._declared())

    def _declared(self) -> bool:
        """Whether the unit must exist. A removal deletes the declaration before the unit."""
        return self._paths.instance(self._name).exists() and releases.active_number(self._paths, self._name) is not None

    async def _stranger(self, target: Target, release: Release) -> str:
        self._owner_due = time.monotonic() + OWNER_INTERVAL
        try:
            async with asyncio.timeout(self._limit):
                return await asyncio.to_thread(self._owner.stranger, target, release.container)
        except OSError:
            # /proc could not be read in time, so no process can be blamed.
            return ""

    def _masked(self, observation: Observation) -> Observation:
        """The observation without secrets: the state is public, and an engine's answer may repeat a key."""
        secrets = environment.secrets(environment.read(self._paths, self._name))
        return replace(observation, detail=environment.mask(observation.detail, secrets))
