#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: engine_drain
short_description: Record that requests must be kept away from an engine
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Records the intent on the node, as C(inferctl drain) does; the node's agent tells the gateways. The module does
    not wait for the gateways, see M(baremetal.inference.engine_outage).
  - Another owner's drain stays as it is. This is no failure, since requests are kept away already.
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
    description: Whose intent it is. Only their own is taken back.
    type: str
    required: true
  state:
    description:
      - V(drained) records the intent. One of its own gets another O(reason).
      - V(undrained) takes the intent back.
    type: str
    choices: [drained, undrained]
    default: drained
  reason:
    description: Why, for those who wonder. Required for V(drained).
    type: str
"""

EXAMPLES = r"""
- name: Keep requests away
  baremetal.inference.engine_drain:
    name: main
    owner: update
    reason: release 4 comes
"""

RETURN = r"""
drained_by:
  description: Whose intent is in force now; empty where there is none.
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
