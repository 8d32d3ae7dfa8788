#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: model_variants
short_description: Check models with a system prompt, or publish them in a node's store
version_added: 0.1.0
description:
  - For every served model with a C(system-prompt), publishes the directory C(STORE/NAME/REVISION). It
    has links to the base's files, the prompt, and the model's chat templates with the prompt in front. The weights
    exist only once.
  - Before anything changes, O(state=checked) reads the files of these models, and refuses every model that cannot
    have a system prompt.
  - A chat template is a program of the model's authors. The module renders and tries it in a container of the engine's
    image, without network and privileges, by the engine's version of Jinja.
  - Never modifies a published revision. An altered revision is replaced as a whole.
  - Internal to this collection; its options may change without notice.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  state:
    description:
      - V(checked) only reads. It fails if a model has no chat template, or if the engine renders the model's chats
        without a template, and names all such models and the remedy. It skips models whose files are not on this
        machine.
      - V(published) tries the template with the prompt, and publishes. It needs O(store), O(places) and O(image).
    type: str
    choices: [checked, published]
    default: published
  origin:
    description:
      - Which models V(checked) reads. V(controller) are those whose C(model) begins with C(controller:), V(node) all
        others.
      - The module reads files of the machine on which it runs. For V(controller), delegate it to the controller.
    type: str
    choices: [controller, node]
    default: node
  store:
    description: The root of the store. V(checked) reads models that are already published there.
    type: path
  places:
    description: The place of each model in the store, as M(baremetal.inference.model) returns it.
    type: dict
  fast_path:
    description:
      - The root of the fast copies, as in M(baremetal.inference.model_fast_copy). Each model with a system prompt
        gets a directory with the same links there. They lead to the base's fast copy if there is one. Empty for none.
    type: str
    default: ""
  image:
    description: The engine's image. The node must have it, except in check mode.
    type: str
extends_documentation_fragment:
  - baremetal.inference.registry
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - If the node does not have the image or the model yet, the revision is returned as C(REVISION).
  diff_mode:
    support: full
seealso:
  - module: baremetal.inference.model
  - module: baremetal.inference.engine_release
requirements:
  - The library of the node tool, from M(baremetal.inference.node_tool).
"""

EXAMPLES = r"""
- name: Check the prompts of the models on the controller
  baremetal.inference.model_variants:
    state: checked
    instances: "{{ instances }}"
    models: "{{ models }}"
    origin: controller
  delegate_to: localhost
  become: false

- name: Publish the models with a system prompt
  baremetal.inference.model_variants:
    store: /mnt/models
    instances: "{{ instances }}"
    models: "{{ models }}"
    places: "{{ model_store_places }}"
    image: "{{ engine_image }}"
  register: variants
"""

RETURN = r"""
checked:
  description: The entries whose models were read.
  returned: O(state=checked), success
  type: list
  elements: str
places:
  description: The current or future directory of each model with a system prompt, by the name of its entry.
  returned: O(state=published), success
  type: dict
  sample:
    support-bot:
      path: /mnt/models/support-bot/0f4e5cab12cd
      revision: 0f4e5cab12cd
published:
  description: The directories that were published, or would be in check mode.
  returned: O(state=published)
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import node_call

SPECIFICATION = {
    "argument_spec": {
        "state": {"type": "str", "choices": ["checked", "published"], "default": "published"},
        "origin": {"type": "str", "choices": ["controller", "node"], "default": "node"},
        "store": {"type": "path"},
        "instances": {"type": "list", "elements": "dict", "required": True},
        "models": {"type": "dict", "required": True},
        "places": {"type": "dict"},
        "fast_path": {"type": "str", "default": ""},
        "image": {"type": "str"},
    },
    "required_if": [("state", "published", ("store", "places", "image"))],
    "supports_check_mode": True,
}


def main() -> None:
    node_call.refuse(AnsibleModule(**SPECIFICATION))


if __name__ == "__main__":
    main()
