#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: engine_facts
short_description: Read a node's instances, which of them are due for another release, and their counters
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Reads every instance that has a release or a desired state on the node, whether the inventory declares it or not.
  - Changes nothing.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - Reads in check mode, too.
  diff_mode:
    support: none
options:
  gather_subset:
    description:
      - What to read.
      - V(instances) is the state of each instance. V(update) compares the running release of each instance with the
        release that it must run, and checks that the node has all files of that release. V(counters) reads each
        engine's counters.
      - V(all) is everything, V(min) nothing. An exclamation mark leaves a subset out. If the list has only
        such items, all remaining subsets of V(all) are read.
    type: list
    elements: str
    default: [instances]
    choices: [all, min, instances, '!instances', update, '!update', counters, '!counters']
  names:
    description:
      - The instances for V(update) and V(counters). If omitted, all instances of the node. V(instances) always reads
        all.
    type: list
    elements: str
  targets:
    description:
      - The release that each instance must run, by the instance's name. It overrides the inventory's and a pinned
        release.
      - Used by V(update), like all options below.
    type: dict
    default: {}
  rollback:
    description:
      - Whether the instances must run the release that served before, or O(release).
    type: bool
    default: false
  release:
    description: The release to roll back to.
    type: int
  unstaged:
    description:
      - C(releases) as M(baremetal.inference.engine_release) returned them. Needed in check mode, because that module
        has then staged nothing.
    type: list
    elements: dict
    default: []
  ask_engine:
    description:
      - For a due release that has not served yet, whether to check in the release's image that the engine accepts the
        release's arguments. This starts no engine and reads no weights, but takes some seconds.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Read which instances the node has
  baremetal.inference.engine_facts:
  register: __engines

- name: Read which releases are due
  baremetal.inference.engine_facts:
    gather_subset: [update]
    names: [main]

- name: Read the counters of the engine
  baremetal.inference.engine_facts:
    gather_subset: [counters]
    names: [main]
  register: __counted
"""

RETURN = r"""
instances:
  description: The state of each instance.
  returned: if V(instances) is gathered
  type: list
  elements: dict
  contains:
    name:
      description: The instance's name.
      type: str
    model:
      description: The model of the release; empty if unknown.
      type: str
    release:
      description: The active release; null before the first start.
      type: int
    serving:
      description: Whether the instance is serving, see docs/glossary.md.
      type: bool
    running:
      description: Whether systemd runs or starts the unit.
      type: bool
    swapping:
      description: Whether a swap is under way, stuck, or was cut off.
      type: bool
    drained_by:
      description: The owner of the drain; empty if the instance is not drained.
      type: str
    drain_reason:
      description: The reason of the drain.
      type: str
    load_seconds:
      description: How long the engine took to load, in seconds; null if unknown.
      type: float
    endpoints:
      description:
        - The endpoint of the running release, and during a swap the endpoints of both releases. Empty if no release
          runs.
      type: list
      elements: dict
      contains: &endpoint
        address:
          description: The address that the engine listens on.
          type: str
        port:
          description: The port.
          type: int
        marks:
          description: The key marks of the accepted API keys; empty if the engine needs no key.
          type: list
          elements: str
    adapters:
      description: The names of the LoRA adapters that the active release serves.
      type: list
      elements: str
    tasks:
      description:
        - The tasks of the active release's model, such as V(generate) or V(embed); empty if they are not certain.
      type: list
      elements: str
    gang: &gang
      description: The nodes of an instance over several nodes, the leader first; empty for an instance on one node.
      type: list
      elements: str
bridges:
  description: The instances that have a bridge.
  returned: if V(instances) is gathered
  type: list
  elements: str
updates:
  description: The running and the target release of each instance.
  returned: if V(update) is gathered
  type: list
  elements: dict
  contains:
    name:
      description: The instance.
      type: str
    model:
      description: The model of the target release.
      type: str
    origin:
      description:
        - The active release; while a swap is on record, the release before the swap. Null before the first start.
      type: int
    target:
      description:
        - The release that the instance must run. Null if the inventory does not declare the instance, or if a rollback
          has no earlier release.
      type: int
    due:
      description:
        - Whether the instance needs a swap to the target, because another release is active, or because
          RV(updates[].interrupted) is true.
      type: bool
    interrupted:
      description:
        - Whether a swap is on record (under way, stuck or cut off), or an update was cut off before the swap and has
          left its drain.
      type: bool
    serving:
      description: Whether the instance is serving, see docs/glossary.md.
      type: bool
    load_seconds:
      description:
        - How long the target release took to load last time, in seconds. For a target that has not served yet, the time
          of the running release, in proportion longer if the new model is larger. Null if unknown.
      type: float
    drained_by:
      description: The owner of the drain; empty if the instance is not drained.
      type: str
    drained_until:
      description: When the drain ends by itself; empty for never.
      type: str
    runs:
      description: Model, revision and image of the target release, as one text that can be compared between nodes.
      type: str
    bridge:
      description: The bridge that could serve while the instance is swapped.
      type: dict
      contains:
        name:
          description: The bridge's name, for other modules.
          type: str
        port:
          description: The bridge's port; null if the inventory declares no C(bridge_port).
          type: int
        gpus:
          description: The bridge's GPUs.
          type: list
          elements: str
        left:
          description: Whether a cut-off update has left a bridge, or parts of a bridge.
          type: bool
        certain:
          description:
            - Whether the result of the check is certain. It is not in check mode for a release that is not staged.
          type: bool
        problem:
          description: Why no bridge is possible; empty if it is.
          type: str
    problems:
      description: Why the instance cannot run the target release.
      type: list
      elements: str
    coming:
      description: The endpoint of a due target release, if it differs from the running release's endpoint. Else null.
      type: dict
      contains: *endpoint
    gang: *gang
counters:
  description:
    - The counters of each engine, by the name of its instance; empty if the engine does not answer or has no counters.
      From two readings, M(baremetal.inference.engine_swap) calculates the engine's speed for its clients in between.
  returned: if V(counters) is gathered
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import node_call
from ansible_collections.baremetal.inference.plugins.module_utils.core.gather_subset import choices

SUBSETS = ("instances", "update", "counters")


SPECIFICATION = {
    "argument_spec": {
        "gather_subset": {"type": "list", "elements": "str", "default": ["instances"], "choices": choices(SUBSETS)},
        "names": {"type": "list", "elements": "str"},
        "targets": {"type": "dict", "default": {}},
        "rollback": {"type": "bool", "default": False},
        "release": {"type": "int"},
        "unstaged": {"type": "list", "elements": "dict", "default": []},
        "ask_engine": {"type": "bool", "default": False},
    },
    "supports_check_mode": True,
}


def main() -> None:
    node_call.refuse(AnsibleModule(**SPECIFICATION))


if __name__ == "__main__":
    main()
