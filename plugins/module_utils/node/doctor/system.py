# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks the machine below the engines: disks, memory limits, shared memory, clock, and whether a reboot is due.

Private to the collection.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from ...core import files
from ...core.commands import NOT_INSTALLED
from ...debian import chrony
from ...hardware.rdma.nccl_log import RAISE_MEMLOCK
from .check import FAIL, OK, WARN, CannotTell, Check, Finding
from .host import TOOL_TIMEOUT, Host

MEMLOCK_LIMIT = 1 << 30
"""Least bytes that a container must be able to lock if it uses RDMA, since NCCL registers its buffers. The defaults of
64 KiB and 8 MiB are too little."""

DAEMON_JSON = "etc/docker/daemon.json"

SHM = "dev/shm"

SHM_MINIMUM = 64 << 20
"""Least free bytes, which processes of the node itself need to share memory."""

PLACES = ("", "var/lib/docker", "var/log", "mnt/models", "mnt/nvme/workspace")


def _places(host: Host) -> list[Path]:
    """The file systems that engines need, each once."""
    wanted = [host.root / place for place in PLACES]
    wanted += [host.paths.state, *(Path(release.model_path) for release in host.releases().values())]
    found: dict[int, Path] = {}
    for path in wanted:
        try:
            found.setdefault(path.stat().st_dev, path)
        except OSError:
            # This node does not have the path.
            continue
    return list(found.values())


def disk(host: Host) -> Finding:
    """Space and inodes are free. A full disk prevents writing state, and a full fast disk prevents caching."""
    fails, least = [], 100.0
    for path in _places(host):
        stat = os.statvfs(path)
        parts = {"space": (stat.f_bavail, stat.f_blocks), "inodes": (stat.f_favail, stat.f_files)}
        for what, (free, total) in parts.items():
            percent = 100 * free / total if total else 100.0
            least = min(least, percent)
            if percent < host.thresholds.free_percent:
                fails.append(f"{path}: {percent:.1f} % of the {what} free")
    if fails:
        return Finding(FAIL, "; ".join(fails), "remove old models, images (docker image prune) and logs")
    return Finding(OK, f"at least {least:.0f} % are free everywhere")


def shm(host: Host) -> Finding:
    """/dev/shm of the node has space. Containers have their own, with their own size."""
    path = host.root / SHM
    if not path.is_dir():
        raise CannotTell(f"there is no {path}", f"mount -t tmpfs tmpfs {path}")
    stat = os.statvfs(path)
    free = stat.f_bavail * stat.f_frsize
    if free < SHM_MINIMUM:
        return Finding(WARN, f"{free >> 20} MiB free in {path}", f"remove what fills it: ls -l {path}")
    return Finding(OK, f"{free >> 20} MiB free")


def memlock(host: Host) -> Finding:
    """The containers of engines over several nodes may lock enough memory for RDMA."""
    # Engines of one node, and engines on CPUs, do not use RDMA.
    on_gpus = {name: release for name, release in host.releases().items() if release.accelerator == "nvidia"}
    members = {name: release for name, release in sorted(on_gpus.items()) if release.gang is not None}
    if not members:
        return Finding(OK, "does not apply: no engine on GPUs runs over several nodes")
    if not host.rdma()["rdma_devices"]:
        return Finding(OK, "does not apply: there is no RDMA device")
    limits = {name: release.settings.ulimits.get("memlock") or _inherited(host) for name, release in members.items()}
    low = [f"{name} may lock {limit} bytes" for name, limit in limits.items() if not _suffices(limit)]
    if low:
        return Finding(WARN, f"{', '.join(low)}, and RDMA needs {MEMLOCK_LIMIT}", RAISE_MEMLOCK)
    return Finding(OK, f"{', '.join(members)} may lock enough memory")


def _inherited(host: Host) -> str:
    """The limit of a container without `--ulimit=memlock`: Docker's default, else the limit of containerd, which starts
    the container. Raises CannotTell."""
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        return str(files.read_json(host.root / DAEMON_JSON, {})["default-ulimits"]["memlock"]["Soft"])
    return host.ask("systemctl", "show", "--property=LimitMEMLOCK", "--value", "containerd.service").strip()


def _suffices(limit: str) -> bool:
    """Whether a limit of Docker (`SOFT:HARD`, or one number for both; -1 for none) or of systemd is enough. Processes
    start with the soft limit."""
    soft = limit.partition(":")[0]
    return soft in ("-1", "infinity") or (soft.isdigit() and int(soft) >= MEMLOCK_LIMIT)


def clock(host: Host) -> Finding:
    """The clock is synchronised. With chrony, its offset from the chosen source is within the threshold."""
    outcome = host.run(["chronyc", "-c", "-N", "sources"], TOOL_TIMEOUT)
    if outcome.failure == NOT_INSTALLED:
        return _timedated(host)
    if outcome.code != 0:
        words = (outcome.message or outcome.stdout or outcome.stderr).strip()
        raise CannotTell(f"chronyc: {words}", "systemctl status chrony")
    sources = chrony.parse_sources(outcome.stdout)
    chosen = next((source for source in sources if source.state == "*"), None)
    if chosen is None:
        words = "; ".join(map(str, sources)) or "it has no source"
        return Finding(WARN, f"chrony follows no source: {words}", "chronyc sources; is UDP port 123 open?")
    if abs(chosen.offset) > host.thresholds.clock_seconds:
        return Finding(WARN, f"the clock is off by {chosen.offset:+.1f} s from {chosen.name}", "chronyc makestep")
    return Finding(OK, str(chosen))


def _timedated(host: Host) -> Finding:
    text = host.ask("timedatectl", "show", "--property=NTPSynchronized", "--value").strip()
    if text == "yes":
        return Finding(OK, "synchronised")
    return Finding(
        WARN,
        "the clock is not synchronised",
        "install chrony, or set common_time_enabled: true and run baremetal.inference.site",
    )


def reboot(host: Host) -> Finding:
    """No package and no role needs a reboot."""
    if not (host.root / "run/reboot-required").exists():
        return Finding(OK, "no reboot is due")
    try:
        text = (host.root / "run/reboot-required.pkgs").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    packages = ", ".join(dict.fromkeys(text.split())) or "no reason is recorded"
    return Finding(WARN, f"a reboot is due: {packages}", "drain the node and reboot it at a convenient time")


CHECKS = (
    Check("system-disk", disk),
    Check("system-shm", shm),
    Check("system-memlock", memlock),
    Check("system-clock", clock),
    Check("system-reboot", reboot),
)
