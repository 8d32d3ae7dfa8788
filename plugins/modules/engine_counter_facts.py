#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: engine_counter_facts
short_description: Read what engines have counted
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Of two looks, M(baremetal.inference.engine_watch) tells how fast an engine answered its clients from the one to the
    other.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - Looks in check mode, too.
  diff_mode:
    support: none
options:
  names:
    description: The instances.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: See what the engine has counted
  baremetal.inference.engine_counter_facts:
    names: [main]
  register: __counted
"""

RETURN = r"""
counters:
  description: A look at each instance by its name; empty where its engine does not answer, or does not count.
  returned: success
  type: dict
"""

from dataclasses import asdict

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import throughput


def main() -> None:
    module = AnsibleModule(
        argument_spec={"names": {"type": "list", "elements": "str", "required": True}}, supports_check_mode=True
    )
    looks = {name: throughput.look(Paths(), name) for name in module.params["names"]}
    module.exit_json(changed=False, counters={name: asdict(look) if look else {} for name, look in looks.items()})


if __name__ == "__main__":
    main()
