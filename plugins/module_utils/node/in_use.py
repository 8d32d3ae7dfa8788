# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds what a reboot would end: instances that serve, or else other programs on a GPU. Private to the collection."""

from __future__ import annotations

from ..core import systemd
from ..core.paths import Paths, unit_name
from ..engine.state import releases
from ..hardware.driver import holders

SILENT = frozenset({"inactive", "failed", "activating"})
"""States of the unit of an instance that does not serve. A unit is `activating` until its engine has answered a
request. A unit whose engine fails because the driver waits for a reboot stays `activating`."""

HELPERS = frozenset({"nvidia-persiste", "nv-fabricmanage", "nvlsm", "nv-hostengine", "dcgm-exporter", "nvidia-smi"})
"""Programs that open GPUs and serve no requests, by the kernel's names of their processes: at most 15 characters."""


def gather(paths: Paths) -> list[str]:
    """What is in use, one sentence each; empty for a node that is not in use. Raises SystemdError, OSError.

    Other programs are reported only if no instance runs.
    """
    running = [name for name in releases.names(paths) if systemd.active_state(unit_name(name)) not in SILENT]
    if running:
        # The GPUs' programs are not read then: the list would name the engines of these instances again.
        return [f"the instance {name} runs" for name in running]
    programs = [process for process in holders.processes(paths.root) if process.name not in HELPERS]
    return [f"{program} uses a GPU" for program in programs]
