# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The contents of a bundle. Private to the collection."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...core.paths import (
    AGENT_UNIT,
    RECOVERY_DISPATCH,
    Paths,
    container_name,
    journal_tag,
    recovery_unit,
    swap_unit,
    unit_name,
)
from ...engine.state import drains, probe_state, releases
from ...engine.state.drains import format_time
from .. import status
from ..doctor import catalogue, check
from ..doctor.host import Host
from ..recovery import settings
from ..recovery.ladder import summaries
from .item import Absent, Item
from .read import Reader

JOURNAL_LINES = 20000
"""How many of the last lines of a journal to take: a few megabytes."""

FACTS_LIMIT = 90.0
"""Limit for facts, in seconds: several programs gather them."""

UNITS = (
    AGENT_UNIT,
    RECOVERY_DISPATCH,
    "docker.service",
    "containerd.service",
    "nvidia-persistenced.service",
    "nvidia-fabricmanager.service",
    "nvidia-cdi-refresh.service",
)
"""The units whose journals are read, in addition to those of the instances."""

PACKAGE = "${db:Status-Abbrev}\\t${Package}\\t${Version}\\n"

TOOLS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("gpu/nvidia-smi.txt", ("nvidia-smi", "-q")),
    ("gpu/topology.txt", ("nvidia-smi", "topo", "-m")),
    ("gpu/nvlink.txt", ("nvidia-smi", "nvlink", "--status")),
    ("gpu/dkms.txt", ("dkms", "status")),
    ("rdma/links.json", ("rdma", "-j", "link")),
    ("rdma/ibstat.txt", ("ibstat",)),
    ("system/lspci.txt", ("lspci", "-vvnn")),
    ("system/lspci-tree.txt", ("lspci", "-tv")),
    ("system/packages.txt", ("dpkg-query", "--show", "--showformat", PACKAGE)),
    ("system/modules.txt", ("lsmod",)),
    ("system/addresses.txt", ("ip", "-details", "-statistics", "address")),
    ("system/routes.txt", ("ip", "route", "show", "table", "all")),
    ("system/listeners.txt", ("ss", "-tlnp")),
    ("system/processes.txt", ("ps", "-eo", "pid,ppid,stat,wchan:32,etime,rss,args")),
    ("system/disks.txt", ("df", "--human-readable", "--print-type")),
    ("system/inodes.txt", ("df", "--inodes")),
    ("system/mounts.txt", ("findmnt", "--noheadings", "--list", "--output", "TARGET,SOURCE,FSTYPE,OPTIONS")),
    ("system/memory.txt", ("free", "--mebi")),
    ("system/cpu.txt", ("lscpu",)),
    ("system/clock.txt", ("timedatectl",)),
    ("system/kernel.txt", ("uname", "-a")),
    ("system/failed-units.txt", ("systemctl", "--no-pager", "--failed", "--all")),
    ("docker/info.txt", ("docker", "info")),
    ("docker/containers.txt", ("docker", "ps", "--all", "--no-trunc")),
    ("docker/images.txt", ("docker", "images", "--digests")),
    ("docker/unit.txt", ("systemctl", "--no-pager", "cat", "docker.service")),
)
"""Programs and their options, by the file for the output.
The program `rdma` loads kernel modules, so all programs of RDMA run only on a node with RDMA."""

FILES = (
    "etc/os-release",
    "etc/docker/daemon.json",
    "proc/cmdline",
    "proc/meminfo",
    "proc/driver/nvidia/version",
    "proc/driver/nvidia/params",
    "run/reboot-required.pkgs",
    "var/log/apt/history.log",
)
"""Files to copy, relative to the root."""

PATTERNS = (
    "etc/inference/*.json",
    "etc/inference/instances/*.json",
    "etc/inference/env/*.env",
    "etc/systemd/system/vllm@*.service",
    "etc/systemd/system/inference*",
    "etc/cdi/*",
    "var/run/cdi/*",
    "var/lib/inference/lock",
    "var/lib/inference/drain/*",
    "var/lib/inference/*/*.json",
    "var/lib/inference/recovery/deaths/*.json",
    "var/lib/inference/recovery/evidence/*/*/*",
    "var/lib/inference/releases/*/*/*",
    "run/inference/recovered/*.json",
    "var/lib/prometheus/node-exporter/inference-*.prom",
)
"""Patterns of more files to copy: desired state, running state, and records. Files that recovery has put aside are left
out, since they contain secrets."""


