#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: backup_prune
short_description: Remove old snapshots of a node that cannot delete its own
version_added: 0.2.0
description:
  - Runs restic on the machine on which the module runs, which must not be the node. Use the module for nodes with
    C(append_only) of M(baremetal.inference.backup).
  - Removes the snapshots of O(host) that are more than O(keep_within) older than the host's last snapshot, and data
    that no other snapshot uses.
  - Before a removal, reads all data of the repository, and fails if the repository is damaged. If no
    snapshot is that old, nothing is read or removed.
  - Does not count snapshots. An intruder on the node can add snapshots with any date, and a rule that counts would then
    remove the good ones.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  repository:
    description: The repository, as a C(sftp:), C(s3:) or C(rest:) address in restic's form, or a directory.
    type: str
    required: true
  password:
    description: The password that encrypts the repository.
    type: str
    required: true
  environment:
    description: Credentials that may delete, as restic's variables.
    type: dict
    default: {}
  sftp_key:
    description: The private key for SFTP. If empty, the user's keys are used.
    type: str
    default: ""
  known_hosts:
    description: The server's host keys for SFTP, as lines of C(known_hosts). If empty, the user's file is used.
    type: list
    elements: str
    default: []
  ca_file:
    description: The certificate on this machine that verifies the server's certificate.
    type: str
    default: ""
  host:
    description: The name under which the snapshots are kept.
    type: str
    required: true
  keep_within:
    description: The time before the last snapshot in which all snapshots stay, such as V(1y), V(6m) or V(90d).
    type: str
    required: true
  lock_minutes:
    description: How long to wait for the job of a node that locks the repository, in minutes.
    type: int
    default: 30
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
"""

EXAMPLES = r"""
- name: Remove the node's snapshots that are older than a year
  baremetal.inference.backup_prune:
    repository: rest:https://backup.example.com:8001/gpu1
    password: "{{ vault_backup_password }}"
    environment:
      RESTIC_REST_USERNAME: admin
      RESTIC_REST_PASSWORD: "{{ vault_backup_admin_password }}"
    host: gpu1
    keep_within: 1y
  delegate_to: localhost
"""

RETURN = r"""
removed:
  description: The IDs of the removed snapshots; in check mode, of those that would be removed.
  returned: success
  type: list
  elements: str
kept:
  description: The IDs of the other snapshots, oldest first.
  returned: success
  type: list
  elements: str
ahead:
  description: The IDs of kept snapshots that are dated in the future, by a wrong clock of the node or by an intruder.
  returned: success
  type: list
  elements: str
"""

import tempfile
import time
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.backup import elsewhere, ensure, repository, restic
from ansible_collections.baremetal.inference.plugins.module_utils.backup.settings import ACCESS

ARGUMENTS = {
    "repository": {"type": "str", "required": True},
    "password": {"type": "str", "required": True, "no_log": True},
    **ACCESS,
    "host": {"type": "str", "required": True},
    "keep_within": {"type": "str", "required": True},
    "lock_minutes": {"type": "int", "default": 30},
}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    params = module.params
    found = [
        *repository.environment_problems(params["environment"], "backup_prune_environment"),
        elsewhere.duration_problem(params["keep_within"]),
    ]
    try:
        repository.parse(params["repository"])
    except ValueError as error:
        found.append(f"backup_prune_repository: {error}")
    if any(found):
        module.fail_json(msg="Nothing was pruned.\n- " + "\n- ".join(filter(None, found)))
    try:
        with tempfile.TemporaryDirectory(prefix="backup-") as name:
            target = restic.Restic(ensure.access(params, Path(name)))
            done = elsewhere.prune(
                target,
                params["host"],
                params["keep_within"],
                params["lock_minutes"],
                time.time(),
                check=module.check_mode,
            )
    except restic.ResticError as error:
        messages = {
            restic.NOT_THERE: "restic is not installed on this machine: install the package restic",
            restic.UNREACHABLE: f"{error}. The credentials are those of backup_prune_environment, for the server of"
            " backup_prune_repository",
        }
        module.fail_json(msg=messages.get(error.kind, str(error)))
    except (ValueError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(done["removed"]), **done)


if __name__ == "__main__":
    main()
