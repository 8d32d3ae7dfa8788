#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: model_clean
short_description: Remove what a node's store no longer needs
version_added: 0.1.0
description:
  - Removes revisions of models of which there are newer ones, unless they are still needed. Kept releases need theirs,
    for an instance may be rolled back to them; so do installed units, containers, the registry of the node, O(models),
    and variants the revision of their base.
  - Removes their fast copies as well, transfers that have not gone on for a day, and damaged revisions that were
    replaced.
  - Where the module cannot tell what is needed, it fails and removes nothing. It also fails where the store lies on a
    file system that other nodes may have, too, such as NFS. What the store has not published itself stays.
  - Internal to this collection; its options may change without notice.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  store:
    description: The root of the store.
    type: path
    required: true
  fast_path:
    description: The root of the fast copies; empty for none.
    type: str
    default: ""
  keep:
    description: How many of the newest revisions of each model stay, whether anything needs them or not; 1 or more.
    type: int
    default: 2
  keep_releases:
    description:
      - How many of each instance's releases M(baremetal.inference.node_cleanup) leaves; what only the others need goes.
        0 for all.
    type: int
    default: 0
  models:
    description: Entries of the model registry by name. The revision that they pin stays, or else the newest.
    type: dict
    default: {}
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
seealso:
  - module: baremetal.inference.model
  - module: baremetal.inference.model_fast_copy
  - module: baremetal.inference.node_cleanup
"""

EXAMPLES = r"""
- name: See what could go
  baremetal.inference.model_clean:
    store: /mnt/models
    fast_path: /mnt/nvme/workspace/models
    keep: 2
  check_mode: true
  register: cleaned
"""

RETURN = r"""
freed_gib:
  description: How much space is freed, or would be in check mode, in GiB.
  returned: success
  type: float
  sample: 141.2
freed:
  description: What goes.
  returned: success
  type: list
  elements: dict
  contains: &item
    path:
      description: The directory.
      type: str
    gib:
      description: What it takes, in GiB.
      type: float
    why:
      description: The reason.
      type: str
  sample:
    - path: /mnt/models/qwen3-8b/ab12cd34ef56
      gib: 15.3
      why: "superseded: 2 newer, and nothing needs it"
kept:
  description: The revisions that stay.
  returned: success
  type: list
  elements: dict
  contains: *item
lines:
  description: The same for people.
  returned: success
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import node_call

SPECIFICATION = {
    "argument_spec": {
        "store": {"type": "path", "required": True},
        "fast_path": {"type": "str", "default": ""},
        "keep": {"type": "int", "default": 2},
        "keep_releases": {"type": "int", "default": 0},
        "models": {"type": "dict", "default": {}},
    },
    "supports_check_mode": True,
}


def main() -> None:
    node_call.refuse(AnsibleModule(**SPECIFICATION))


if __name__ == "__main__":
    main()
