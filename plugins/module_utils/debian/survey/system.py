# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads what a machine is: names, addresses, release, kernel, memory. Private to the collection."""

from __future__ import annotations

import json
import os
import platform
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ...core import sysfs
from ...core.commands import Outcome

Run = Callable[[list[str]], Outcome]
"""Runs a command within the time limit."""

ONE_LINE = re.compile(r"^deb(?:-src)?(?:\s+\[[^\]]*\])?\s+(?P<uris>\S+.*)$", re.MULTILINE)
"""A repository in a file `*.list`."""

FIELD = re.compile(r"^(?P<name>[^\s:]+)[ \t]*:(?P<value>.*(?:\n[ \t].*)*)", re.MULTILINE)
"""A field of a stanza in a file `*.sources`."""

DISABLED = frozenset({"no", "false", "without", "off", "disable", "0"})
"""Values of the field Enabled that switch a stanza off. Source: StringToBool of APT (apt-pkg/contrib/strutl.cc)."""


def read(root: Path, run: Run) -> dict[str, Any]:
    """The facts of the system below a root; unknown values are None or empty. Raises nothing."""
    release = _release(sysfs.read(root / "etc/os-release") or "")
    debian = release.get("VERSION_ID", "") if release.get("ID") == "debian" else ""
    memory = re.search(r"^MemTotal:\s+(\d+) kB", sysfs.read(root / "proc/meminfo") or "", re.MULTILINE)
    nodes = [name for name in sysfs.names(root / "sys/devices/system/node") if re.fullmatch(r"node\d+", name)]
    kernel = sysfs.read(root / "proc/sys/kernel/osrelease") or platform.release()
    return {
        "hostname": sysfs.read(root / "proc/sys/kernel/hostname") or socket.gethostname(),
        "machine_id": sysfs.read(root / "etc/machine-id"),
        "boot_id": sysfs.read(root / "proc/sys/kernel/random/boot_id"),
        "debian": int(debian) if debian.isdecimal() else None,
        "pretty_name": release.get("PRETTY_NAME", ""),
        "proxmox": _proxmox(run),
        "architecture": platform.machine(),
        "kernel": kernel,
        "cmdline": sysfs.read(root / "proc/cmdline") or "",
        "cpus": os.cpu_count(),
        "memory_mib": int(memory[1]) // 1024 if memory else None,
        "numa_nodes": len(nodes) or 1,
        "virtualization": _virtualization(run),
        "repositories": repositories(root / "etc/apt"),
        **_addresses(run),
    }


def _release(text: str) -> dict[str, str]:
    """The values of /etc/os-release."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {key.strip(): value.strip().strip("\"'") for key, _sign, value in pairs}


def _proxmox(run: Run) -> str:
    """The version of Proxmox VE; empty without it."""
    outcome = run(["dpkg-query", "--show", "--showformat=${db:Status-Status} ${Version}", "pve-manager"])
    state, _blank, version = outcome.stdout.partition(" ")
    return version if state == "installed" else ""


def _virtualization(run: Run) -> str:
    """The kind of virtual machine or container; empty on hardware."""
    kind = run(["systemd-detect-virt"]).stdout.strip()
    return "" if kind == "none" else kind


def repositories(etc: Path) -> list[str]:
    """The addresses of APT's enabled repositories, each once. Leaves out the login in an address."""
    found: list[str] = []
    for path in sorted(
        [etc / "sources.list", *etc.glob("sources.list.d/*.list"), *etc.glob("sources.list.d/*.sources")]
    ):
        text = sysfs.read(path) or ""
        # In the one-line format, the address comes before suite and components.
        rows = _stanza_uris(text) if path.suffix == ".sources" else [match["uris"] for match in ONE_LINE.finditer(text)]
        found += [word for row in rows for word in row.split() if "://" in word]
    return list(dict.fromkeys(re.sub(r"//[^/@]+@", "//", uri) for uri in found))


def _stanza_uris(text: str) -> Iterator[str]:
    """The field URIs of each enabled stanza of a file in deb822 format."""
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for stanza in re.split(r"\n\s*\n", lines):
        # A line that begins with a blank continues the field before it. Names of fields have no case.
        fields = {match["name"].lower(): match["value"] for match in FIELD.finditer(stanza)}
        if fields.get("enabled", "").strip().lower() not in DISABLED:
            yield fields.get("uris", "")


def _addresses(run: Run) -> dict[str, Any]:
    """The addresses with their devices, and the device of the default route."""
    addresses = [
        {"device": device.get("ifname"), "address": one["local"], "prefix": one.get("prefixlen")}
        for device in _json(run(["ip", "-j", "address"]))
        for one in device.get("addr_info") or ()
        if one.get("local") and one.get("scope") != "host"
    ]
    routes = _json(run(["ip", "-j", "route", "show", "default"])) or _json(
        run(["ip", "-j", "-6", "route", "show", "default"])
    )
    return {"addresses": addresses, "default_device": routes[0].get("dev") if routes else None}


def _json(outcome: Outcome) -> list[dict[str, Any]]:
    try:
        rows = json.loads(outcome.stdout or "[]")
    except ValueError:
        return []
    return [one for one in rows if isinstance(one, dict)]
