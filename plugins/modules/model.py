#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: model
short_description: Describe, publish and remove the models in the store of a node
version_added: 0.1.0
description:
  - Compares the store with the models that the node must have, publishes what has arrived, and removes models that no
    release needs. M(baremetal.inference.model_fetch) brings models from the network.
  - A model is verified by SHA-256 and gets its name C(STORE/NAME/REVISION) by one rename, so that a model that is not
    complete can never be served. Models from a directory on the node are copied as well.
  - A published revision is never modified. One that was damaged is replaced as a whole; its intact files are linked, so
    that only the damaged ones are copied again.
  - Internal to this collection; its options may change without notice.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  state:
    description:
      - V(described) describes the models of O(origin) on the machine that the module runs on, by the size and SHA-256
        of their files, and checks that each is complete. It needs no store.
      - V(planned) compares the store with O(models), and says what has to be copied or fetched and whether it fits. It
        returns problems instead of failing.
      - V(present) publishes what is not published yet. What comes from the controller must lie in the incoming
        directory that V(planned) has named.
      - V(absent) removes every revision of O(names), with its fast copies, that no kept release, unit or container
        needs, the newest revision too. What the store has not published itself stays. Where it cannot tell what is
        needed, and where the store lies on a file system that other nodes may have, too, it fails and removes nothing.
    type: str
    choices: [described, planned, present, absent]
    default: present
  store:
    description: The root of the store. Every state but V(described) needs it.
    type: path
  models:
    description: Entries of the model registry by name. Only their keys C(model), C(revision) and C(checksum) are read.
    type: dict
  origin:
    description:
      - Which models V(described) reads, those whose C(model) begins with C(controller:), or those with a path on the
        node. Delegate it to the controller for V(controller).
    type: str
    choices: [controller, node]
    default: node
  manifests:
    description: The manifests of the models from the controller, as V(described) returns them.
    type: dict
    default: {}
  other_space:
    description:
      - Space in GiB that others will take on the node, by directory. What lies on the store's file system is not there
        for models.
    type: dict
    default: {}
  reserve_gib:
    description: Space in GiB that stays free on the store's file system.
    type: float
    default: 0
  cache:
    description:
      - A file that keeps checksums by path, size, modification time and inode, so that a second run reads nothing.
      - Without it every file is read. In check mode it is read, but not written.
    type: path
  verify:
    description: Read every file again, whatever the cache says.
    type: bool
    default: false
  hub_endpoint:
    description: The hub, or a mirror of it, that is asked for the size of a model that has to be fetched.
    type: str
    default: https://huggingface.co
  hub_token:
    description: A token for models behind a licence.
    type: str
    default: ""
  names:
    description: The models that V(absent) removes.
    type: list
    elements: str
    default: []
  everything:
    description:
      - V(absent) removes all models, transfers that were not finished, and the directories, as far as nothing else is
        in them.
    type: bool
    default: false
  fast_path:
    description: The root of the fast copies that V(absent) removes with the models; empty for none.
    type: str
    default: ""
  leaving:
    description:
      - Instances whose releases need nothing any more. In a run outside check mode they are removed before the models.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
seealso:
  - module: baremetal.inference.model_fetch
  - module: baremetal.inference.model_clean
  - module: baremetal.inference.model_fast_copy
"""

EXAMPLES = r"""
- name: Describe the models on the controller
  baremetal.inference.model:
    state: described
    models:
      tiny-a:
        model: controller:/srv/models/tiny-a
    origin: controller
    cache: ~/.cache/baremetal-inference/manifests.json
  delegate_to: localhost
  become: false
  register: described

- name: Compare the store with the models of this node
  baremetal.inference.model:
    state: planned
    store: /mnt/models
    models: "{{ models }}"
    manifests: "{{ described.manifests }}"
  register: plan

- name: Publish what has arrived
  baremetal.inference.model:
    store: /mnt/models
    models: "{{ models }}"
    manifests: "{{ described.manifests }}"

- name: Remove a model that no instance serves
  baremetal.inference.model:
    state: absent
    store: /mnt/models
    names: [qwen3-8b]
"""

RETURN = r"""
manifests:
  description: The manifest of every model without a problem, by name.
  returned: O(state=described)
  type: dict
  sample:
    tiny-a:
      schema: 1
      revision: ab12cd34ef56
      weight_bytes: 1315328
      bytes: 1318123
      files:
        config.json:
          size: 611
          sha256: 0f4e5c…
