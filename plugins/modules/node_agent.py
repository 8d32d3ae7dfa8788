#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_agent
short_description: Run the agent that probes a node's engines
version_added: 0.1.0
description:
  - Installs, enables and starts C(inference-agent.service), or removes it. The agent asks every engine of the node for
    a token every 10 seconds, keeps the verdicts in C(/var/lib/inference/probe), writes metrics for node_exporter, and
    tells gateways on its port whether to send requests (HAProxy's agent-check).
  - It is restarted where its unit or its code has changed since it was started. No engine notices.
  - Fails before it changes anything where the address is not the node's or the port is taken.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  address:
    description: The IP address that it listens on, one that gateways reach.
    type: str
    default: 127.0.0.1
  port:
    description: The port that it listens on.
    type: int
    default: 5004
  tool_changed:
    description:
      - Whether M(baremetal.inference.node_tool) has changed what the agent runs. Check mode needs to be told; otherwise
        the age of the files says it, also after a run that was cut off.
    type: bool
    default: false
  state:
    description: Whether it shall run.
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
- name: Have the node tool
  baremetal.inference.node_tool:
  register: __tool

- name: Run the agent
  baremetal.inference.node_agent:
    address: 192.0.2.7
    tool_changed: "{{ __tool is changed }}"
"""

RETURN = r"""
restarted:
  description: Whether it was started or restarted, or would be in check mode.
  returned: O(state=present)
  type: bool
"""

import ipaddress
import socket
import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import AGENT_UNIT, Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import listeners
from ansible_collections.baremetal.inference.plugins.module_utils.engine.units import agent_unit

PROPERTIES = (
    "ActiveState",
    "UnitFileState",
    "NeedDaemonReload",
    "MainPID",
    "StatusText",
    "ExecMainStartTimestampMonotonic",
)


def problem_with(address: str, port: int, agent: int) -> str:
    """Why the agent could not listen there; empty where it can. `agent` is the pid of the one that may do so already.

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
    """Whether what the agent runs is younger than its process.

    `started` is the process's start in microseconds by the monotonic clock; files have the wall clock's time. One from
    the future says nothing but that the clock was set back.
    """
    now = time.time()
    began = now - time.monotonic() + started / 1e6
    parts = [*paths.library.rglob("*.py"), paths.command, paths.agent_unit]
    return any(began < path.stat().st_mtime <= now for path in parts if path.is_file())


class Agent:
    """Acts on the unit; in check mode it only says what it would do."""

    def __init__(self, paths: Paths, check_mode: bool) -> None:
        self.paths = paths
        self.check_mode = check_mode
        self.unit = systemd.show([AGENT_UNIT], PROPERTIES)[AGENT_UNIT]
        self.changed = False

    @property
    def pid(self) -> int:
        """Of the agent that runs; 0 where none does."""
        return int(self.unit.get("MainPID") or 0)

    def have(self, text: str, *, tool_changed: bool) -> bool:
        """Install the unit, enable it, and (re)start it where needed. Returns whether it was."""
        written = not files.same(self.paths.agent_unit, text)
        reload = written or self.unit["NeedDaemonReload"] == "yes"
        enable = self.unit["UnitFileState"] != "enabled"
        started = int(self.unit.get("ExecMainStartTimestampMonotonic") or 0)
        restart = self.unit["ActiveState"] != "active" or written or tool_changed or outdated(self.paths, started)
        self.changed = reload or enable or restart
        if self.check_mode:
            return restart
        # The sandbox refuses a place that is not there.
        self.paths.state.mkdir(parents=True, exist_ok=True)
        files.write(self.paths.agent_unit, text)
        if reload:
            systemd.systemctl("daemon-reload")
        if enable:
            systemd.systemctl("enable", AGENT_UNIT)
        if restart:
            systemd.systemctl("restart", AGENT_UNIT)
        return restart

    def remove(self) -> None:
        """Stop it, and take away its unit and what would go on telling of it."""
        running = self.unit["ActiveState"] in systemd.RUNNING
        left = [path for path in (self.paths.agent_unit, self.paths.probe_metrics) if path.exists()]
        self.changed = running or bool(left)
        if self.check_mode or not self.changed:
            return
        if self.paths.agent_unit.exists():
            systemd.systemctl("disable", "--now", AGENT_UNIT)
        elif running:
            systemd.systemctl("stop", AGENT_UNIT)
        for path in left:
            path.unlink()
        systemd.systemctl("daemon-reload")

    def words(self) -> str:
        """What it said last, for a start that failed."""
        return systemd.show([AGENT_UNIT], ["StatusText"])[AGENT_UNIT]["StatusText"]


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "address": {"type": "str", "default": "127.0.0.1"},
            "port": {"type": "int", "default": 5004},
            "tool_changed": {"type": "bool", "default": False},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    paths = Paths()
    try:
        agent = Agent(paths, module.check_mode)
        before = files.text(paths.agent_unit) or ""
        if module.params["state"] == "absent":
            agent.remove()
            module.exit_json(changed=agent.changed, diff={"before": before, "after": ""})
        address, port = module.params["address"], module.params["port"]
        problem = problem_with(address, port, agent.pid)
        if problem:
            module.fail_json(msg=f"Nothing was changed. The agent cannot listen: {problem}")
        after = agent_unit.render(address, port)
        try:
            restarted = agent.have(after, tool_changed=module.params["tool_changed"])
        except systemd.SystemdError as error:
            module.fail_json(msg=f"{error}\nIt said last: {agent.words() or 'nothing'}\njournalctl -u {AGENT_UNIT}")
    except (systemd.SystemdError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=agent.changed, restarted=restarted, diff={"before": before, "after": after})


if __name__ == "__main__":
    main()
