#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_tool
short_description: Install the command inferctl on a node, or remove this collection from a node without instances
version_added: 0.1.0
description:
  - Installs the command C(/usr/local/bin/inferctl) with its library in C(/usr/local/lib/inference), from the
    collection's code. The controller sends the library only if the node's files differ. The module removes foreign
    files in the library's directory. Running supervisors keep the code with which they were started.
  - O(state=absent) removes the command with its library, and agent, metrics and recovery with their units. It also
    removes the engines' target, C(/etc/inference), C(/var/lib/inference) and the files for node_exporter, with the lock
    of the run.
  - Refuses O(state=absent) while the node has an instance. M(baremetal.inference.engine_service) removes instances.
  - Internal to this collection; its options may change without notice.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  state:
    description: V(present) installs the command, V(absent) removes it.
    type: str
    choices: [present, absent]
    default: present
  keep:
    description: Files and directories in the removed directories that stay, such as those of software that stays.
    type: list
    elements: path
    default: []
  directories:
    description:
      - Further directories that O(state=absent) removes, such as the compile caches, with parent directories that are
        then empty.
    type: list
    elements: path
    default: []
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - Check mode of O(state=absent) does not refuse a node with instances, because an earlier task would remove them.
  diff_mode:
    support: full
    details:
      - Shows names and checksums of written files, and names of removed files.
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
  description: The version of the tool, which is the version of this collection.
  returned: always
  type: str
  sample: 0.1.0
files:
  description: The files that were written, or the files and directories that were removed, or would be in check mode.
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