problems:
  description: Everything that is wrong with the models, each with what was found and what to do.
  returned: O(state=described), O(state=planned) or O(state=present)
  type: list
  elements: str
rsync:
  description: Path of rsync on this machine; empty where it is not installed.
  returned: O(state=described), O(state=planned) or O(state=present)
  type: str
  sample: /usr/bin/rsync
places:
  description: Where each model lies, or will lie, by name; as revision C(REVISION) where one has to be fetched.
  returned: O(state=planned) or O(state=present)
  type: dict
  sample:
    tiny-a:
      path: /mnt/models/tiny-a/ab12cd34ef56
      revision: ab12cd34ef56
      weight_bytes: 1315328
      bytes: 1318123
coming:
  description:
    - The revision of each model that was not in the store yet, or no longer intact, by name; C(REVISION) where it has
      to be fetched.
  returned: O(state=planned) or O(state=present)
  type: dict
  sample:
    tiny-a: ab12cd34ef56
transfers:
  description: The models that are not published yet, or no longer intact.
  returned: O(state=planned) or O(state=present)
  type: list
  elements: dict
  contains:
    name:
      description: The model.
      type: str
    origin:
      description: Where it comes from, C(controller) or C(node).
      type: str
    source:
      description: Its directory there.
      type: str
    incoming:
      description: The directory on the node that the files have to be copied to.
      type: str
    files:
      description: How many files have to be copied.
      type: int
    bytes:
      description: How many bytes have to be copied.
      type: int
    rsync_opts:
      description: Options that let rsync copy these files and nothing else.
      type: list
      elements: str
    summary:
      description: The same for people.
      type: str
    damage:
      description: What is wrong with the published revision; empty where there is none.
      type: list
      elements: str
copies:
  description: The items of RV(transfers) with files to copy from the controller.
  returned: O(state=planned) or O(state=present)
  type: list
  elements: dict
fetches:
  description: The models that have to be fetched from the network first, by M(baremetal.inference.model_fetch).
  returned: O(state=planned) or O(state=present)
  type: list
  elements: dict
  contains:
    name:
      description: The model.
      type: str
    hub:
      description: Whether it comes from a hub, by the client in the engine's image.
      type: bool
    source:
      description: Its URL or its name on the hub.
      type: str
    summary:
      description: The same for people, with the bytes that are needed.
      type: str
remotes:
  description: The models that come from the network, by name.
  returned: O(state=planned) or O(state=present)
  type: dict
  contains:
    key:
      description: Names the content, wherever it is fetched from.
      type: str
    revision:
      description: The revision that is published and intact; empty where none is.
      type: str
freed_gib:
  description: How much space is freed, or would be in check mode, in GiB.
  returned: O(state=absent)
  type: float
removed:
  description: The directories that were removed, or would be in check mode.
  returned: O(state=absent)
  type: list
  elements: str
kept:
  description: What stayed of the models, and what needs it.
  returned: O(state=absent)
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import node_call

SPECIFICATION = {
    "argument_spec": {
        "state": {"type": "str", "choices": ["described", "planned", "present", "absent"], "default": "present"},
        "store": {"type": "path"},
        "models": {"type": "dict"},
        "origin": {"type": "str", "choices": ["controller", "node"], "default": "node"},
        "manifests": {"type": "dict", "default": {}},
        "other_space": {"type": "dict", "default": {}},
        "reserve_gib": {"type": "float", "default": 0},
        "cache": {"type": "path"},
        "verify": {"type": "bool", "default": False},
        "hub_endpoint": {"type": "str", "default": "https://huggingface.co"},
        "hub_token": {"type": "str", "default": "", "no_log": True},
        "names": {"type": "list", "elements": "str", "default": []},
        "everything": {"type": "bool", "default": False},
        "fast_path": {"type": "str", "default": ""},
        "leaving": {"type": "list", "elements": "str", "default": []},
    },
    "required_if": [
        ("state", "described", ("models",)),
        ("state", "planned", ("store", "models")),
        ("state", "present", ("store", "models")),
        ("state", "absent", ("store",)),
    ],
    "supports_check_mode": True,
}


def main() -> None:
    node_call.refuse(AnsibleModule(**SPECIFICATION))


if __name__ == "__main__":
    main()
