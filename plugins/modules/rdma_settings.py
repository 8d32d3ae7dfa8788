#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_settings
short_description: Set up the RDMA rails of a node, now and at every boot
version_added: 0.2.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Plans the settings of all rails from the facts of the node and the variables of the role C(rdma). Reports all
    mistakes at once, before any change.
  - Compares each setting with the node, and changes only differences. Reads every changed value again, because some
    drivers take a value and keep the old one.
  - A change that would stop the traffic of a rail waits while an engine runs that is not drained. RV(change_pending)
    is then V(true).
  - Writes the files that configure the network devices at boot, and removes those of earlier runs that are no longer
    needed.
  - Records the settings for C(inferctl rdma apply), which makes them again after a boot, or when a device is added.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
notes:
  - The module was never run on RDMA hardware. Tests run it on recorded facts, on network devices without RDMA, and on
    software devices.
options:
  settings:
    description: The variables of the role C(rdma), without their prefix. C(docs/rdma.md) explains each.
    type: dict
    default: {}
  address:
    description:
      - The address by which the node is managed. Its network device, and those of the default routes, are no rails.
    type: str
    default: ''
  peers:
    description:
      - The variables of other hosts, to find an address that two hosts have. Each key is a host. Its value is a list
        with the host's C(rdma_addresses), C(rdma_subnets) and C(rdma_host_index).
    type: dict
    default: {}
  packages:
    description: Packages that the rails need. The module does not install them.
    type: list
    elements: str
    default: []
  recorded:
    description:
      - Whether to make the settings that the last run recorded on the node, in place of O(settings). Writes no files of
        the network. Fails if a setting must wait, because an engine runs that is not drained.
    type: bool
    default: false
  drained:
    description:
      - Instances over several nodes of which this node is a follower, and that are drained on their leaders. Only used
        with O(recorded).
    type: list
    elements: str
    default: []
  timeout:
    description: Time limit of each program, in seconds.
    type: float
    default: 30
"""

EXAMPLES = r"""
- name: Set up two rails
  baremetal.inference.rdma_settings:
    settings:
      rails:
        - netdev: ens1f0np0
        - netdev: ens2f0np0
      addresses: [10.1.0.7/16, 10.2.0.7/16]
    address: 192.0.2.7

- name: Report what would change
  baremetal.inference.rdma_settings:
    settings:
      subnets: [10.1.0.0/16, 10.2.0.0/16]
      host_index: 7
  check_mode: true
"""

RETURN = r"""
rails:
  description: The rails in their order, by the names of their ports.
  returned: without O(recorded)
  type: list
  elements: str
  sample: [rocep65s0f0/1]
desired:
  description: The settings of the rails, as the node keeps them for its next boot. Empty without a rail.
  returned: success, without O(recorded)
  type: dict
changes:
  description: The settings that were changed, or in check mode will be.
  returned: always
  type: list
  elements: str
  sample: ["rail 0 (rocep65s0f0/1): mtu: 1500 -> 9000"]
files:
  description: The files that were written or removed, or in check mode will be.
  returned: without O(recorded)
  type: list
  elements: str
pending:
  description: The settings that wait until the engines of the node are drained.
  returned: always
  type: list
  elements: str
change_pending:
  description: Whether a setting waits.
  returned: always
  type: bool
serving:
  description: The instances for which the settings wait.
  returned: always
  type: list
  elements: str
missing_packages:
  description: The packages of O(packages) that are not installed.
  returned: without O(recorded)
  type: list
  elements: str
unknown:
  description: Settings that this machine does not show, so that they were not made.
  returned: always
  type: list
  elements: str
gpudirect:
  description: The method by which rails can reach GPU memory, V(dma_buf), V(peermem) or V(none). Only a measurement
    proves that the method works.
  returned: without O(recorded)
  type: str
gpudirect_reason:
  description: The reason for this method.
  returned: without O(recorded)
  type: str
due:
  description: Whether anything differs or is not installed, except settings that wait.
  returned: always
  type: bool
failures:
  description: Settings that could not be made, with the reason. Empty on success.
  returned: always
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import node_call

SPECIFICATION = {
    "argument_spec": {
        "settings": {"type": "dict", "default": {}},
        "address": {"type": "str", "default": ""},
        "peers": {"type": "dict", "default": {}},
        "packages": {"type": "list", "elements": "str", "default": []},
        "recorded": {"type": "bool", "default": False},
        "drained": {"type": "list", "elements": "str", "default": []},
        "timeout": {"type": "float", "default": 30},
    },
    "supports_check_mode": True,
}


def main() -> None:
    node_call.refuse(AnsibleModule(**SPECIFICATION))


if __name__ == "__main__":
    main()
