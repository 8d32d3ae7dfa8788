#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_call
short_description: Run another module of this collection from the library on the node
version_added: 0.1.0
description:
  - Ansible sends this module in place of each module that runs from the library on the node, such as
    M(baremetal.inference.engine_facts). Ansible thus builds and sends one small module for all of them.
  - Takes the options of the called module as well.
  - Internal to this collection. Tasks do not call this module.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  node_call:
    description: The module to run, and the digest of its library, as text. The action plugin sets this option.
    type: str
    default: ""
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - As the called module supports it.
  diff_mode:
    support: full
    details:
      - As the called module supports it.
"""

EXAMPLES = r"""
- name: Read the node's engines by the library on the node
  baremetal.inference.engine_facts:
"""

RETURN = r"""
library_missing:
  description: Whether the node needs the library first. Otherwise, the result is that of the called module.
  returned: if the node does not have the library
  type: bool
"""

from ansible.module_utils import basic
from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import node_call


def main() -> None:
    # The options depend on the called module, so the parameters are read before the specification is made.
    given = basic._load_params() or {}
    node_call.run(AnsibleModule(**node_call.specification(given)))


if __name__ == "__main__":
    main()
