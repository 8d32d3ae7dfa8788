# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads who owns Docker, the firewall and the clock of a machine. Private to the collection."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...core import sysfs
from .. import nftables
from .system import Run

FIREWALLS = (*nftables.OTHERS, "pve-firewall.service")
"""Units of other firewalls. The role `common` does not refuse Proxmox's: discovery asks about Proxmox first."""

CLOCKS: Mapping[str, str] = {
    "chrony.service": "chrony",
    "systemd-timesyncd.service": "systemd-timesyncd",
    "ntp.service": "ntp",
    "ntpsec.service": "ntpsec",
    "openntpd.service": "openntpd",
}
"""Units that set the clock, with the names of their programs."""

DOCKERS: Mapping[str, str] = {"docker-ce": "docker", "docker.io": "debian", "podman-docker": "podman"}
"""Packages with the command docker, each with its owner. For Docker, the owner is a value of docker_source."""


def _units(run: Run, names: list[str]) -> dict[str, dict[str, str]]:
    return nftables.units(run(["systemctl", "show", "--property=Id,ActiveState,UnitFileState", *names]).stdout)


def docker(root: Path, run: Run) -> dict[str, Any]:
    """Where Docker comes from, its version, whether it has settings, and the names of its running containers."""
    query = ["dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status} ${Version}\\n", *DOCKERS]
    rows = [line.split(" ") for line in run(query).stdout.splitlines()]
    installed = {row[0]: row[2] for row in rows if len(row) == 3 and row[1] == "installed"}
    owner = next((DOCKERS[name] for name in DOCKERS if name in installed), "")
    if not owner and (root / "snap/bin/docker").exists():
        owner = "snap"
    running = run(["docker", "ps", "--format", "{{.Names}}"]) if owner else None
    return {
        "owner": owner,
        "version": next((installed[name] for name in DOCKERS if name in installed), ""),
        "has_settings": (root / "etc/docker/daemon.json").exists(),
        "running": sorted(running.stdout.split()) if running and running.code == 0 else [],
    }


def firewall(root: Path, run: Run) -> dict[str, Any]:
    """Other firewalls that are active or enabled, and whether /etc/nftables.conf has rules of other origin."""
    text = sysfs.read(root / "etc/nftables.conf") or ""
    return {
        "others": nftables.conflicts(_units(run, list(FIREWALLS)), sysfs.read(root / "etc/ufw/ufw.conf") or ""),
        "foreign_rules": nftables.has_rules(text) and not nftables.is_ours(text),
    }


def clock(run: Run) -> dict[str, Any]:
    """The programs that set the clock, and whether the kernel counts the clock as synchronised; None if unknown."""
    active = {name for name, unit in _units(run, list(CLOCKS)).items() if unit.get("ActiveState") == "active"}
    match = re.search(r"^NTPSynchronized=(yes|no)$", run(["timedatectl", "show"]).stdout, re.MULTILINE)
    return {
        "daemons": [name for unit, name in CLOCKS.items() if unit in active],
        "synchronized": None if match is None else match[1] == "yes",
    }
