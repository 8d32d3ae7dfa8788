#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gang_facts
short_description: Report by which network a node exchanges data with the other nodes of its gangs
version_added: 0.2.0
description:
  - Finds the network device with the node's address, and the rails of the node. The environment of NCCL needs both from
    all members of a gang (an instance over several nodes).
  - Changes nothing.
  - Internal to this collection; its options and results may change without notice.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  address:
    description: The address at which the other members reach this node.
    type: str
    required: true
  rails:
    description:
      - The rail settings that this run will apply, from RV(baremetal.inference.rdma_settings#module:desired).
        RV(network.rails) shows the rails with these settings. If this option is empty, the module uses the settings
        that the last run recorded on the node.
      - Without any settings, all active RDMA ports are rails, except the port with O(address).
    type: dict
    default: {}
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
seealso:
  - module: baremetal.inference.rdma_settings
  - module: baremetal.inference.engine_release
"""

EXAMPLES = r"""
- name: Read the network of this member
  baremetal.inference.gang_facts:
    address: 10.20.0.11
  register: __network
"""

RETURN = r"""
network:
  description: The network of the node, for the option C(network) of M(baremetal.inference.engine_release).
  returned: success
  type: dict
  contains:
    address:
      description: The address of the node.
      type: str
    netdev:
      description: The network device with this address; empty if no device has it.
      type: str
    ports:
      description: The number of RDMA ports, also those that are no rails.
      type: int
    tos:
      description: The type of service of the lossless class; null without one.
      type: int
    rails:
      description:
        - The rails in their order, each with C(device), C(port), C(layer), C(netdev), C(network), C(mtu_active) in
          bytes, and C(rate_gbps).
      type: list
      elements: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import node_call

SPECIFICATION = {
    "argument_spec": {
        "address": {"type": "str", "required": True},
        "rails": {"type": "dict", "default": {}},
    },
    "supports_check_mode": True,
}


def main() -> None:
    node_call.refuse(AnsibleModule(**SPECIFICATION))


if __name__ == "__main__":
    main()
