#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: engine_swap
short_description: Start the swap of an instance on its node, and wait for the end of the swap
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Starts a swap like C(inferctl swap). The node takes all steps by itself. It finishes the swap or goes back, even if
    the run of the playbook ends earlier.
  - Continues a swap that was cut off, towards O(release).
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
    description: The instance.
    type: str
    required: true
  run_id:
    description: The ID of the run that swaps.
    type: str
    required: true
  state:
    description:
      - V(begun) starts the swap, and does not wait. A swap to the same release that is under way stays unchanged. If
        the instance serves the release already, only removes a drain that a cut-off update has left.
      - V(awaited) waits up to O(seconds) until the swap of the run has ended or is stuck.
    type: str
    choices: [begun, awaited]
    default: begun
  release:
    description: The number of the release. Required for V(begun).
    type: int
  back:
    description:
      - Whether the swap is a rollback to a release that has served before. Then golden prompts and speed bounds are not
        checked, and another run of the rollback may continue the swap.
    type: bool
    default: false
  pin:
    description:
      - Whether to pin the release, if it proves itself and is not the inventory's, until the inventory changes.
        Otherwise, a pin of another release is removed.
    type: bool
    default: true
  reason:
    description: The reason, which the drain and the pin record.
    type: str
    default: requested by a playbook
  terms:
    description: The terms of the swap. Omitted terms are those of the node.
    type: dict
    default: {}
    suboptions:
      drain_seconds:
        description: How long requests in flight may take to end, in seconds.
        type: int
      watch_seconds:
        description: How long the release is watched before it counts as proven, in seconds.
        type: int
      speed_bound:
        description: The share of the earlier speed that a single request must reach; 0 for no bound.
        type: float
      watch_speed_bound:
        description: The share of the earlier speed that requests of clients must reach while the release is watched.
        type: float
      error_share:
        description: The share of requests that may fail while the release is watched.
        type: float
      force:
        description: Whether to cut requests that do not end in time, and those of an engine that hangs.
        type: bool
      allow_downtime:
        description: Whether the only serving engine of a replica set may be swapped, so that clients may get errors.
        type: bool
      vouched:
        description: Whether the caller has checked that other engines serve. Only used if no gateway answers.
        type: bool
  counted:
    description:
      - The engine's counters at the start of the run, from C(counters) of M(baremetal.inference.engine_facts). The swap
        compares the speed for clients with these counters.
    type: dict
    default: {}
  seconds:
    description: How long V(awaited) waits, in seconds.
    type: int
    default: 20
"""

EXAMPLES = r"""
- name: Begin the swap to release 4
  baremetal.inference.engine_swap:
    name: main
    release: 4
    run_id: 20261121T101500-4f2a

- name: Wait until the swap has ended
  baremetal.inference.engine_swap:
    state: awaited
    name: main
    run_id: 20261121T101500-4f2a
  register: __swap
  until: __swap.ended
  retries: 90
  delay: 0
"""

RETURN = r"""
ended:
  description: Whether the swap has ended, or is stuck. For V(begun), whether there is nothing to swap.
  returned: success
  type: bool
run_id:
  description: The run whose swap is under way. Not O(run_id) if the node continues the swap of an earlier, killed run.
  returned: O(state=begun)
  type: str
outcome:
  description:
    - C(done), the release serves; C(returned), the earlier release serves; C(refused), nothing was changed; C(stuck),
      the instance stays drained; C(unknown), the swap does not run, or has left no report. Empty while the swap is
      under way.
  returned: success
  type: str
step:
  description: The current step of the swap; empty after its end.
  returned: O(state=awaited)
  type: str
words:
  description: Messages for the operator, one line each.
  returned: O(state=awaited)
  type: list
  elements: str
line:
  description: The result of a swap with outcome C(done), for the report.
  returned: success
  type: str
failure:
  description:
    - Why the swap went back, was refused or is stuck. After outcome C(done), why the next swap must not
      start. For example, a gateway did not confirm that it sends requests again, or the bridge could not be removed.
  returned: success
  type: str
permission:
  description:
    - Which of O(terms.force) and O(terms.allow_downtime) would have allowed a refused swap; empty for neither.
  returned: success
  type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import node_call

SPECIFICATION = {
    "argument_spec": {
        "name": {"type": "str", "required": True},
        "run_id": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["begun", "awaited"], "default": "begun"},
        "release": {"type": "int"},
        "back": {"type": "bool", "default": False},
        "pin": {"type": "bool", "default": True},
        "reason": {"type": "str", "default": "requested by a playbook"},
        "terms": {
            "type": "dict",
            "default": {},
            "options": {
                "drain_seconds": {"type": "int"},
                "watch_seconds": {"type": "int"},
                "speed_bound": {"type": "float"},
                "watch_speed_bound": {"type": "float"},
                "error_share": {"type": "float"},
                "force": {"type": "bool"},
                "allow_downtime": {"type": "bool"},
                "vouched": {"type": "bool"},
            },
        },
        "counted": {"type": "dict", "default": {}},
        "seconds": {"type": "int", "default": 20},
    },
    "required_if": [("state", "begun", ["release"])],
    "supports_check_mode": True,
}


def main() -> None:
    node_call.refuse(AnsibleModule(**SPECIFICATION))


if __name__ == "__main__":
    main()
