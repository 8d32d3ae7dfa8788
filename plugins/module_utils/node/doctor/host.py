# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node that the checks examine. Each value is read once. Private to the collection."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core import commands
from ...core.commands import Outcome
from ...core.docker_api import Docker
from ...core.paths import Paths
from ...engine.release import Release
from ...engine.state import releases
from ...hardware import kernel_log
from ...hardware.gpu import driver
from ...hardware.gpu import facts as gpu_facts
from ...hardware.rdma import facts as rdma_facts
from .check import CannotTell, Once

TOOL_TIMEOUT = 15.0
"""Limit for one call of a program, in seconds: half of a check's limit, since a check may call two."""

KERNEL_LOG_TIMEOUT = 5.0
"""Limit for reading the kernel's log, in seconds."""

Run = Callable[[Sequence[str], float], Outcome]


@dataclass(frozen=True)
class Thresholds:
    """The limits beyond which a check is not ok."""

    free_percent: int = 5
    """Least free share of a file system, in percent."""
    clock_seconds: float = 1.0
    """Most seconds by which the clock may be off."""


class Host:
    """A node. `run` runs a program within a number of seconds."""

    def __init__(
        self,
        paths: Paths,
        run: Run = commands.run,
        docker: Docker | None = None,
        thresholds: Thresholds | None = None,
    ) -> None:
        self.paths = paths
        self.root: Path = paths.root
        self.run = run
        self.docker = docker or Docker(timeout=TOOL_TIMEOUT)
        self.thresholds = thresholds or Thresholds()
        self.gpus = Once(self._gpus)
        self.rdma = Once(self._rdma)
        self.kernel_log = Once(self._kernel_log)
        self.driver = Once(lambda: driver.read(self.root))
        self.releases = Once(self._releases)

    def ask(self, *command: str, timeout: float = TOOL_TIMEOUT) -> str:
        """The output of a program. Raises CannotTell if it is missing, fails or does not end in time."""
        outcome, by_hand = self.run(command, timeout), f"run as root: {shlex.join(command)}"
        if outcome.failure:
            raise CannotTell(outcome.message, by_hand)
        if outcome.code:
            words = (outcome.stderr or outcome.stdout).strip() or f"exit status {outcome.code}"
            raise CannotTell(f"{command[0]}: {words}", by_hand)
        return outcome.stdout

    def wants_gpus(self) -> bool:
        """Whether an instance of this node computes on NVIDIA GPUs."""
        return any(release.accelerator == "nvidia" for release in self.releases().values())

    def has_gpus(self) -> bool:
        """Whether the node has a GPU for NVIDIA's driver. GPUs that an operator has excluded do not count."""
        return any(not gpu["excluded"] for gpu in self.gpus()["gpus"])

    def _gpus(self) -> Mapping[str, Any]:
        return gpu_facts.gather(
            self.root,
            lambda command: self.run(command, TOOL_TIMEOUT),
            "nvidia-smi",
            (gpu_facts.NVIDIA_SMI, gpu_facts.NVLINK, gpu_facts.XIDS),
            KERNEL_LOG_TIMEOUT,
        )

    def _rdma(self) -> Mapping[str, Any]:
        # The program `rdma` would load kernel modules on a node without RDMA.
        there = rdma_facts.has_rdma(self.root)
        names = {name: shutil.which(name) if there else None for name in ("rdma", "ip")}
        programs = rdma_facts.Programs(rdma=names["rdma"], ip=names["ip"])
        parts = (rdma_facts.GIDS, rdma_facts.ADDRESSES, rdma_facts.TOOLS, rdma_facts.NICS, rdma_facts.GPUS)
        return rdma_facts.gather(self.root, parts, programs, lambda command: self.run(command, TOOL_TIMEOUT))

    def _kernel_log(self) -> str:
        log = kernel_log.read(self.root, KERNEL_LOG_TIMEOUT)
        if log is None:
            raise CannotTell(
                "the kernel's log cannot be read",
                "run inferctl doctor as root on the machine itself: a container may have no /dev/kmsg",
            )
        return log

    def _releases(self) -> dict[str, Release]:
        """The release of each instance: the active one, or the desired one before the first start. Leaves out damaged
        releases, since another check reports them."""
        found = {}
        for name in releases.names(self.paths):
            number = releases.active_number(self.paths, name)
            try:
                number = releases.desired_number(self.paths, name) if number is None else number
                if number is not None:
                    found[name] = releases.load(self.paths, name, number)
            except (OSError, ValueError, releases.ReleaseError):
                continue
        return found
