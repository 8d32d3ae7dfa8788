#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: engine_release
short_description: Stage the releases of a node's engines
version_added: 0.1.0
description:
  - Renders a release (unit, container command and environment) of every declared instance. Stages the release in
    C(/var/lib/inference/releases/NAME/N) on the node, unless an identical release is already staged.
  - Starts, stops and restarts nothing. An instance that serves another release than RV(releases[].wanted) is reported
    as pending.
  - Warns of a damaged release and ignores it. Damaged state files are written again.
  - Writes the desired state to C(/etc/inference), and creates the directory of each instance's compile cache.
  - Internal to this collection; its options may change without notice.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  gpus:
    description:
      - The node's GPUs, as the fact C(gpus) of M(baremetal.inference.gpu_facts). For an instance that declares a number
        of GPUs, the module chooses among them. Before the driver works, only their number is used.
      - If omitted, and if an instance needs GPUs, the module reads the node's GPUs.
    type: list
    elements: dict
  places:
    description:
      - The place of each model in the store, by the name of its entry, with the keys C(path) and C(revision). An
        entry with a system prompt has a place of its own, as M(baremetal.inference.model_variants) returns it.
    type: dict
    required: true
  desired:
    description:
      - Whether the input is the inventory's. Otherwise, releases are only staged, for one update with another model.
    type: bool
    default: true
extends_documentation_fragment:
  - baremetal.inference.engine
  - baremetal.inference.registry
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details:
      - Secrets are not shown.
"""

EXAMPLES = r"""
- name: Stage the releases of this node
  baremetal.inference.engine_release:
    instances: "{{ instances }}"
    models: "{{ models }}"
    places: "{{ model_store_places }}"
    image: registry.example.com/vllm@sha256:0f4e5c…
    user: inference
    settings:
      address: 127.0.0.1
      start_timeout: 1800
"""

RETURN = r"""
due:
  description: Whether anything was staged or written, or would be. Unlike C(changed), not hidden by C(changed_when).
  returned: success
  type: bool
releases:
  description: The desired release of every instance that is declared as present.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The instance.
      type: str
    model:
      description: The model of the desired release.
      type: str
    model_path:
      description: The directory of the model's files, which may not exist yet.
      type: str
    release:
      description: The number of the desired release.
      type: int
    active:
      description: The active release; null before the first start.
      type: int
    state:
      description: The unit's state in systemd, such as C(active), C(activating), C(failed) or C(inactive).
      type: str
    pending:
      description: Whether another release serves than RV(releases[].wanted).
      type: bool
    staged:
      description:
        - Whether RV(releases[].wanted) is on the node. In check mode, a release that a real run would stage is not.
      type: bool
    wanted:
      description: The release to run, which is the pinned one, or else the desired one.
      type: int
    pin:
      description: The pinned release, with time and reason of the pin; empty for none.
      type: str
    differences:
      description: The differences between the serving and the desired release; empty unless RV(releases[].pending).
      type: list
      elements: str
orphans:
  description: Instances found on the node that the inventory does not declare as present.
  returned: success
  type: list
  elements: str
bridges:
  description: The bridges that no update uses, because an update was cut off or could not remove them.
  returned: success
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import node_call
from ansible_collections.baremetal.inference.plugins.module_utils.engine.arguments import ARGUMENTS

SPECIFICATION = {
    "argument_spec": {
        **ARGUMENTS,
        "gpus": {"type": "list", "elements": "dict"},
        "places": {"type": "dict", "required": True},
        "desired": {"type": "bool", "default": True},
    },
    "supports_check_mode": True,
}


def main() -> None:
    node_call.refuse(AnsibleModule(**SPECIFICATION))


if __name__ == "__main__":
    main()
