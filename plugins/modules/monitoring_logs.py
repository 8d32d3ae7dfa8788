#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: monitoring_logs
short_description: Configure log shipping of a machine, or remove it
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Runs an rsyslog of its own, beside the site's where there is one. It reads the journal, and hands the lines of named
    units to a server, as an object of JSON each. Of an engine's log, only what cannot hold a prompt or an answer leaves
    the machine.
  - The journal is its queue. While the server is away, nothing is lost that the journal keeps, and no program waits.
  - C(rsyslogd -N1) checks the configuration before the old one is replaced. A service that does not start gets its old
    files back.
  - Internal to this collection; its options may change without notice.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - Where rsyslog is not installed yet, nothing checks the configuration.
  diff_mode:
    support: full
options:
  packages:
    description: The packages that another task installs. Check mode tells which of them are missing (RV(missing)).
    type: list
    elements: str
    default: []
  rivals:
    description: Packages that cannot be installed beside O(packages); with O(server), any of them is refused.
    type: list
    elements: str
    default: []
  server:
    description: The name or address of the server. Empty to remove log shipping.
    type: str
    default: ""
  port:
    description: Its port.
    type: int
    default: 6514
  protocol:
    description: How lines get there.
    type: str
    choices: [tls, tcp]
    default: tls
  ca:
    description: The file with the authorities that verify the server's certificate; empty for Debian's own.
    type: path
    default: ""
  peer:
    description: The name in the server's certificate; empty for O(server).
    type: str
    default: ""
  units:
    description: The units whose lines are shipped; C(kernel) and C(inferctl) are known as well.
    type: list
    elements: str
    default: []
  host:
    description: The machine's name in every line. Needed with O(server).
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
    - Whether anything is, or was, to do. True also where O(packages) are missing, and where the task itself must not
      report a change.
  returned: success
  type: bool
missing:
  description: Those of O(packages) that are not installed; empty outside of check mode.
  returned: success
  type: list
  elements: str
restarted:
  description: Whether the service was, or would be, restarted.
  returned: success
  type: bool
masked:
  description: Whether rsyslog's own service is masked, as it is where the package was installed for this alone.
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
    """Why a service without rights cannot take certificates from a file; empty where it can."""
    if not path.is_file():
        return "is no file on this machine"
    if not path.stat().st_mode & 0o004:
        return "cannot be read by everybody, as a certificate may be: chmod a+r"
    for directory in path.parents:
        if not directory.stat().st_mode & 0o001:
            return f"cannot be reached by everybody: chmod a+x {directory}"
    if "-----BEGIN CERTIFICATE-----" not in (files.text(path) or ""):
        return "holds no certificate in PEM"
    return ""


class Shipper(ServiceFiles):
    """The service, its check, and the files that make them what they are."""

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
        """Have rsyslog check its new configuration. Raises ServiceError."""
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
        """Raises ServiceError with all mistakes."""
        problems = self.settings.problems()
        if not self.settings.host:
            problems.append(Problem("monitoring_logs", "must not be empty", "host"))
        why = unreadable(Path(self.settings.authorities)) if self.settings.tls else ""
        if why:
            hint = "" if self.settings.ca else " (the package ca-certificates brings it)"
            problems.append(Problem(logs.WHERE, why + hint, "monitoring_log_ca", self.settings.authorities))
        given = self.module.params["rivals"]
        away = apt_packages.absent_of(self.module.run_command, given)
        if rivals := [name for name in given if name not in away]:
            # Debian's packages of these conflict with each other: apt would remove the one that is there.
            words = (
                f"needs the package rsyslog, which cannot be installed beside {', '.join(rivals)}. Have that one ship"
            )
            words += " the journal, and leave monitoring_log_server empty on this machine; or remove it"
            problems.append(Problem(logs.WHERE, words, "monitoring_log_server"))
        if problems:
            lines = "\n".join(f"- {problem}" for problem in problems)
            raise ServiceError(f"The log cannot be shipped like this. Nothing was changed.\n{lines}")

    def authorities(self) -> str:
        """A digest of the authorities, which rsyslog reads when it starts."""
        if not self.settings.tls:
            return ""
        return hashlib.sha256(Path(self.settings.authorities).read_bytes()).hexdigest()[:16]

    def unreachable(self) -> str:
        """Why the server takes no connection; empty where it does."""
        try:
            address = (self.settings.server, self.settings.port)
            socket.create_connection(address, timeout=CONNECT_SECONDS).close()
        except OSError as error:
            return str(error)
        return ""


def unit_files() -> dict[Path, str]:
    """The text of each unit."""
    return {Paths().units / name: text for name, text in logs.units().items()}


def remove(check: bool) -> dict[str, Any]:
    """Stop log shipping and remove its files; in check mode, only report. Raises SystemdError and OSError.

    Not by the removal of parts: a service whose file is gone already, and what it remembers, go as well.
    """
    before = {path: text for path in [*unit_files(), logs.CONFIG] if (text := files.text(path)) is not None}
    states = [path for path in shipping_states() if os.path.lexists(path)]
    found = systemd.show(Shipper.units, ["ActiveState"])
    running = [unit for unit, properties in found.items() if properties["ActiveState"] in systemd.RUNNING]
    changed = bool(before or running or states)
    if changed and not check:
        if running:
            # systemctl disables nothing whose file is gone already.
            systemd.systemctl("stop", *running)
        there = [unit for unit in Shipper.units if Paths().units / unit in before]
        if there:
            systemd.systemctl("disable", *there)
        for path in before:
            path.unlink()
        if before:
            systemd.systemctl("daemon-reload")
        with contextlib.suppress(OSError):
            # Where nothing else is in it, it came with us.
            logs.CONFIG.parent.rmdir()
        for path in states:
            if path.is_symlink():
                path.unlink()
            else:
                shutil.rmtree(path)
        with contextlib.suppress(systemd.SystemdError):
            # Of a unit that has not failed, systemd knows nothing any more.
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
            f"{module.params['server']} does not take connections on port {module.params['port']} ({why}). The log"
            " waits in the journal, and is shipped as soon as it does."
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
