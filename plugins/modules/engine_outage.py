#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: engine_outage
short_description: Begin or end an outage of a node's instances, for work on the node
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Drains instances of the node, and waits until every gateway has the drain and no client is connected any more. The
    engines keep running.
  - Reads which other engines serve from the gateways that C(/etc/inference/swap.json) lists, and leaves each gateway at
    least one server of each set, except for instances in O(last).
  - Internal to this collection; its options may change without notice.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  names:
    description: Names of the instances.
    type: list
    elements: str
    required: true
  owner:
    description: Owner of the drains. A drain of another owner stays unchanged.
    type: str
    required: true
  state:
    description:
      - V(begun) drains the instances, and waits up to O(seconds) until no requests are left. If a gateway would have no
        server left, the module fails before anything changes. If another node drains the same set at the same time and
        goes first, the module fails after its own drain, which stays.
      - V(ended) probes the drained engines that run, and undrains the instances. Then it waits up to O(seconds) until
        every gateway gives the engines their full share, except engines that do not run or that another owner has
        drained. If a probe fails, the module fails, and the drain of this instance stays.
    type: str
    choices: [begun, ended]
    default: begun
  reason:
    description: Reason of the drain. Required for V(begun).
    type: str
  seconds:
    description: How long one call waits, in seconds.
    type: int
    default: 20
  last:
    description: Instances that may be drained even if a gateway has no other server of their set.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Drain the instance, and wait until no requests are left
  baremetal.inference.engine_outage:
    names: [main]
    owner: maintenance
    reason: a new disk
  register: __outage
  until: __outage.reached
  retries: 90
  delay: 0

- name: Probe the engine, and end the outage
  baremetal.inference.engine_outage:
    names: [main]
    owner: maintenance
    state: ended
  register: __outage
  until: __outage.reached
  retries: 13
  delay: 0
"""

RETURN = r"""
reached:
  description: Whether the call has nothing left to wait for. Always true in check mode, which does not wait.
  returned: success
  type: bool
words:
  description: What the call still waits for, one line each.
  returned: success
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import node_call

SPECIFICATION = {
    "argument_spec": {
        "names": {"type": "list", "elements": "str", "required": True},
        "owner": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["begun", "ended"], "default": "begun"},
        "reason": {"type": "str"},
        "seconds": {"type": "int", "default": 20},
        "last": {"type": "list", "elements": "str", "default": []},
    },
    "required_if": [("state", "begun", ["reason"])],
    "supports_check_mode": True,
}


def main() -> None:
    node_call.refuse(AnsibleModule(**SPECIFICATION))


if __name__ == "__main__":
    main()
