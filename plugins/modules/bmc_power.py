#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

# Not replaced by community.general: its ipmi_power needs pyghmi on the controller, and its redfish_command does not
# wait for a machine's power state, only for a BMC that restarts itself.

DOCUMENTATION = r"""
module: bmc_power
short_description: Power-cycle a machine through its BMC
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Reads the power state from a machine's BMC, power-cycles the machine or resets it, by Redfish or by IPMI.
  - Run the module on a machine that reaches the BMC, usually the controller. The module does not shut down the
    operating system first.
  - Redfish needs only Python. IPMI needs C(ipmitool), which gets the password by its standard input.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - Reads the state, and does not switch the power.
  diff_mode:
    support: none
options:
  protocol:
    description: The protocol of the BMC.
    type: str
    choices: [redfish, ipmi]
    default: redfish
  address:
    description: The BMC's name or address, with C(:PORT) if the port is not the default.
    type: str
    required: true
  user:
    description: The BMC's user.
    type: str
    required: true
  password:
    description: The user's password.
    type: str
    required: true
  action:
    description:
      - V(cycle) switches the power off for O(pause) seconds, V(reset) resets the machine, if possible with the power
        on. V(status) only reads the state.
      - V(cycle) and V(reset) switch on a machine that is off.
    type: str
    choices: [cycle, reset, status]
    default: status
  pause:
    description: Seconds without power.
    type: int
    default: 10
  timeout:
    description: Time limit in seconds for the power to go off, or on.
    type: int
    default: 120
  system:
    description: The name of the machine's Redfish system, if a BMC has several.
    type: str
    default: ""
  validate_certs:
    description: Whether to verify the BMC's certificate.
    type: bool
    default: true
  ca_path:
    description: A file with the authority that has signed the BMC's certificate.
    type: path
"""

EXAMPLES = r"""
- name: Power-cycle a machine that hangs
  baremetal.inference.bmc_power:
    address: bmc-gpu7.example.com
    user: operator
    password: "{{ vault_bmc_password }}"
    action: cycle
  delegate_to: localhost
  become: false
"""

RETURN = r"""
state:
  description: The power state, V(on), V(off), or the BMC's word for a state in between.
  returned: success
  type: str
before:
  description: The power state before the call.
  returned: success
  type: str
"""

import ssl

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.hardware import bmc


def connect(module: AnsibleModule) -> bmc.Bmc:
    """Connect to the BMC. Raises OSError if the authority's file cannot be read."""
    wanted = module.params
    login = (wanted["address"], wanted["user"], wanted["password"])
    if wanted["protocol"] == "ipmi":
        return bmc.Ipmi(*login, run=module.run_command)
    context = ssl.create_default_context(cafile=wanted["ca_path"])
    if not wanted["validate_certs"]:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return bmc.Redfish(*login, context=context, system=wanted["system"])


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "protocol": {"type": "str", "choices": ["redfish", "ipmi"], "default": "redfish"},
            "address": {"type": "str", "required": True},
            "user": {"type": "str", "required": True},
            "password": {"type": "str", "required": True, "no_log": True},
            "action": {"type": "str", "choices": ["cycle", "reset", "status"], "default": "status"},
            "pause": {"type": "int", "default": 10},
            "timeout": {"type": "int", "default": 120},
            "system": {"type": "str", "default": ""},
            "validate_certs": {"type": "bool", "default": True},
            "ca_path": {"type": "path"},
        },
        supports_check_mode=True,
    )
    action = module.params["action"]
    try:
        machine = connect(module)
        if action == "status" or module.check_mode:
            state = machine.state()
            module.exit_json(changed=action != "status", before=state, state=state)
        before = bmc.cycle(machine, action, module.params["pause"], module.params["timeout"], bmc.Clock())
    except (bmc.BmcError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=True, before=before, state="on")


if __name__ == "__main__":
    main()
