#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: engine_facts
short_description: Read which instances a node has, which are due for another release, and what they have counted
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Reads every instance that has a release or a desired state on the node, whether the inventory declares it or not.
  - Changes nothing, and needs nothing on the node.
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
      - V(instances) is the state of each instance; V(update) compares what each instance runs with what it must run,
        and checks that the node has all of that; V(counters) asks each engine for what it has counted.
      - V(all) is everything, V(min) nothing. An exclamation mark leaves one out, of V(all) where nothing else is given.
    type: list
    elements: str
    default: [instances]
    choices: [all, min, instances, '!instances', update, '!update', counters, '!counters']
  names:
    description:
      - The instances that V(update) and V(counters) read; all of the node where this is omitted.
      - V(instances) always reads all of them.
    type: list
    elements: str
  targets:
    description:
      - The release that each instance must run, by its name, in the place of the inventory's or of a pinned release.
      - Used by V(update), as are all options below.
    type: dict
    default: {}
  rollback:
    description:
      - Whether the instances go back to the release that they served with before, or to O(release).
    type: bool
    default: false
  release:
    description: The release to roll back to.
    type: int
  unstaged:
    description:
      - What M(baremetal.inference.engine_release) returned as C(releases). In check mode that module has kept nothing,
        and the target is only known from there.
    type: list
    elements: dict
    default: []
  ask_engine:
    description:
      - Whether the image of a release that is due, and has not served yet, is asked if it takes the arguments. The
        image starts nothing and reads no weights, but takes some seconds.
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

- name: Read what the engine has counted
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
      description: The model that it serves, or has to serve; empty where that is not known.
      type: str
    release:
      description: The release that is installed; none before the first start.
      type: int
    serving:
      description: Whether clients get answers.
      type: bool
    running:
      description: Whether systemd runs it, or starts it.
      type: bool
    swapping:
      description: Whether an update swaps it, or did when the update was cut off.
      type: bool
    drained_by:
      description: The owner of its drain; empty where it is not drained.
      type: str
    drain_reason:
      description: The reason of its drain.
      type: str
    load_seconds:
      description: How long it took to load; none where that is not known.
      type: float
    endpoints:
      description:
        - What it is reached by - of the release that runs, and of both releases of a swap. None where nothing runs.
      type: list
      elements: dict
      contains: &endpoint
        address:
          description: The address that it listens on.
          type: str
        port:
          description: The port.
          type: int
        marks:
          description: What tells the keys that it accepts apart, without telling a key; none where it needs no key.
          type: list
          elements: str
bridges:
  description: The instances that have a bridge, an engine that serves in their place during an update.
  returned: if V(instances) is gathered
  type: list
  elements: str
updates:
  description: What each instance runs and must run.
  returned: if V(update) is gathered
  type: list
  elements: dict
  contains:
    name:
      description: The instance.
      type: str
    model:
      description: The model of the release that it must run.
      type: str
    origin:
      description:
        - The release that it runs; of a swap that was cut off, the release that ran before. None before the first
          start.
      type: int
    target:
      description: The release that it must run; none for an instance that the inventory does not declare.
      type: int
    due:
      description: Whether it runs another release, or a swap was cut off.
      type: bool
    interrupted:
      description: Whether a swap was cut off.
      type: bool
    serving:
      description: Whether it answers, as systemd and the node's agent see it.
      type: bool
    load_seconds:
      description:
        - How long the target took to load when it last did. For a target that has not served yet, what the release that
          runs took, and for more bytes of another model in proportion longer; none where these are not known.
      type: float
    drained_by:
      description: The owner of its drain; empty where it is not drained.
      type: str
    drained_until:
      description: When the drain ends by itself; empty for never.
      type: str
    runs:
      description: What the target runs, by model, revision and image; the same on all nodes where it is the same.
      type: str
    bridge:
      description: The engine that could serve in its place while it is swapped.
      type: dict
      contains:
        name:
          description: By which name other modules know the bridge.
          type: str
        port:
          description: Where it would listen; none where the inventory declares no C(bridge_port).
          type: int
        gpus:
          description: The GPUs that it would get.
          type: list
          elements: str
        left:
          description: Whether an update has left a bridge, or parts of one.
          type: bool
        certain:
          description:
            - Whether it is known that the bridge fits. In check mode it is not, for a release that is not staged.
          type: bool
        problem:
          description: Why there can be no bridge; empty where there can.
          type: str
    problems:
      description: Why it cannot run the target.
      type: list
      elements: str
    coming:
      description: What the target is reached by, where it is due and that differs from what runs. None otherwise.
      type: dict
      contains: *endpoint
counters:
  description:
    - What each engine has counted, by the name of its instance; empty where the engine does not answer, or does not
      count. From two of these, M(baremetal.inference.engine_swap) works out how fast an engine answered its clients
      between them.
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
