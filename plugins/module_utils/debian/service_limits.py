# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets limits of services and logins, the hardware watchdog, and how long messages of a crashed kernel are kept.

Private to the collection.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HEADER = "# Managed by Ansible, module baremetal.inference.systemd_defaults: changes made here are lost.\n"
"""Names a module that no longer exists: with another text, every node would reload systemd without need."""

BYTES = re.compile(r"([0-9]+)([KMGT]?)")
MULTIPLES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
"""Suffixes of a limit in bytes. Source: systemd.exec(5)."""

MIN_FILES = 1024
"""Linux' default soft limit, which programs rely on."""

MIN_WATCHDOG = 10
"""The least watchdog time in seconds. systemd resets the watchdog after half of this time, and may be late on a busy
machine."""


class DefaultsError(Exception):
    """A value cannot be set. The message says what is allowed."""


def memlock_bytes(text: str) -> str:
    """Convert a limit to systemd's form: `infinity` or bytes. Raises DefaultsError."""
    found = BYTES.fullmatch(text)
    if text != "infinity" and not found:
        raise DefaultsError(f"memlock is {text!r}: it must be infinity, or bytes as in 8388608 or 64G")
    return str(int(found[1]) * MULTIPLES[found[2]]) if found else text


def limits(params: Mapping[str, Any]) -> dict[str, str]:
    """The wanted limits, by name in system.conf, with values in systemd's form."""
    found = {}
    if params["memlock"]:
        found["DefaultLimitMEMLOCK"] = memlock_bytes(params["memlock"])
    if params["nofile"]:
        found["DefaultLimitNOFILE"] = str(params["nofile"])
    return found


def watchdog(root: Path) -> tuple[str, int]:
    """Name of the watchdog device (empty without a device), and its longest time in seconds (0 without a limit).

    Source: Documentation/ABI/testing/sysfs-class-watchdog of the kernel.
    """
    device = root / "sys/class/watchdog/watchdog0"
    texts = [
        path.read_text(encoding="utf-8").strip() if path.exists() else ""
        for path in (device / "identity", device / "max_timeout")
    ]
    return texts[0] or ("watchdog0" if device.exists() else ""), int(texts[1] or 0)


def problems(params: Mapping[str, Any], root: Path) -> list[str]:
    """All problems with the parameters on this node."""
    found = []
    try:
        limits(params)
    except DefaultsError as error:
        found.append(str(error))
    # With a larger limit, logins keep their old limit, and no error is reported.
    most = int((root / "proc/sys/fs/nr_open").read_text(encoding="utf-8"))
    if params["nofile"] and not MIN_FILES <= params["nofile"] <= most:
        found.append(f"nofile is {params['nofile']}: it must be {MIN_FILES} to {most} (fs.nr_open of this kernel)")
    name, longest = watchdog(root)
    seconds = params["watchdog_seconds"]
    if seconds and (seconds < MIN_WATCHDOG or (longest and seconds > longest)):
        most_seconds = f" to {longest} ({name} cannot wait longer)" if longest else " or more"
        found.append(f"watchdog_seconds is {seconds}: it must be {MIN_WATCHDOG}{most_seconds}, or 0 for none")
    return found


def files(params: Mapping[str, Any]) -> dict[str, str]:
    """The text of each file, by path; empty if the file must not exist."""
    asked = limits(params)
    services = "".join(f"{name}={value}\n" for name, value in asked.items())
    guard = ""
    if params["watchdog_seconds"]:
        guard = f"RuntimeWatchdogSec={params['watchdog_seconds']}\nRebootWatchdogSec=10min\n"
    logins = "".join(
        # The asterisk does not include root. Memory is in KiB. Source: limits.conf(5).
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
        # This name hides Debian's file of the same name, which deletes messages after 14 days.
        "etc/tmpfiles.d/systemd-pstore.conf": pstore and HEADER + pstore,
    }


def differing(asked: Mapping[str, str], shown: str) -> dict[str, str]:
    """systemd's values that differ from the wanted ones, from the lines of `systemctl show`."""
    found = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
    return {name: found.get(name, "nothing") for name, value in asked.items() if found.get(name) != value}
