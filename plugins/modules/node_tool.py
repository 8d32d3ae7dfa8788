#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_tool
short_description: Have the command inferctl on a node
version_added: 0.1.0
description:
  - Installs the command C(/usr/local/bin/inferctl) with its library in C(/usr/local/lib/inference), or removes both.
    The library is the collection's own code, as it was sent to the node together with this module. The directory
    belongs to it, so that foreign files in there are removed.
  - An engine's supervisor that runs already goes on with the code it was started with.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  state:
    description: Whether the command shall be there.
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
      - Names and checksums of files are shown.
"""

EXAMPLES = r"""
- name: Have the node tool
  baremetal.inference.node_tool:

- name: Take it away
  baremetal.inference.node_tool:
    state: absent
"""

RETURN = r"""
version:
  description: The version of the tool that this collection has, which is the collection's own.
  returned: always
  type: str
  sample: 0.1.0
files:
  description: The files that were written or removed, or would be in check mode.
  returned: always
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

# Ansible sends along what is imported here, and all that this imports.
from ansible_collections.baremetal.inference.plugins.module_utils.core import node_library, paths
from ansible_collections.baremetal.inference.plugins.module_utils.models.prompts import command
from ansible_collections.baremetal.inference.plugins.module_utils.node.cli import inferctl

ALSO = (command.__name__,)
"""What containers of the engine's image run out of the library."""


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    where = paths.Paths()
    try:
        present = module.params["state"] == "present"
        plan = node_library.plan(inferctl.__name__, where.library, where.command, present, ALSO)
        if not module.check_mode:
            plan.apply()
    except (OSError, ImportError) as error:
        module.fail_json(msg=f"inferctl cannot be installed or removed: {error}")
    module.exit_json(changed=bool(plan.files), version=inferctl.VERSION, files=plan.files, diff=plan.diff)


if __name__ == "__main__":
    main()
