#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_status
short_description: Tell how a node stands, in a few words
version_added: 0.1.0
description:
  - Tells what the node's instances run and how they are, its GPUs, what the doctor says, who has its lock, and when it
    was last updated and backed up. Changes nothing. It takes up to 30 seconds where something hangs.
  - A part that cannot be told is null, and RV(errors) says why.
author:
  - The baremetal.inference contributors (@baremetal-inference)
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
"""

EXAMPLES = r"""
- name: See how the node stands
  baremetal.inference.node_status:
  register: __status
"""

RETURN = r"""
time:
  description: When this was, by the node's clock.
  returned: success
  type: str
  sample: "2026-05-01T12:00:00Z"
system:
  description: C(debian), C(kernel) and C(reboot_required).
  returned: success
  type: dict
instances:
  description: The instances as C(inferctl status --json) tells them.
  returned: success
  type: list
  elements: dict
gpus:
  description: How many there are, their driver, memory, the hottest temperature.
  returned: success
  type: dict
doctor:
  description: The C(verdict), and a line for each check that is not V(ok), the worst first.
  returned: success
  type: dict
lock:
  description: Who changes what serves on this node; null for nobody.
  returned: success
  type: dict
updated:
  description: When a release last began to serve; null where none has.
  returned: success
  type: str
backup:
  description:
    - C(since) when the node is to save itself, and its longest C(interval) by schedule in seconds; 0 where it has
      none, null where that is not known.
    - When a backup last C(succeeded), and whether the last one was C(ok), which is null until one has ended.
    - Null altogether where the node was never to save itself.
  returned: success
  type: dict
errors:
  description: Why a part could not be told, by its name.
  returned: success
  type: dict
"""

from datetime import UTC, datetime

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.node import overview
from ansible_collections.baremetal.inference.plugins.module_utils.node.doctor.host import Host


def main() -> None:
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    module.exit_json(changed=False, **overview.gather(Host(Paths()), datetime.now(UTC)))


if __name__ == "__main__":
    main()
