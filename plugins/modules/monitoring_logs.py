#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: monitoring_logs
short_description: Configure or remove the log shipping of a machine
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Runs a separate rsyslog, in addition to one of the site. It reads the journal, and sends the lines of the given
    units to a server, one JSON object per line. Of an engine's log, only lines that cannot contain a prompt or an
    answer are sent.
  - The journal is the queue. While the server is unreachable, no line is lost that the journal still has, and no
    program waits.
  - C(rsyslogd -N1) checks the configuration before it replaces the old one. If the service does not start, the module
    puts the old files back.
  - Internal to this collection; its options may change without notice.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - If rsyslog is not installed yet, the configuration is not checked.
  diff_mode:
    support: full
options:
  packages:
    description: The packages that another task installs. Check mode returns missing packages as RV(missing).
    type: list
    elements: str
    default: []
  rivals:
    description: Packages that conflict with O(packages). With O(server), the module fails if one is installed.
    type: list
    elements: str
    default: []
  server:
    description: The name or address of the server. Empty to remove log shipping.
    type: str
    default: ""
  port:
    description: The port of the server.
    type: int
    default: 6514
  protocol:
    description: The protocol to the server.
    type: str
    choices: [tls, tcp]
    default: tls
  ca:
    description: The file with the authorities that verify the server's certificate; empty for Debian's authorities.
    type: path
    default: ""
  peer:
    description: The name in the server's certificate; empty for O(server).
    type: str
    default: ""
  units:
    description: The units whose lines are shipped. C(kernel) and C(inferctl) are allowed as well.
    type: list
    elements: str
    default: []
  host:
    description: The machine's name in every line. Required with O(server).
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Ship the log
  baremetal.inference.monitoring_logs:
    server: logs.example.com
    host: "{{ inventory_hostname }}"
    units: [vllm@*, inference-*, haproxy, docker, kernel]

- name: Remove log shipping
  baremetal.inference.monitoring_logs:
    server: ""
"""

RETURN = r"""
due:
  description:
    - Whether the module changes, or would change, anything, or packages of O(packages) are missing. Unlike C(changed),
      not hidden by C(changed_when).
  returned: success
  type: bool
missing:
  description: The packages of O(packages) that are not installed; empty outside of check mode, and without O(server).
  returned: success
  type: list
  elements: str
restarted:
  description: Whether the service was, or would be, started or restarted.
  returned: success
  type: bool
masked:
  description: Whether rsyslog's own service is masked. It is if the package was installed only for log shipping.
  returned: success
  type: bool
"""

import contextlib
import hashlib
import os
import shutil
import socket
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import Problem
from ansible_collections.baremetal.inference.plugins.module_utils.debian import apt_packages
from ansible_collections.baremetal.inference.plugins.module_utils.debian.service_files import ServiceError, ServiceFiles
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring import logs
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring.removal import shipping_states

CONNECT_SECONDS = 3.0


def unreadable(path: Path) -> str:
    """Why a service without privileges cannot read certificates from a file; empty if it can."""
    if not path.is_file():
        return "must be a file on this machine"
    if not path.stat().st_mode & 0o004:
        return f"must be readable by every user: chmod a+r {path}"
    for directory in path.parents:
        if not directory.stat().st_mode & 0o001:
            return f"must be in directories that every user may enter: chmod a+x {directory}"
    if "-----BEGIN CERTIFICATE-----" not in (files.text(path) or ""):
        return "must contain a certificate in PEM"
    return ""


class Shipper(ServiceFiles):
    """The service for log shipping, the timer of its check, and their files."""

    units = (logs.UNIT, logs.CHECK_TIMER)

    def __init__(self, module: AnsibleModule) -> None:
        super().__init__(module)
        params = self.params
        self.settings = logs.Settings(
            host=params["host"],
            server=params["server"],
            port=params["port"],
            protocol=params["protocol"],
            ca=params["ca"],
            peer=params["peer"],
            units=tuple(params["units"]),
        )
        self.texts = unit_files()
        self.drop_ins = frozenset(self.texts)

    def inspect(self) -> None:
        self.refuse()
        installed = Path(logs.PROGRAM).exists()
        if not installed and not self.module.check_mode:
            raise ServiceError(f"{logs.PROGRAM} is missing: install the package rsyslog. Nothing was changed.")
        self.compare({**self.texts, logs.CONFIG: logs.config(self.settings, self.authorities())})
        self.read_units()
        if installed and logs.CONFIG in self.differing:
            self.validate()

    def validate(self) -> None:
        """Let rsyslog check its new configuration. Raises ServiceError."""
        with self.staged(logs.CONFIG.parent) as stage:
            check = [logs.PROGRAM, "-N1", "-f", str(stage / logs.CONFIG.name)]
            why = self.refusal(check, stage, logs.CONFIG.parent)
        if why:
            raise ServiceError(f"rsyslogd refuses the new configuration. Nothing was changed.\n{why}")

    def decide(self) -> dict[str, Any]:
        directory = Paths().units
        own = {logs.UNIT: {logs.CONFIG, directory / logs.UNIT}, logs.CHECK_TIMER: {directory / logs.CHECK_TIMER}}
        self.actions = {
            unit: "start" if not self.active[unit] else "restart" if files & set(self.altered) else "none"
            for unit, files in own.items()
        }
        return {"changed": self.changes, "restarted": self.actions[logs.UNIT] != "none", "diff": self.diff()}

    def refuse(self) -> None:
        """Raise ServiceError with all mistakes of the input."""
        problems = self.settings.problems()
        if not self.settings.host:
            problems.append(Problem("monitoring_logs", "must not be empty", "host"))
        why = unreadable(Path(self.settings.authorities)) if self.settings.tls else ""
        if why:
            hint = "" if self.settings.ca else " (the package ca-certificates has this file)"
            problems.append(Problem(logs.WHERE, why + hint, "monitoring_log_ca", self.settings.authorities))
        given = self.module.params["rivals"]
        away = apt_packages.absent_of(self.module.run_command, given)
        if rivals := [name for name in given if name not in away]:
            # These packages conflict in Debian: apt would remove the installed one.
            words = (
                f"needs the package rsyslog, which conflicts with the installed {', '.join(rivals)}. Remove it, or let"
            )
            words += " it ship the journal and leave monitoring_log_server empty on this machine"
            problems.append(Problem(logs.WHERE, words, "monitoring_log_server"))
        if problems:
            lines = "\n".join(f"- {problem}" for problem in problems)
            raise ServiceError(f"The input of log shipping has mistakes. Nothing was changed.\n{lines}")

    def authorities(self) -> str:
        """A digest of the authorities' file, which rsyslog reads only at its start."""
        if not self.settings.tls:
            return ""
        return hashlib.sha256(Path(self.settings.authorities).read_bytes()).hexdigest()[:16]

    def unreachable(self) -> str:
        """Why the server accepts no connection; empty if it does."""
        try:
            address = (self.settings.server, self.settings.port)
            socket.create_connection(address, timeout=CONNECT_SECONDS).close()
        except OSError as error:
            return str(error)
        return ""


