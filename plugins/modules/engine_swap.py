#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: engine_swap
short_description: Have a node swap the release of an instance, and wait for the end of the swap
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Starts the swap that the node leads by itself, as C(inferctl swap) does. The swap ends by itself, forward or back,
    whatever becomes of the run that has started it.
  - A swap that was cut off is adopted, and goes on towards O(release).
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
    description: The run that swaps.
    type: str
    required: true
  state:
    description:
      - V(begun) starts the swap, and does not wait. A swap of the same run to the same release is left alone.
      - V(awaited) waits until the swap of the run has ended or is stuck, for O(seconds) at most.
    type: str
    choices: [begun, awaited]
    default: begun
  release:
    description: The number of the release. Required for V(begun).
    type: int
  back:
    description:
      - Whether the release has served before. Then neither golden prompts nor bounds of speed judge it, and another run
        of the rollback goes on with it.
    type: bool
    default: false
  pin:
    description:
      - Whether a proven release that is not the inventory's is pinned in its place, until the inventory changes.
        Otherwise a pin of another release is removed.
    type: bool
    default: true
  reason:
    description: What for, in words. For the drain, and for the pin.
    type: str
    default: it was asked for
  terms:
    description: The terms of the swap. What is left out is as the node keeps it.
    type: dict
    default: {}
    suboptions:
      drain_seconds:
        description: How long requests at work may take to end, in seconds.
        type: int
      watch_seconds:
        description: How long the release is watched before it counts as proven, in seconds.
        type: int
      speed_bound:
        description: The share of the speed of before that one request alone has to get; 0 for no bound.
        type: float
      watch_speed_bound:
        description: The same for a request of the clients, while the release is watched.
        type: float
      error_share:
        description: The share of requests that may fail while the release is watched.
        type: float
      force:
        description: Whether requests are cut that do not end in time.
        type: bool
      allow_downtime:
        description: Whether clients may see that the only engine of a replica set is away.
        type: bool
      vouched:
        description: Whether the caller knows that others serve. Counts only where the node has no gateway to ask.
        type: bool
  counted:
    description:
      - What the engine had counted when the run began, as C(counters) of M(baremetal.inference.engine_facts) has it. By
        that, its speed under the load of its clients is compared.
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
  description: Whether the swap has ended, or is stuck. Of V(begun), whether there is nothing to swap.
  returned: success
  type: bool
run_id:
  description: The run whose swap is under way. Another one than O(run_id) where that was killed, and the node goes on.
  returned: O(state=begun)
  type: str
outcome:
  description:
    - C(done), the release serves; C(returned), the release before serves again; C(refused), nothing was touched;
      C(stuck), requests stay away. Empty while the swap is under way.
  returned: success
  type: str
step:
  description: The step that the swap is at; empty where it has ended.
  returned: O(state=awaited)
  type: str
words:
  description: What the operator should read, a line each.
  returned: O(state=awaited)
  type: list
  elements: str
line:
  description: What a swap that is done has brought, for the report.
  returned: success
  type: str
failure:
  description:
    - Why the swap went back, was refused or is stuck. Of a swap that is done, why no other one may follow - a gateway
      has not told that it sends requests again, or the bridge could not be removed.
  returned: success
  type: str
permission:
  description:
    - Which of O(terms.force) and O(terms.allow_downtime) would have let a swap go on that was refused. Empty where
      neither.
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
        "reason": {"type": "str", "default": "it was asked for"},
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
