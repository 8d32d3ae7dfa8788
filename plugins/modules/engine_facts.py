#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: engine_facts
short_description: Which instances a node has, and how they stand
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Tells of every instance that has a release or a desired state on the node, whether the inventory declares it or not.
    Changes nothing, and needs nothing on the node.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options: {}
"""

EXAMPLES = r"""
- name: See what is on the node
  baremetal.inference.engine_facts:
  register: __engines
"""

RETURN = r"""
instances:
  description: The instances.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The instance's name.
      type: str
    model:
      description: What it serves, or shall serve; empty where nobody knows.
      type: str
    release:
      description: The release that is installed; none before the first start.
      type: int
    serving:
      description: Whether clients get answers.
      type: bool
    running:
      description: Whether systemd runs it, or brings it up.
      type: bool
    swapping:
      description: Whether an update is at it, or was when it was cut off.
      type: bool
    drained_by:
      description: Who has drained it; empty where nobody has.
      type: str
    drain_reason:
      description: What for.
      type: str
    load_seconds:
      description: How long it took to load; none where nobody knows.
      type: float
bridges:
  description: Engines that stand in for an instance during an update, by the name of that.
  returned: success
  type: list
  elements: str
"""

from dataclasses import asdict
from datetime import UTC, datetime

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import bridges
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import bridged_instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import install_state, releases


def main() -> None:
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    paths, now = Paths(), datetime.now(UTC)
    try:
        names = bridges.instances(paths)
        found = [asdict(install_state.of(paths, name, now)) for name in names]
    except (systemd.SystemdError, OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(
        changed=False,
        instances=found,
        bridges=[bridged for name in releases.names(paths) if (bridged := bridged_instance(name))],
    )


if __name__ == "__main__":
    main()
