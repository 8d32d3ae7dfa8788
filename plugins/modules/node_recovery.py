#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_recovery
short_description: Install the recovery of a node's engines
version_added: 0.1.0
description:
  - Installs and starts C(inference-recovery.path), which waits for the agent to ask for the recovery of an engine, and
    the units that it starts. Writes the settings of C(inferctl recover) and C(inferctl doctor).
  - With O(state=absent) it removes units and settings. The recovery's state of each instance stays.
  - No engine notices.
  - Internal to this collection; its options may change without notice.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  armed:
    description: Whether the recovery acts by itself. C(inferctl recover --disarm) disarms a single instance.
    type: bool
    default: true
  budget:
    description: Faults of an instance per hour that the recovery answers; the next fault opens the breaker.
    type: int
    default: 3
  backoff:
    description: Seconds between the second and the third step within an hour, doubled before each further step.
    type: float
    default: 30
  restart_docker:
    description:
      - Whether the recovery may restart a Docker that does not answer. Without live-restore, it does not restart Docker
        while other instances serve.
    type: bool
    default: true
  reset_gpus:
    description: Whether the recovery may reset a GPU that no other instance uses, where the table of XIDs says so.
    type: bool
    default: true
  evidence_kept:
    description: For how many steps of each instance the evidence is kept.
    type: int
    default: 5
  webhook:
    description: Gets a POST with JSON when a breaker opens. Its path may hold a secret, but no user and password.
    type: str
    default: ""
  mail_to:
    description: The address that gets a mail when a breaker opens, sent by the node's own sendmail.
    type: str
    default: ""
  mail_from:
    description: The sender of the mail; root if empty.
    type: str
    default: ""
  alertmanager:
    description:
      - The address of an Alertmanager without a password, which gets an alert by its API v2 when a breaker opens. The
        alert lasts until the breaker is closed, 30 days at most.
    type: str
    default: ""
  doctor_off:
    description: Checks of the doctor, or kinds of checks, that are off.
    type: list
    elements: str
    default: []
  free_percent:
    description: Space and inodes in percent that must be free on every file system of an engine.
    type: int
    default: 5
  clock_seconds:
    description: By how many seconds the clock may be off.
    type: float
    default: 1
  state:
    description: Whether the recovery is installed.
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
      - Addresses of alerts are left out.
"""

EXAMPLES = r"""
- name: Install the recovery, and report faults that it cannot answer
  baremetal.inference.node_recovery:
    budget: 3
    webhook: https://hooks.example.org/inference
    doctor_off: [rdma]
"""

RETURN = r"""
due:
  description: Whether anything was to be done, also where the task itself must not report a change.
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