def unit_files() -> dict[Path, str]:
    """The text of each unit by path."""
    return {Paths().units / name: text for name, text in logs.units().items()}


def remove(check: bool) -> dict[str, Any]:
    """Stop log shipping and remove its files; in check mode, only report. Raises SystemdError and OSError.

    Does not use `service_files.remove`: this function also stops a service without a unit file, and removes the state.
    """
    before = {path: text for path in [*unit_files(), logs.CONFIG] if (text := files.text(path)) is not None}
    states = [path for path in shipping_states() if os.path.lexists(path)]
    found = systemd.show(Shipper.units, ["ActiveState"])
    running = [unit for unit, properties in found.items() if properties["ActiveState"] in systemd.RUNNING]
    changed = bool(before or running or states)
    if changed and not check:
        if running:
            systemd.systemctl("stop", *running)
        # systemctl cannot disable a unit whose file is missing.
        there = [unit for unit in Shipper.units if Paths().units / unit in before]
        if there:
            systemd.systemctl("disable", *there)
        for path in before:
            path.unlink()
        if before:
            systemd.systemctl("daemon-reload")
        with contextlib.suppress(OSError):
            # Only removed if it is empty.
            logs.CONFIG.parent.rmdir()
        for path in states:
            if path.is_symlink():
                path.unlink()
            else:
                shutil.rmtree(path)
        with contextlib.suppress(systemd.SystemdError):
            # Fails for a unit that has not failed: systemd has unloaded it.
            systemd.systemctl("reset-failed", logs.CHECK_UNIT, logs.UNIT)
    diff = [
        {"before_header": str(path), "after_header": str(path), "before": text, "after": ""}
        for path, text in before.items()
    ]
    return {"changed": changed, "restarted": False, "diff": diff}


def present(module: AnsibleModule) -> dict[str, Any]:
    """Configure log shipping. Raises ServiceError and OSError."""
    shipper = Shipper(module)
    result = shipper.run()
    if result["restarted"] and not module.check_mode and (why := shipper.unreachable()):
        module.warn(
            f"{module.params['server']} does not accept connections on port {module.params['port']} ({why}). The log"
            " stays in the journal, and is shipped as soon as the server accepts connections."
        )
    return result


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "packages": {"type": "list", "elements": "str", "default": []},
            "rivals": {"type": "list", "elements": "str", "default": []},
            "server": {"type": "str", "default": ""},
            "port": {"type": "int", "default": 6514},
            "protocol": {"type": "str", "choices": ["tls", "tcp"], "default": "tls"},
            "ca": {"type": "path", "default": ""},
            "peer": {"type": "str", "default": ""},
            "units": {"type": "list", "elements": "str", "default": []},
            "host": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    ships = bool(module.params["server"])
    missing: list[str] = []
    try:
        result = present(module) if ships else remove(module.check_mode)
        if ships and module.check_mode:
            missing = apt_packages.absent_of(module.run_command, module.params["packages"])
    except (ServiceError, systemd.SystemdError, OSError) as error:
        module.fail_json(msg=str(error))
    result.update(missing=missing, due=result["changed"] or bool(missing))
    mask = Paths().units / "rsyslog.service"
    module.exit_json(**result, masked=mask.is_symlink() and os.readlink(mask) == os.devnull)


if __name__ == "__main__":
    main()
