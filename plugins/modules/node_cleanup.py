#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: node_cleanup
short_description: Remove unneeded releases, images and logs from a node
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Removes old releases, if O(keep_releases) says how many stay for a rollback.
  - Removes images of our repositories that no kept release and no container needs, containers of ours that do not run,
    and the build cache. Other images stay, and so does every image that a kept release needs.
  - Limits the journal to a size and an age, and rotates logs that are due.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - What the journal would free is foreseen by its files' sizes and ages.
  diff_mode:
    support: none
options:
  images:
    description: Whether to remove images and stopped containers of this collection.
    type: bool
    default: true
  keep:
    description:
      - Further images to keep, such as the inventory's image. Unneeded images of the same repositories are removed.
    type: list
    elements: str
    default: []
  keep_releases:
    description:
      - How many of each instance's releases stay to be rolled back to - the last that served, and the newest. What is
        in use stays in any case. 0 leaves all of them.
    type: int
    default: 0
  build_cache:
    description: Whether to remove the build cache.
    type: bool
    default: true
  logs:
    description: Whether to limit the journal and to rotate logs.
    type: bool
    default: true
  journal_max_mib:
    description: The size that the journal may have, in MiB; 0 for any.
    type: int
    default: 0
  journal_max_days:
    description: The age that the journal's archived files may have, in days; 0 for any.
    type: int
    default: 0
"""

EXAMPLES = r"""
- name: Report what could be removed
  baremetal.inference.node_cleanup:
    journal_max_days: 30
  check_mode: true
"""

RETURN = r"""
freed_gib:
  description: How much space was freed, or would be in check mode, in GiB. Images that share parts count less.
  returned: success
  type: float
freed_bytes:
  description: The same in bytes.
  returned: success
  type: int
lines:
  description: What was removed or rotated, or would be in check mode.
  returned: success
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import node_call

SPECIFICATION = {
    "argument_spec": {
        "images": {"type": "bool", "default": True},
        "keep": {"type": "list", "elements": "str", "default": []},
        "keep_releases": {"type": "int", "default": 0},
        "build_cache": {"type": "bool", "default": True},
        "logs": {"type": "bool", "default": True},
        "journal_max_mib": {"type": "int", "default": 0},
        "journal_max_days": {"type": "int", "default": 0},
    },
    "supports_check_mode": True,
}


def main() -> None:
    node_call.refuse(AnsibleModule(**SPECIFICATION))


if __name__ == "__main__":
    main()
