#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: model_clean
short_description: Remove superseded models and leftovers from a node's store
version_added: 0.1.0
description:
  - Removes superseded revisions of models, unless they are still needed. A kept release (for a rollback), an installed
    unit, a container, the node's model registry, O(models) or a variant may need a revision.
  - Also removes their fast copies, transfers without progress for a day, and damaged revisions that were replaced.
  - If the needed revisions cannot be determined, the module fails and removes nothing. It also fails if other nodes may
    have the store's file system, too, such as NFS. Directories that the store did not publish stay.
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
    description: The number of newest revisions of each model that stay even if nothing needs them; 1 or more.
    type: int
    default: 2
  keep_releases:
    description:
      - The number of releases of each instance that M(baremetal.inference.node_cleanup) keeps. Revisions that only
        other releases need are removed. 0 keeps all.
    type: int
    default: 0
  models:
    description: Entries of the model registry by name. The pinned revision of an entry, or else the newest, stays.
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
- name: List what could be removed
  baremetal.inference.model_clean:
    store: /mnt/models
    fast_path: /mnt/nvme/workspace/models
    keep: 2
  check_mode: true
  register: cleaned
"""

RETURN = r"""
freed_gib:
  description: The space that was freed, or would be in check mode, in GiB.
  returned: success
  type: float
  sample: 141.2
freed:
  description: The directories that were removed, or would be in check mode.
  returned: success
  type: list
  elements: dict
  contains: &item
    path:
      description: The directory.
      type: str
    gib:
      description: The size in GiB.
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
  description: The same results as text for operators.
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
