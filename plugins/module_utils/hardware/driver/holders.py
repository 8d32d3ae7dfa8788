# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds processes and kernel modules that use the loaded driver. Private to the collection."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from ...core import sysfs

DEVICE = re.compile(r"/dev/nvidia[^/]*(?:/.*)?")
"""nvidia0, nvidiactl, nvidia-uvm, nvidia-nvswitch0, nvidia-caps/nvidia-cap1, …"""

MODULES = ("nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm", "nvidia_peermem")
"""The driver's kernel modules. Source: NVIDIA's driver installation guide, chapter Kernel Modules."""

CONTAINER = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
"""The id of a container in the path of a cgroup: docker-ID.scope with systemd, docker/ID without."""

CONTAINERS = "var/lib/docker/containers"
"""Docker's directory of container data, unless daemon.json sets another one."""


@dataclass(frozen=True)
class Process:
    """A process with an open device of the driver."""

    pid: int
    name: str
    """The kernel's name of the process, at most 15 characters; a question mark if unreadable."""
    devices: tuple[str, ...]
    unit: str | None
    """Its systemd unit, or the scope of a login session; None if unknown."""
    container: str | None
    """The name of its container, or the first 12 digits of the id if unknown; None outside of containers."""

    def __str__(self) -> str:
        where = f"container {self.container}" if self.container else self.unit
        return f"{self.name} (pid {self.pid}{f', {where}' if where else ''})"


@dataclass(frozen=True)
class LoadedModule:
    """A loaded module of the driver."""

    name: str
    references: int | None
    """Number of open devices and other modules that use it; None if unknown."""
    holders: tuple[str, ...]
    """The modules that use it."""


def processes(root: Path) -> list[Process]:
    """The processes with an open device of the driver, by pid. Only root sees processes of other users."""
    pids = sorted(int(path.name) for path in (root / "proc").glob("[0-9]*") if path.name.isdecimal())
    found = [(pid, _devices(root / f"proc/{pid}/fd")) for pid in pids]
    return [_process(root, pid, devices) for pid, devices in found if devices]


def modules(root: Path) -> list[LoadedModule]:
    """The driver's modules that are loaded."""
    found = []
    for name in MODULES:
        path = root / "sys/module" / name
        if path.is_dir():
            users = tuple(sysfs.names(path / "holders"))
            found.append(LoadedModule(name, sysfs.read_int(path / "refcnt"), users))
    return found


def unexplained(holding: list[Process], present: list[LoadedModule]) -> list[str]:
    """Users of a module that are not processes, one sentence each: a console, or another kernel module.

    The driver stays loaded even if all processes are stopped.
    """
    known = {module.name for module in present}
    found = [
        f"kernel module {holder} uses {module.name}"
        for module in present
        for holder in module.holders
        if holder not in known
    ]
    top = [module for module in present if module.references and not module.holders]
    if not holding:
        found += [f"{module.name} is in use {module.references} times, by no visible process" for module in top]
    return found


def _process(root: Path, pid: int, devices: tuple[str, ...]) -> Process:
    cgroup = sysfs.read(root / f"proc/{pid}/cgroup") or ""
    return Process(
        pid=pid,
        name=sysfs.read(root / f"proc/{pid}/comm") or "?",
        devices=devices,
        unit=unit_of(cgroup),
        container=_container(root, cgroup),
    )


def _devices(directory: Path) -> tuple[str, ...]:
    """The driver's devices among a process's open files; empty if the process has ended."""
    try:
        links = [_target(entry) for entry in os.scandir(directory)]
    except OSError:
        return ()
    return tuple(sorted({link for link in links if link and DEVICE.fullmatch(link)}))


def _target(entry: os.DirEntry[str]) -> str | None:
    try:
        return os.readlink(entry.path)
    # The process has closed the file.
    except OSError:
        return None


def unit_of(cgroup: str) -> str | None:
    """The innermost systemd unit in /proc/PID/cgroup, of cgroup v1 or v2."""
    for line in sorted(cgroup.splitlines(), key=_systemd_first):
        parts = line.split(":", 2)[-1].split("/")
        found = next((part for part in reversed(parts) if part.endswith((".service", ".scope"))), None)
        if found:
            return found
    return None


def _systemd_first(line: str) -> bool:
    """A sort key: False, which sorts first, for systemd's own hierarchy (0:: of v2, name=systemd of v1)."""
    return not (line.startswith("0::") or ":name=systemd:" in line)


def _container(root: Path, cgroup: str) -> str | None:
    match = CONTAINER.search(cgroup)
    if match is None:
        return None
    try:
        known = json.loads((root / CONTAINERS / match[0] / "config.v2.json").read_text(encoding="utf-8"))
        return str(known["Name"]).removeprefix("/")
    except (OSError, ValueError, KeyError, TypeError):
        return match[0][:12]
