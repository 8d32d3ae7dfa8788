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
  - Removes old releases, if O(keep_releases) is above 0. With O(images) or O(keep_releases), also removes copied files
    of flags that no kept release names.
  - Removes stopped containers of this collection, and the build cache.
  - Removes images that neither a kept release nor a container needs, if they are from the repository of a release's
    image or of O(keep). Also removes images without a name. All other images stay.
  - Limits the journal to a size and an age, and rotates logs that are due.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - Computes from the sizes and ages of the journal's files how much space journald would free.
  diff_mode:
    support: none
options:
  images:
    description: Whether to remove images and stopped containers of this collection.
    type: bool
    default: true
  keep:
    description:
      - Further images to keep, such as the inventory's image. The module removes other images of the same repositories.
    type: list
    elements: str
    default: []
  keep_releases:
    description:
      - The number of releases of each instance to keep for rollbacks. The module keeps as many of the releases that
        served last, and as many of the newest. Releases in use always stay. 0 keeps all releases.
    type: int
    default: 0
  build_cache:
    description: Whether to remove the build cache. Used only with O(images).
    type: bool
    default: true
  logs:
    description: Whether to limit the journal and to rotate logs.
    type: bool
    default: true
  journal_max_mib:
    description: The largest size of the journal's archived files, in MiB; 0 for no limit.
    type: int
    default: 0
  journal_max_days:
    description: The highest age of the journal's archived files, in days; 0 for no limit.
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
  description: The freed space, or in check mode the space to free, in GiB. Layers that images share do not count.
  returned: success
  type: float
freed_bytes:
  description: The freed space in bytes.
  returned: success
  type: int
lines:
  description: What was removed or rotated, or would be in check mode, one line each.
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
