#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: engine_drain
short_description: Drain or undrain an instance
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Records or removes the drain on the node, like C(inferctl drain). The node's agent then reports the drain to the
    gateways. The module does not wait for the gateways, see M(baremetal.inference.engine_outage).
  - A drain of another owner stays unchanged. This is no failure, because gateways already send no requests.
  - Internal to this collection; its options may change without notice.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  name:
    description: The instance.
    type: str
    required: true
  owner:
    description: The owner of the drain. V(undrained) removes only a drain of this owner.
    type: str
    required: true
  state:
    description:
      - V(drained) records the drain. If O(owner) already has a drain, it gets the new O(reason).
      - V(undrained) removes the drain.
    type: str
    choices: [drained, undrained]
    default: drained
  reason:
    description: The reason of the drain, for operators. Required for V(drained).
    type: str
"""

EXAMPLES = r"""
- name: Drain the instance
  baremetal.inference.engine_drain:
    name: main
    owner: update
    reason: update to release 4
"""

RETURN = r"""
drained_by:
  description: The owner of the drain after the call; empty if the instance is not drained.
  returned: success
  type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import node_call

SPECIFICATION = {
    "argument_spec": {
        "name": {"type": "str", "required": True},
        "owner": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["drained", "undrained"], "default": "drained"},
        "reason": {"type": "str"},
    },
    "required_if": [("state", "drained", ["reason"])],
    "supports_check_mode": True,
}


def main() -> None:
    node_call.refuse(AnsibleModule(**SPECIFICATION))


if __name__ == "__main__":
    main()
