#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_agent
short_description: Install the agent that probes a node's engines, and the timers that write the node's metrics
version_added: 0.1.0
description:
  - Installs, enables and starts C(inference-agent.service). Every 10 seconds, the agent probes every engine of the
    node. It stores the verdicts in C(/var/lib/inference/probe), and writes metrics for node_exporter. On its port, it
    answers whether gateways may send requests (HAProxy's agent-check).
  - Restarts the agent if its unit or its code is newer than its process. This does not affect engines.
  - Installs the unit that runs swaps (C(inference-swap@NAME.service)) and the unit that closes gates at boot
    (C(inference-gates.service)). Writes the settings of swaps to C(/etc/inference/swap.json).
  - Installs, enables and starts two timers that write metrics to C(/var/lib/prometheus/node-exporter). One runs every
    minute for GPUs, RDMA, releases and recovery, the other every 5 minutes for the doctor. Without node_exporter, both
    do nothing.
  - Renews the units of all kept releases of engines that version 0.1.0 made, before systemd reloads. Their
    C(TimeoutStartSec) was too short for a reload during the start of an engine. This does not affect engines that run.
  - If the node does not have the address, or another process uses the port, the module fails before any change.
  - Internal to this collection; its options may change without notice.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  address:
    description: The IP address that the agent listens on, and that gateways connect to.
    type: str
    default: 127.0.0.1
  port:
    description: The port that the agent listens on.
    type: int
    default: 5004
  tool_changed:
    description:
      - Whether M(baremetal.inference.node_tool) has changed the agent's code. Only check mode needs this option.
        Otherwise, the module compares the age of the files, also after a run that was cut off.
    type: bool
    default: false
  swap:
    description:
      - The settings for swaps that the node runs by itself. If omitted, the file stays unchanged.
    type: dict
    suboptions:
      node:
        description: The node's name in the inventory, which is part of its servers' names at the gateways.
        type: str
        required: true
      gateways:
        description: The gateways, each with C(name), and C(address) and C(port) of its metrics.
        type: list
        elements: dict
        required: true
      golden:
        description: The golden prompts of each model, by its name in the model registry.
        type: dict
        default: {}
      terms:
        description: The default terms of a swap, such as C(drain_seconds).
        type: dict
        default: {}
  state:
    description:
      - V(absent) stops agent and timers, and removes all units of this module, and the metrics.
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

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import defaults, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import AGENT_UNIT, Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import agent_service, swap_settings


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "address": {"type": "str", "default": "127.0.0.1"},
            "port": {"type": "int", "default": defaults.AGENT_PORT},
            "tool_changed": {"type": "bool", "default": False},
            "swap": {
                "type": "dict",
                "options": {
                    "node": {"type": "str", "required": True},
                    "gateways": {"type": "list", "elements": "dict", "required": True},
                    "golden": {"type": "dict", "default": {}},
                    "terms": {"type": "dict", "default": {}},
                },
            },
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    paths, check = Paths(), module.check_mode
    address, port = module.params["address"], module.params["port"]
    try:
        if module.params["state"] == "absent":
            changed, gone, before = agent_service.remove(paths, check=check)
            removed = sorted(map(str, gone))
            module.exit_json(changed=changed, files=removed, diff={"before": before, "after": ""})
        if not check and not paths.command.exists():
            module.fail_json(
                msg=f"Nothing was changed. {paths.command} is missing: run baremetal.inference.site, which installs it"
            )
        settings = swap_settings.text(module.params["swap"]) if module.params["swap"] else None
        units = agent_service.Units(
            paths, address, port, tool_changed=module.params["tool_changed"], swap_settings=settings
        )
        problem = agent_service.problem_with(address, port, units.agent_pid)
        if problem:
            module.fail_json(msg=f"Nothing was changed. The agent cannot listen: {problem}")
        try:
            if not check:
                units.install()
        except systemd.SystemdError as error:
            words = agent_service.last_status() or "nothing"
            module.fail_json(msg=f"{error}\nThe agent's last status: {words}\njournalctl -u {AGENT_UNIT}")
    except (systemd.SystemdError, OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    written = sorted(map(str, [*units.written, *([paths.swap_settings] if units.settings_due else [])]))
    module.exit_json(changed=units.changed, restarted=units.restart, files=written, diff=units.diff())


if __name__ == "__main__":
    main()
