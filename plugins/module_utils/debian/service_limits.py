# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd gives to every service and login: limits, the hardware watchdog, the reports of a kernel that died.

Private to the collection.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HEADER = "# Managed by Ansible, module baremetal.inference.systemd_defaults: changes made here are lost.\n"
"""Names a module that no longer exists: other text would have every node reload systemd for nothing."""

BYTES = re.compile(r"([0-9]+)([KMGT]?)")
MULTIPLES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
"""Suffixes of a limit in bytes. Source: systemd.exec(5)."""

MIN_FILES = 1024
"""The soft limit that Linux starts with; programs take it for granted."""

MIN_WATCHDOG = 10
"""Seconds. systemd pings in half the time, which a busy machine must be able to keep."""


class DefaultsError(Exception):
    """A value cannot be set; the text is for the operator."""


def memlock_bytes(text: str) -> str:
    """A limit as systemd shows it: infinity, or bytes. Raises DefaultsError."""
    found = BYTES.fullmatch(text)
    if text != "infinity" and not found:
        raise DefaultsError(f"memlock is {text!r}; allowed are infinity, or bytes as in 8388608 or 64G")
    return str(int(found[1]) * MULTIPLES[found[2]]) if found else text


def limits(params: Mapping[str, Any]) -> dict[str, str]:
    """The limits that are asked for, by their name in system.conf and with their values as systemd shows them."""
    found = {}
    if params["memlock"]:
        found["DefaultLimitMEMLOCK"] = memlock_bytes(params["memlock"])
    if params["nofile"]:
        found["DefaultLimitNOFILE"] = str(params["nofile"])
    return found


def watchdog(root: Path) -> tuple[str, int]:
    """Name of the watchdog, and the longest time in seconds that it can wait, 0 where that has no end.

    Source: Documentation/ABI/testing/sysfs-class-watchdog of the kernel.
    """
    device = root / "sys/class/watchdog/watchdog0"
    texts = [
        path.read_text(encoding="utf-8").strip() if path.exists() else ""
        for path in (device / "identity", device / "max_timeout")
    ]
    return texts[0] or ("watchdog0" if device.exists() else ""), int(texts[1] or 0)


def problems(params: Mapping[str, Any], root: Path) -> list[str]:
    """Everything that is wrong with the parameters on this node."""
    found = []
    try:
        limits(params)
    except DefaultsError as error:
        found.append(str(error))
    # More than this, and every login is left with what it had before, without a word to anybody.
    most = int((root / "proc/sys/fs/nr_open").read_text(encoding="utf-8"))
    if params["nofile"] and not MIN_FILES <= params["nofile"] <= most:
        found.append(f"nofile is {params['nofile']}; allowed are {MIN_FILES} to {most} (fs.nr_open of this kernel)")
    name, longest = watchdog(root)
    seconds = params["watchdog_seconds"]
    if seconds and (seconds < MIN_WATCHDOG or (longest and seconds > longest)):
        most_seconds = f" to {longest} ({name} cannot wait longer)" if longest else " or more"
        found.append(f"watchdog_seconds is {seconds}; allowed are {MIN_WATCHDOG}{most_seconds}, or 0 for none")
    return found


def files(params: Mapping[str, Any]) -> dict[str, str]:
    """The text of every file, empty where it is not wanted."""
    asked = limits(params)
    services = "".join(f"{name}={value}\n" for name, value in asked.items())
    guard = ""
    if params["watchdog_seconds"]:
        guard = f"RuntimeWatchdogSec={params['watchdog_seconds']}\nRebootWatchdogSec=10min\n"
    logins = "".join(
        # root is not among the asterisk. Memory in KiB. Source: limits.conf(5).
        f"{domain} - memlock {'unlimited' if value == 'infinity' else int(value) // 1024}\n"
        if name == "DefaultLimitMEMLOCK"
        else f"{domain} - nofile {value}\n"
        for domain in ("*", "root")
        for name, value in asked.items()
    )
    pstore = "d /var/lib/systemd/pstore 0755 root root -\n" if params["keep_pstore"] else ""
    return {
        "etc/systemd/system.conf.d/60-inference.conf": services + guard and f"{HEADER}[Manager]\n{services}{guard}",
        "etc/systemd/user.conf.d/60-inference.conf": services and f"{HEADER}[Manager]\n{services}",
        "etc/security/limits.d/60-inference.conf": logins and HEADER + logins,
        # Of this name, for a file in /etc hides Debian's of the same name, which deletes after 14 days.
        "etc/tmpfiles.d/systemd-pstore.conf": pstore and HEADER + pstore,
    }


def differing(asked: Mapping[str, str], shown: str) -> dict[str, str]:
    """What systemd has in place of what is asked for, from the lines of `systemctl show`."""
    found = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
    return {name: found.get(name, "nothing") for name, value in asked.items() if found.get(name) != value}
