#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: node_lock
short_description: Take or release the lock of a node
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - A playbook that swaps or restarts engines, or reboots a node in use, must hold the node's lock. Recovery does
    nothing while a run holds it.
  - The lock is stale if its run does not renew it within O(seconds). The next run of the same playbook adopts a stale
    lock, or the lock of a run that was killed on the same controller. Any other run is refused, unless O(take) names
    the run that holds the lock.
  - Internal to this collection; its options may change without notice.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  state:
    description:
      - V(held) takes the lock, or renews it.
      - V(released) releases the lock. A lock of another run stays.
      - V(free) changes nothing, and fails while any run holds a valid lock.
    type: str
    choices: [held, released, free]
    default: held
  run_id:
    description: The ID of this run. Required for V(held) and V(released).
    type: str
  playbook:
    description: The playbook's name. Required for V(held).
    type: str
  user:
    description: The operator.
    type: str
    default: unknown
  host:
    description: The controller.
    type: str
    default: unknown
  process:
    description: The run's process on the controller. The action plugin sets this option.
    type: str
    default: ""
  seconds:
    description: After how many seconds without a renewal the lock is stale.
    type: int
    default: 300
  take:
    description: The ID of a run whose lock is taken over, even if it is not stale.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Take the node's lock
  baremetal.inference.node_lock:
    run_id: 20261121T101500-4f2a
    playbook: baremetal.inference.update_model
    user: mira
    host: admin1

- name: Refuse while another run changes what serves here
  baremetal.inference.node_lock:
    state: free
"""

RETURN = r"""
adopted:
  description: The ID of the earlier run whose stale lock, or whose lock by O(take), this run has adopted; else empty.
  returned: success
  type: str
holder:
  description: The run that holds the lock, with O(run_id), O(playbook) and O(process).
  returned: if another run holds the lock
  type: dict
"""

from dataclasses import asdict
from datetime import UTC, datetime

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import lock
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.drains import format_time


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["held", "released", "free"], "default": "held"},
            "run_id": {"type": "str"},
            "playbook": {"type": "str"},
            "user": {"type": "str", "default": "unknown"},
            "host": {"type": "str", "default": "unknown"},
            "process": {"type": "str", "default": ""},
            "seconds": {"type": "int", "default": 300},
            "take": {"type": "str", "default": ""},
        },
        required_if=[("state", "held", ["run_id", "playbook"]), ("state", "released", ["run_id"])],
        supports_check_mode=True,
    )
    given = module.params
    now = datetime.now(UTC)
    changed, adopted = False, None
    try:
        if given["state"] == "free":
            lock.refuse_while_held(Paths(), now)
        elif given["state"] == "released":
            changed = lock.release(Paths(), given["run_id"], check=module.check_mode)
        else:
            wanted = lock.Lock(
                run_id=given["run_id"],
                user=given["user"],
                host=given["host"],
                playbook=given["playbook"],
                process=given["process"],
                since=format_time(now),
                until=lock.until(now, given["seconds"]),
            )
            changed, adopted = lock.take(Paths(), wanted, now, given["take"], check=module.check_mode)
    except lock.Locked as refused:
        module.fail_json(msg=str(refused), holder=asdict(refused.holder))
    except (OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=changed, adopted=adopted.run_id if adopted else "")


if __name__ == "__main__":
    main()
