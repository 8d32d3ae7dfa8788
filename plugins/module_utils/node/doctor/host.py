# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the checks look at: a node's files and tools, each asked once. Private to the collection."""

from __future__ import annotations

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
"""Seconds for one call of a tool; half of a check's time, which may have to ask two."""

KERNEL_LOG_TIMEOUT = 5.0
"""Seconds for reading the kernel's log."""

Run = Callable[[Sequence[str], float], Outcome]


@dataclass(frozen=True)
class Thresholds:
    """Where the checks draw the line."""

    free_percent: int = 5
    """Of a file system; below that it is as good as full."""
    clock_seconds: float = 1.0
    """By how much the clock may be off."""


class Host:
    """A node. `run` runs a program for some seconds at most."""

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
        """What a program prints. Raises CannotTell where it does not end, is not there, or fails."""
        outcome = self.run(command, timeout)
        if outcome.failure:
            raise CannotTell(outcome.message)
        if outcome.code:
            words = (outcome.stderr or outcome.stdout).strip() or f"exit status {outcome.code}"
            raise CannotTell(f"{command[0]}: {words}")
        return outcome.stdout

    def wants_gpus(self) -> bool:
        """Whether an instance of this node computes on NVIDIA's GPUs."""
        return any(release.accelerator == "nvidia" for release in self.releases().values())

    def has_gpus(self) -> bool:
        """Whether there is one, wanted or not."""
        return bool(self.gpus()["gpus"])

    def _gpus(self) -> Mapping[str, Any]:
        return gpu_facts.gather(
            self.root,
            lambda command: self.run(command, TOOL_TIMEOUT),
            "nvidia-smi",
            (gpu_facts.NVIDIA_SMI, gpu_facts.NVLINK, gpu_facts.XIDS),
            KERNEL_LOG_TIMEOUT,
        )

    def _rdma(self) -> Mapping[str, Any]:
        # Merely asking `rdma` would load the modules of RDMA on a node that has none.
        there = rdma_facts.has_rdma(self.root)
        names = {name: shutil.which(name) if there else None for name in ("rdma", "ip")}
        programs = rdma_facts.Programs(rdma=names["rdma"], ip=names["ip"])
        parts = (rdma_facts.GIDS, rdma_facts.ADDRESSES, rdma_facts.TOOLS, rdma_facts.NICS)
        return rdma_facts.gather(self.root, parts, programs, lambda command: self.run(command, TOOL_TIMEOUT))

    def _kernel_log(self) -> str:
        log = kernel_log.read(self.root, KERNEL_LOG_TIMEOUT)
        if log is None:
            raise CannotTell("the kernel's log cannot be read")
        return log

    def _releases(self) -> dict[str, Release]:
        """The release of each instance: the active one, or the desired one before the first start. Damaged releases are
        left out: another check names them."""
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
