#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: systemd_defaults
short_description: Limits of every service and login, the hardware watchdog, and what a dying kernel said
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Writes C(60-inference.conf) in C(/etc/systemd/system.conf.d), C(/etc/systemd/user.conf.d) and
    C(/etc/security/limits.d), and C(/etc/tmpfiles.d/systemd-pstore.conf); a file that has nothing to say is removed.
  - Has systemd read them where anything changed, and asks it afterwards what it gives to a service.
  - What runs already keeps the limits that it was started with.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  memlock:
    description: Memory that a process may lock, V(infinity) or bytes with a suffix as in V(64G). Empty leaves it alone.
    type: str
    default: ""
  nofile:
    description:
      - Files that a process may have open, at least 1024 and at most what C(/proc/sys/fs/nr_open) says. V(0) leaves it
        alone.
    type: int
    default: 0
  watchdog_seconds:
    description: Seconds without a sign of life of systemd after which the hardware resets the machine. V(0) is off.
    type: int
    default: 0
  keep_pstore:
    description: Keep what a dying kernel said until somebody deletes it, and not for the 14 days of Debian.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Let services lock as much memory as RDMA needs
  baremetal.inference.systemd_defaults:
    memlock: infinity
    nofile: 1048576
    watchdog_seconds: 60
"""

RETURN = r"""
watchdog:
  description: What the machine's watchdog calls itself, empty where there is none.
  returned: success
  type: str
"""

import re
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import files as node_files

ROOT = Path("/")
HEADER = "# Managed by Ansible, module baremetal.inference.systemd_defaults: changes made here are lost.\n"

BYTES = re.compile(r"([0-9]+)([KMGT]?)")
MULTIPLES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
"""Suffixes of a limit in bytes. Source: systemd.exec(5)."""

MIN_FILES = 1024
"""The soft limit that Linux starts with; programs take it for granted."""

MIN_WATCHDOG = 10
"""Seconds. systemd pings in half the time, which a busy machine must be able to keep."""


class DefaultsError(Exception):
    """A value cannot be set, or was not taken; the text is for the operator."""


def memlock_bytes(text: str) -> str:
    """A limit as systemd shows it: infinity, or bytes. Raises DefaultsError."""
    found = BYTES.fullmatch(text)
    if text != "infinity" and not found:
        raise DefaultsError(f"memlock is {text!r}; allowed are infinity, or bytes as in 8388608 or 64G")
    return str(int(found[1]) * MULTIPLES[found[2]]) if found else text


def limits(params: dict[str, Any]) -> dict[str, str]:
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


def problems(params: dict[str, Any], root: Path) -> list[str]:
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


def files(params: dict[str, Any]) -> dict[str, str]:
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


def stale(root: Path, wanted: dict[str, str]) -> list[str]:
    """The files that say something else."""
    return [
        name
        for name, text in wanted.items()
        if not (node_files.same(root / name, text) if text else not (root / name).exists())
    ]


class Manager:
    """systemd, which must run."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module

    def differing(self, asked: dict[str, str]) -> dict[str, str]:
        """What systemd has in place of what is asked for."""
        if not asked:
            return {}
        shown = self._run("show", *(f"--property={name}" for name in asked))
        found = dict(line.split("=", 1) for line in shown.splitlines())
        return {name: found.get(name, "nothing") for name, value in asked.items() if found.get(name) != value}

    def reload(self, asked: dict[str, str]) -> None:
        """Have it read its files. Raises DefaultsError where it has other values than those asked for."""
        self._run("daemon-reload")
        wrong = [
            f"{name}: asked for {asked[name]}, systemd has {value}" for name, value in self.differing(asked).items()
        ]
        if wrong:
            raise DefaultsError(
                "\n- ".join(
                    [
                        "systemd did not take these values. Does a file of /etc/systemd/system.conf.d that sorts after"
                        " 60-inference.conf say otherwise?",
                        *wrong,
                    ]
                )
            )

    def _run(self, *words: str) -> str:
        code, output, error = self.module.run_command(["systemctl", *words])
        if code:
            raise DefaultsError(f"systemctl {words[0]} failed ({code}): {(error or output).strip()}")
        return str(output)


def diff_of(root: Path, names: list[str], wanted: dict[str, str]) -> list[dict[str, str]]:
    """Before and after of every file that changes."""
    found = []
    for name in names:
        path = root / name
        before = node_files.text(path) or ""
        found.append(
            {"before_header": str(path), "after_header": str(path), "before": before, "after": wanted[name]},
        )
    return found


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "memlock": {"type": "str", "default": ""},
            "nofile": {"type": "int", "default": 0},
            "watchdog_seconds": {"type": "int", "default": 0},
            "keep_pstore": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    manager = Manager(module)
    try:
        wrong = problems(module.params, ROOT)
        if wrong:
            raise DefaultsError("\n- ".join(["nothing was changed.", *wrong]))
        wanted, asked = files(module.params), limits(module.params)
        names = stale(ROOT, wanted)
        changed = bool(names or manager.differing(asked))
        diff = diff_of(ROOT, names, wanted)
        if changed and not module.check_mode:
            for name in names:
                if wanted[name]:
                    node_files.write(ROOT / name, wanted[name])
                else:
                    (ROOT / name).unlink()
            manager.reload(asked)
    except (DefaultsError, OSError, ValueError) as error:
        module.fail_json(msg=f"systemd_defaults: {error}")
    guard = watchdog(ROOT)[0]
    if changed and module.params["watchdog_seconds"] and not guard:
        module.warn(
            "there is no watchdog device here (/sys/class/watchdog is empty): nothing resets a machine that hangs."
            " Where the hardware has one, load its driver by /etc/modules-load.d (ipmi_watchdog, iTCO_wdt, sp5100_tco)"
        )
    module.exit_json(changed=changed, watchdog=guard, diff=diff)


if __name__ == "__main__":
    main()
