#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: trial
short_description: Keep or undo a change that another module has put on trial
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Ends what M(baremetal.inference.ssh_server) or M(baremetal.inference.admin_accounts) began with C(phase=trial).
  - Internal to this collection; its options may change without notice.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  name:
    description: What is on trial.
    type: str
    choices: [admins, ssh]
    required: true
  phase:
    description:
      - V(confirm) makes the change permanent, and fails where the old state is back already. V(rollback) brings the old
        state back at once.
    type: str
    choices: [confirm, rollback]
    required: true
"""

EXAMPLES = r"""
- name: Keep the SSH server's new configuration
  baremetal.inference.trial:
    name: ssh
    phase: confirm
"""

RETURN = r"""
"""

import subprocess

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.debian.trial import Trial, TrialError


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "choices": ["admins", "ssh"], "required": True},
            "phase": {"type": "str", "choices": ["confirm", "rollback"], "required": True},
        },
        supports_check_mode=True,
    )
    trial = Trial(module.params["name"])
    changed = trial.pending
    if not module.check_mode:
        try:
            if module.params["phase"] == "confirm":
                trial.confirm()
            else:
                changed = trial.rollback()
        except (TrialError, OSError, subprocess.TimeoutExpired) as error:
            module.fail_json(msg=str(error))
    module.exit_json(changed=changed)


if __name__ == "__main__":
    main()
