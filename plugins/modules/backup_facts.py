#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: backup_facts
short_description: List the snapshots of a node, and the results of its last backups
version_added: 0.1.0
description:
  - Reads the repository that M(baremetal.inference.backup) has configured on the node. Changes nothing.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  host:
    description: The host name of the snapshots. If empty, O(baremetal.inference.backup#module:host) of the node.
    type: str
    default: ""
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
"""

EXAMPLES = r"""
- name: List the node's snapshots
  baremetal.inference.backup_facts:
  register: __backups
"""

RETURN = r"""
snapshots:
  description: The snapshots, oldest first.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: The snapshot's ID, for the option C(snapshot) of the playbook baremetal.inference.restore.
      type: str
    time:
      description: When the snapshot was made.
      type: str
    host:
      description: The name under which the snapshot is kept.
      type: str
    machine:
      description: The first characters of the machine-id of the host. A reinstalled machine has another machine-id.
      type: str
machine:
  description: The first characters of this machine's machine-id.
  returned: success
  type: str
repository:
  description: The address of the repository.
  returned: success
  type: str
state:
  description: The results of the last backup, prune and check.
  returned: success
  type: dict
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.backup import jobs, repository, restic, restore, state
from ansible_collections.baremetal.inference.plugins.module_utils.backup.places import Places


def main() -> None:
    module = AnsibleModule(argument_spec={"host": {"type": "str", "default": ""}}, supports_check_mode=True)
    places = Places()
    try:
        settings, target = jobs.open_node(places)
        found = [restore.summary(one) for one in target.snapshots(module.params["host"] or settings.host)]
        known = state.read(places)
    except (jobs.NotSetUp, restic.ResticError, ValueError, OSError) as error:
        module.fail_json(msg=str(error))
    machine = Path("/etc/machine-id")
    module.exit_json(
        changed=False,
        snapshots=found,
        machine=machine.read_text(encoding="utf-8").strip()[:8] if machine.exists() else "",
        repository=repository.mask(settings.repository),
        state=known["jobs"],
    )


if __name__ == "__main__":
    main()