def items(paths: Paths, host: Host, read: Reader, since: datetime | None, now: datetime) -> list[Item]:
    """All parts of a bundle. Of each journal, the last JOURNAL_LINES lines, none of them earlier than `since`.

    The part that may hang longest comes last.
    """
    names = releases.names(paths)
    return [
        *_own(paths, host, read, names, now),
        read.kernel("kernel.log", paths.root),
        *_journals(read, names, since),
        *_tools(host, read),
        *_files(paths, read),
        *(_container(host, read, name) for name in names),
        read.report("nvidia-bug-report.log"),
    ]


def _own(paths: Paths, host: Host, read: Reader, names: list[str], now: datetime) -> Iterator[Item]:
    def doctor() -> dict[str, Any]:
        found = catalogue.read(paths)
        return check.as_json(check.run(catalogue.chosen((), found.off), host))

    def recovery() -> list[dict[str, object]]:
        return summaries(paths, names, settings.read(paths) or settings.Settings(), now)

    yield read.value("doctor.json", "inferctl doctor --json", doctor, check.LIMIT + 15)
    yield read.value("status.json", "inferctl status --json", lambda: status.as_json(status.collect(paths, names)), 30)
    yield read.value("recovery.json", "inferctl recover --json", recovery, 30)
    yield read.value("state.json", "probes, drains and releases", lambda: _state(paths, names, now), 30)
    yield read.value("gpu/facts.json", "the facts of gpu_facts", host.gpus, FACTS_LIMIT)
    yield read.value("rdma/facts.json", "the facts of rdma_facts", host.rdma, FACTS_LIMIT)


def _state(paths: Paths, names: list[str], now: datetime) -> dict[str, Any]:
    """The agent's verdict, the drain and the releases of each instance."""
    found = {}
    for name in names:
        probe, drain = probe_state.read(paths, name), drains.read(paths, name, now)
        found[name] = {
            "probe": asdict(probe) if probe else None,
            "drain": asdict(drain) if drain else None,
            "releases": releases.numbers(paths, name),
            "active": releases.active_number(paths, name),
            "current": releases.current_number(paths, name),
        }
    return {"time": format_time(now), "instances": found}


def _journals(read: Reader, names: list[str], since: datetime | None) -> Iterator[Item]:
    options = ["journalctl", "--quiet", "--no-pager", "--output=short-iso-precise", f"--lines={JOURNAL_LINES}"]
    if since:
        options.append(f"--since={since.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC")
    for name in names:
        yield read.tool(f"journal/engine-{name}.log", *options, "-t", journal_tag(name))
        yield read.tool(f"journal/{unit_name(name)}.log", *options, "-u", unit_name(name))
        yield read.tool(f"journal/{recovery_unit(name)}.log", *options, "-u", recovery_unit(name))
        yield read.tool(f"journal/{swap_unit(name)}.log", *options, "-u", swap_unit(name))
    for unit in UNITS:
        yield read.tool(f"journal/{unit}.log", *options, "-u", unit)
    # A journal in memory has no earlier boot.
    yield read.tool("journal/kernel-earlier-boot.log", *options, "--dmesg", "--boot=-1", optional=True)


def _tools(host: Host, read: Reader) -> Iterator[Item]:
    rdma = (host.root / "sys/class/infiniband").is_dir()
    for file, command in TOOLS:
        if rdma or not file.startswith("rdma/"):
            yield read.tool(file, *command)


def _files(paths: Paths, read: Reader) -> Iterator[Item]:
    found = {paths.root / one for one in FILES}
    for pattern in PATTERNS:
        found.update(path for path in paths.root.glob(pattern) if _wanted(path))
    for path in sorted(found):
        yield read.file(f"files/{path.relative_to(paths.root)}", path)


def _wanted(path: Path) -> bool:
    """Whether to copy a file. A link to a release is left out, since its files are found under the release's number."""
    return path.is_file() and not path.name.startswith(".") and not path.parent.is_symlink()


def _container(host: Host, read: Reader, name: str) -> Item:
    def inspect() -> dict[str, Any]:
        found = host.docker.inspect(container_name(name))
        if found is None:
            raise Absent(f"there is no container {container_name(name)}")
        return found

    return read.value(f"docker/{container_name(name)}.json", f"docker inspect {container_name(name)}", inspect, 30)
