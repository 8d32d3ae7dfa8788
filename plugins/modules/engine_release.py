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
  - Renders a release (unit, container command and environment) of every declared instance and keeps it on the node
    under C(/var/lib/inference/releases/NAME/N), unless a release that runs the same is kept already.
  - Nothing is started, stopped or restarted. An instance that serves another release than the desired one is reported
    as pending.
  - A kept release that is damaged is warned of and left out; state files that are damaged are written anew.
  - Desired state is written to C(/etc/inference), and each instance gets the directory of its compile cache.
  - Internal to this collection; its options may change without notice.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  gpus:
    description:
      - The node's GPUs, as the fact C(gpus) of M(baremetal.inference.gpu_facts). Those that an instance only counts
        are chosen among them. Before the driver works, only their number counts.
      - If omitted, the node is asked where an instance runs on GPUs.
    type: list
    elements: dict
  places:
    description:
      - Where the store keeps each model, by the registry's name, with the keys C(path) and C(revision). An entry with a
        system prompt is looked up by its own name, as M(baremetal.inference.model_variants) returns it.
    type: dict
    required: true
  desired:
    description:
      - Whether this is what the inventory asks for. Otherwise releases are only kept, to be switched to once.
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
      - Secrets are left out.
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
  description: Whether anything was to be staged or written, also where the task itself must not report a change.
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
      description: Where its files are, or will be.
      type: str
    release:
      description: The number of the desired release.
      type: int
    active:
      description: The release whose unit is installed; none before the first start.
      type: int
    state:
      description: What systemd says of the unit, such as C(active), C(activating), C(failed) or C(inactive).
      type: str
    pending:
      description: Whether another release serves than the desired one, or the one that is pinned in its place.
      type: bool
    wanted:
      description: The release to run, which is the desired one or the one that is pinned in its place.
      type: int
    pin:
      description: Which release is pinned in the place of the desired one, since when and why; empty for none.
      type: str
    differences:
      description: What differs between the release that serves and the desired one.
      type: list
      elements: str
orphans:
  description: Instances found on the node that the inventory does not declare as present.
  returned: success
  type: list
  elements: str
bridges:
  description: Engines that stood in for an instance during an update that was cut off.
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
