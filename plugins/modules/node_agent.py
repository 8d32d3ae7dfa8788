#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_agent
short_description: Install the agent that probes a node's engines, and the timers that gather its metrics
version_added: 0.1.0
description:
  - Installs, enables and starts C(inference-agent.service). The agent asks every engine of the node for a token every
    10 seconds, keeps the verdicts in C(/var/lib/inference/probe), writes metrics for node_exporter, and answers on its
    port whether gateways may send requests (HAProxy's agent-check).
  - The module restarts the agent if its unit or its code is younger than its process. No engine notices.
  - Installs, enables and starts the timers that write metrics of GPUs, RDMA and releases (every minute) and of the
    doctor (every 5 minutes) to C(/var/lib/prometheus/node-exporter). Without node_exporter they do nothing.
  - Fails before it changes anything if the node does not have the address, or another process has the port.
  - Internal to this collection; its options may change without notice.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  address:
    description: The IP address that the agent listens on, and that gateways reach.
    type: str
    default: 127.0.0.1
  port:
    description: The port that the agent listens on.
    type: int
    default: 5004
  tool_changed:
    description:
      - Whether M(baremetal.inference.node_tool) has changed the agent's code. Only check mode needs it. Otherwise the
        module compares the age of the files, also after a run that was cut off.
    type: bool
    default: false
  state:
    description:
      - V(absent) stops agent and timers, and removes their units and the metrics that they wrote.
    type: str
    choices: [present, absent]
    default: present
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
"""

EXAMPLES = r"""
- name: Install the node tool
  baremetal.inference.node_tool:
  register: __tool

- name: Install the agent
  baremetal.inference.node_agent:
    address: 192.0.2.7
    tool_changed: "{{ __tool is changed }}"
"""

RETURN = r"""
restarted:
  description: Whether the agent was started or restarted, or would be in check mode.
  returned: O(state=present)
  type: bool
files:
  description: The files that were written or removed, or would be in check mode.
  returned: success
  type: list
  elements: str
"""

import ipaddress
import socket
import time
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import defaults, files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import (
    AGENT_UNIT,
    METRICS_TIMERS,
    Paths,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine import listeners
from ansible_collections.baremetal.inference.plugins.module_utils.engine.units import agent_unit, metrics_units

PROPERTIES = (
    "ActiveState",
    "UnitFileState",
    "NeedDaemonReload",
    "MainPID",
    "StatusText",
    "ExecMainStartTimestampMonotonic",
)


def problem_with(address: str, port: int, agent: int) -> str:
    """Why the agent cannot listen there; empty where it can. `agent` is the pid of an agent that may listen already.

    Raises OSError where /proc cannot be read.
    """
    if not 0 < port < 65536:
        return f"port {port} must be between 1 and 65535"
    try:
        family = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((address, 0))
    except ValueError:
        return f"{address!r} must be an IP address of the node"
    except OSError as error:
        return f"{address} is no address of this node ({error.strerror})"
    others = [other for other in listeners.ownership(port, address, None).strangers if other.pid != agent]
    who = ", ".join(map(str, others))
    return f"port {port} is taken by {who}: stop that, or give the agent another port" if others else ""


def outdated(paths: Paths, started: int) -> bool:
    """Whether the agent's files are younger than its process.

    `started` is the process's start in microseconds by the monotonic clock; files have the wall clock's time. A file
    from the future only says that the clock was set back.
    """
    now = time.time()
    began = now - time.monotonic() + started / 1e6
    parts = [*paths.library.rglob("*.py"), paths.command, paths.agent_unit]
    return any(began < path.stat().st_mtime <= now for path in parts if path.is_file())


class Units:
    """The units of agent and metrics, and what there is to do. Raises SystemdError, OSError."""

    def __init__(self, paths: Paths, wanted: dict[Path, str], *, tool_changed: bool) -> None:
        self.paths = paths
        self.wanted = wanted
        self.before = {path: files.text(path) for path in wanted}
        self.written = [path for path, text in wanted.items() if not files.same(path, text)]
        agent = systemd.show([AGENT_UNIT], PROPERTIES)[AGENT_UNIT]
        timers = systemd.show(METRICS_TIMERS, ["ActiveState", "UnitFileState"])
        self.agent_pid = int(agent.get("MainPID") or 0)
        self.reload = bool(self.written) or agent["NeedDaemonReload"] == "yes"
        self.enable = agent["UnitFileState"] != "enabled"
        self.restart = (
            agent["ActiveState"] != "active"
            or paths.agent_unit in self.written
            or tool_changed
            or outdated(paths, int(agent.get("ExecMainStartTimestampMonotonic") or 0))
        )
        self.timers_to_start = [name for name in METRICS_TIMERS if list(timers[name].values()) != ["active", "enabled"]]
        changed = {path.name for path in self.written} - set(self.timers_to_start)
        self.timers_to_restart = [name for name in METRICS_TIMERS if name in changed]

    @property
    def changed(self) -> bool:
        return self.reload or self.enable or self.restart or bool(self.timers_to_start)

    def install(self) -> None:
        """Write the units, and enable and (re)start what needs it."""
        # The sandbox refuses a directory that does not exist.
        self.paths.state.mkdir(parents=True, exist_ok=True)
        for path in self.written:
            files.write(path, self.wanted[path])
        if self.reload:
            systemd.systemctl("daemon-reload")
        if self.enable:
            systemd.systemctl("enable", AGENT_UNIT)
        if self.restart:
            systemd.systemctl("restart", AGENT_UNIT)
        if self.timers_to_start:
            systemd.systemctl("enable", "--now", *self.timers_to_start)
        if self.timers_to_restart:
            systemd.systemctl("restart", *self.timers_to_restart)

    def diff(self) -> dict[str, str]:
        return {
            "before": "".join(f"{path}:\n{self.before[path] or ''}" for path in self.written),
            "after": "".join(f"{path}:\n{self.wanted[path]}" for path in self.written),
        }


def last_words() -> str:
    """The agent's last status, for a start that failed."""
    return systemd.show([AGENT_UNIT], ["StatusText"])[AGENT_UNIT]["StatusText"]


def remove(paths: Paths, *, check: bool) -> tuple[bool, list[Path], str]:
    """Stop agent and timers, and remove their units and metrics. Returns whether anything changed, the files, and the
    text of the unit files. Raises SystemdError, OSError."""
    units = [paths.agent_unit, *paths.metrics_units.values()]
    before = "".join(f"{path}:\n{text}" for path in units if (text := files.text(path)) is not None)
    gone, running = systemd.remove_units(units, [*METRICS_TIMERS, AGENT_UNIT], check=check)
    collected = [paths.metrics(name) for names in metrics_units.GROUPS.values() for name in names]
    metrics = [path for path in (paths.probe_metrics, *collected) if path.exists()]
    for path in [] if check else metrics:
        path.unlink()
    return bool(gone or running or metrics), [*gone, *metrics], before


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "address": {"type": "str", "default": "127.0.0.1"},
            "port": {"type": "int", "default": defaults.AGENT_PORT},
            "tool_changed": {"type": "bool", "default": False},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    paths, check = Paths(), module.check_mode
    address, port = module.params["address"], module.params["port"]
    try:
        if module.params["state"] == "absent":
            changed, gone, before = remove(paths, check=check)
            removed = sorted(map(str, gone))
            module.exit_json(changed=changed, files=removed, diff={"before": before, "after": ""})
        if not check and not paths.command.exists():
            module.fail_json(msg=f"Nothing was changed. {paths.command} is not there: site.yml installs it")
        texts = {paths.metrics_units[name]: text for name, text in metrics_units.render().items()}
        wanted = {paths.agent_unit: agent_unit.render(address, port), **texts}
        units = Units(paths, wanted, tool_changed=module.params["tool_changed"])
        problem = problem_with(address, port, units.agent_pid)
        if problem:
            module.fail_json(msg=f"Nothing was changed. The agent cannot listen: {problem}")
        try:
            if not check:
                units.install()
        except systemd.SystemdError as error:
            words = last_words() or "nothing"
            module.fail_json(msg=f"{error}\nThe agent's last status: {words}\njournalctl -u {AGENT_UNIT}")
    except (systemd.SystemdError, OSError) as error:
        module.fail_json(msg=str(error))
    written = sorted(map(str, units.written))
    module.exit_json(changed=units.changed, restarted=units.restart, files=written, diff=units.diff())


if __name__ == "__main__":
    main()
