#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_tool
short_description: Install the command inferctl on a node, or remove what a node without instances still holds
version_added: 0.1.0
description:
  - Installs the command C(/usr/local/bin/inferctl) with its library in C(/usr/local/lib/inference). The library is the
    collection's own code. The controller sends the library only where the files on the node differ from the collection.
    The directory belongs to the module, which removes foreign files in it. A supervisor that already runs keeps the
    code that it was started with.
  - With O(state=absent) it removes the command with its library and everything that needs them - agent, metrics and
    recovery with their units, the engines' target, C(/etc/inference), C(/var/lib/inference) and the files for
    node_exporter. The lock of the run that removes them goes too.
  - Refuses to remove them while the node has an instance. M(baremetal.inference.engine_service) removes instances.
  - Internal to this collection; its options may change without notice.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  state:
    description: Whether the command is on the node.
    type: str
    choices: [present, absent]
    default: present
  keep:
    description: Files in the removed directories that stay, because they describe what stays on the node.
    type: list
    elements: path
    default: []
  directories:
    description:
      - Further directories that O(state=absent) removes, such as the compile caches. Directories above them that are
        empty then go too.
    type: list
    elements: path
    default: []
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - With O(state=absent), check mode does not refuse instances, because an earlier task of the run removes them.
  diff_mode:
    support: full
    details:
      - Names and checksums of files are shown; of what is removed, the names.
"""

EXAMPLES = r"""
- name: Install the node tool
  baremetal.inference.node_tool:

- name: Remove everything from a node without instances
  baremetal.inference.node_tool:
    state: absent
    keep: [/var/lib/inference/docker-daemon.json]
    directories: [/var/cache/inference]
"""

RETURN = r"""
version:
  description: The version of the tool that this collection has, which is the collection's own.
  returned: always
  type: str
  sample: 0.1.0
files:
  description: The files that were written, or the files and directories that were removed; in check mode, would be.
  returned: always
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import node_call

LIST_OF_PATHS = {"type": "list", "elements": "path", "default": []}
SPECIFICATION = {
    "argument_spec": {
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "keep": LIST_OF_PATHS,
        "directories": LIST_OF_PATHS,
    },
    "supports_check_mode": True,
}


def main() -> None:
    node_call.refuse(AnsibleModule(**SPECIFICATION))


if __name__ == "__main__":
    main()
