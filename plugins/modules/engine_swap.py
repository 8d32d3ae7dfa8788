#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: engine_swap
short_description: Swap the release of an instance
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Stops the engine, installs unit and environment of the release, and starts it. Requests are not waited for, see
    M(baremetal.inference.engine_drain).
  - The swap is noted on the node before anything is done, so that a run that is cut off can be finished.
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
  release:
    description: The number of the release.
    type: int
    required: true
  state:
    description:
      - V(begun) starts the release, without waiting for the engine's answer. An engine that runs the release is left
        alone.
      - V(proven) marks the release, which has to run, as the one that proved itself, and ends the swap.
    type: str
    choices: [begun, proven]
    default: begun
  pin:
    description:
      - Whether a proven release that is not the inventory's is pinned in its place, until the inventory changes.
        Otherwise a pin of another release is removed.
    type: bool
    default: true
  back:
    description: Whether this is a rollback, which another run of the rollback goes on with.
    type: bool
    default: false
  run_id:
    description: The run that swaps.
    type: str
    default: ""
  reason:
    description: Why a release is pinned.
    type: str
    default: it was asked for
  tokens_per_second:
    description: What M(baremetal.inference.engine_probe) measured, to be kept with the history.
    type: float
"""

EXAMPLES = r"""
- name: Begin the swap to release 4
  baremetal.inference.engine_swap:
    name: main
    release: 4
    run_id: 20261121T101500-4f2a
"""

RETURN = r"""
origin:
  description: The release that ran when the swap began; none where nothing ran.
  returned: O(state=begun)
  type: int
load_seconds:
  description: How long the engine took from its start to its first answer.
  returned: O(state=proven)
  type: float
pinned:
  description: Whether the release is pinned in the place of the inventory's.
  returned: O(state=proven)
  type: bool
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import node_call

SPECIFICATION = {
    "argument_spec": {
        "name": {"type": "str", "required": True},
        "release": {"type": "int", "required": True},
        "state": {"type": "str", "choices": ["begun", "proven"], "default": "begun"},
        "back": {"type": "bool", "default": False},
        "pin": {"type": "bool", "default": True},
        "run_id": {"type": "str", "default": ""},
        "reason": {"type": "str", "default": "it was asked for"},
        "tokens_per_second": {"type": "float", "no_log": False},
    },
    "supports_check_mode": True,
}


def main() -> None:
    node_call.refuse(AnsibleModule(**SPECIFICATION))


if __name__ == "__main__":
    main()
