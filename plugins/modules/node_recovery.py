#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_recovery
short_description: Install or remove recovery on a node
version_added: 0.1.0
description:
  - Installs and starts C(inference-recovery.path), which waits for requests of the agent, and the units that it starts.
    Writes the settings of C(inferctl recover) and C(inferctl doctor).
  - O(state=absent) removes units and settings. Recovery's state of each instance stays.
  - Does not affect engines.
  - Internal to this collection; its options may change without notice.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  armed:
    description: Whether recovery takes steps by itself. C(inferctl recover --disarm) disarms a single instance.
    type: bool
    default: true
  budget:
    description: The number of an instance's faults per hour that recovery answers. The next fault opens the breaker.
    type: int
    default: 3
  backoff:
    description: The seconds between the second and the third step within an hour. They double before each further step.
    type: float
    default: 30
  restart_docker:
    description:
      - Whether recovery may restart a Docker that does not answer. Without live-restore, recovery does not restart
        Docker while another engine runs.
    type: bool
    default: true
  reset_gpus:
    description: Whether recovery may reset a GPU that no other instance uses, after an XID that needs a reset.
    type: bool
    default: true
  evidence_kept:
    description: The number of steps of each instance for which the evidence is kept.
    type: int
    default: 5
  webhook:
    description: The URL that gets a POST with JSON when a breaker opens. It may have a secret path, but no password.
    type: str
    default: ""
  mail_to:
    description: The address that gets a mail by the node's sendmail when a breaker opens.
    type: str
    default: ""
  mail_from:
    description: The sender of the mail. If empty, root.
    type: str
    default: ""
  alertmanager:
    description:
      - The URL of an Alertmanager without a password, which gets an alert by its API v2 when a breaker opens. The alert
        lasts until the breaker is closed, 30 days at most.
    type: str
    default: ""
  doctor_off:
    description: The checks of the doctor, or kinds of checks, that are off.
    type: list
    elements: str
    default: []
  free_percent:
    description: The percentage of space and inodes that must be free on every file system of an engine.
    type: int
    default: 5
  clock_seconds:
    description: The allowed offset of the clock, in seconds.
    type: float
    default: 1
  state:
    description: Whether recovery is installed.
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
    details:
      - Addresses for alerts are not shown.
"""

EXAMPLES = r"""
- name: Install recovery, and report open breakers to a web hook
  baremetal.inference.node_recovery:
    budget: 3
    webhook: https://hooks.example.org/inference
    doctor_off: [rdma]
"""

RETURN = r"""
due:
  description: Whether the module changes, or would change, anything. Unlike C(changed), not hidden by C(changed_when).
  returned: success
  type: bool
files:
  description: The files that were written or removed, or would be in check mode.
  returned: success
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import node_call

ADDRESSES = {
    "webhook": {"type": "str", "default": "", "no_log": True},
    "mail_to": {"type": "str", "default": ""},
    "mail_from": {"type": "str", "default": ""},
    "alertmanager": {"type": "str", "default": "", "no_log": True},
}

ARGUMENTS = {
    "armed": {"type": "bool", "default": True},
    "budget": {"type": "int", "default": 3},
    "backoff": {"type": "float", "default": 30.0},
    "restart_docker": {"type": "bool", "default": True},
    "reset_gpus": {"type": "bool", "default": True},
    "evidence_kept": {"type": "int", "default": 5},
    **ADDRESSES,
    "doctor_off": {"type": "list", "elements": "str", "default": []},
    "free_percent": {"type": "int", "default": 5},
    "clock_seconds": {"type": "float", "default": 1.0},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}


SPECIFICATION = {"argument_spec": ARGUMENTS, "supports_check_mode": True}


def main() -> None:
    node_call.refuse(AnsibleModule(**SPECIFICATION))


if __name__ == "__main__":
    main()
