#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: left_facts
short_description: Read whether a machine still is a gateway, watches the fleet or ships its log
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Finds what this collection has set up on a machine, and the inventory may not name any more. Configurations that
    others wrote do not count.
  - One call for each machine and run. Changes nothing.
  - Internal to this collection; its options may change without notice.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  gather_subset:
    description:
      - What to look for. V(gateway) is HAProxy and keepalived, V(monitoring) is Prometheus and Alertmanager, V(logs) is
        log shipping.
      - V(all) is everything, V(min) nothing. An exclamation mark leaves one out, of V(all) where nothing else is given.
    type: list
    elements: str
    default: [all]
    choices: [all, min, gateway, '!gateway', monitoring, '!monitoring', logs, '!logs']
"""

EXAMPLES = r"""
- name: Read what is left on the machine
  baremetal.inference.left_facts:
  register: __left
"""

RETURN = r"""
left:
  description: Which of V(gateway), V(monitoring) and V(logs) is on the machine.
  returned: success
  type: list
  elements: str
gateway:
  description: What is left of a gateway.
  returned: if V(gateway) is gathered
  type: dict
  contains:
    services:
      description: The services that run, or start at the next boot.
      type: list
      elements: str
    files:
      description: Our files that are there.
      type: list
      elements: str
    floating_address:
      description: The address that keepalived shares with other gateways. Empty for none.
      type: str
      sample: 192.0.2.10/24
monitoring:
  description: What is left of a monitoring host.
  returned: if V(monitoring) is gathered
  type: dict
  contains:
    services:
      description: The services that run, or start at the next boot.
      type: list
      elements: str
    files:
      description: Our files that are there.
      type: list
      elements: str
logs:
  description: What is left of log shipping.
  returned: if V(logs) is gathered
  type: dict
  contains:
    files:
      description: Our files that are there.
      type: list
      elements: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core.gather_subset import ALL, choices, chosen
from ansible_collections.baremetal.inference.plugins.module_utils.core.systemd import SystemdError
from ansible_collections.baremetal.inference.plugins.module_utils.debian.service_files import left
from ansible_collections.baremetal.inference.plugins.module_utils.gateway import removal as gateway
from ansible_collections.baremetal.inference.plugins.module_utils.monitoring import removal as monitoring


def of_gateway() -> dict[str, Any]:
    """What is left of a gateway. Raises SystemdError, OSError, ValueError."""
    found = left(gateway.everything())
    return {
        "services": list(found.services),
        "files": found.paths,
        "floating_address": gateway.floating_address(),
    }


def of_monitoring() -> dict[str, Any]:
    """What is left of a monitoring host. Raises SystemdError, OSError, ValueError."""
    found = left(monitoring.everything())
    return {"services": list(found.services), "files": found.paths}


def of_logs() -> dict[str, Any]:
    """What is left of log shipping."""
    return {"files": [str(path) for path in monitoring.shipping() if path.exists()]}


PARTS = {"gateway": of_gateway, "monitoring": of_monitoring, "logs": of_logs}


def main() -> None:
    subset = {"type": "list", "elements": "str", "default": [ALL], "choices": choices(tuple(PARTS))}
    module = AnsibleModule(argument_spec={"gather_subset": subset}, supports_check_mode=True)
    wanted = chosen(module.params["gather_subset"], tuple(PARTS))
    try:
        found = {name: look() for name, look in PARTS.items() if name in wanted}
    except (SystemdError, OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, **found, left=[name for name, there in found.items() if there["files"]])


if __name__ == "__main__":
    main()
