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
  - Compares the store with the models that the node must have, publishes models whose files are on the node, and
    removes models that no release needs. M(baremetal.inference.model_fetch) fetches models from the network.
  - Verifies a model by SHA-256, and publishes it as C(STORE/NAME/REVISION) by one rename. An incomplete model can never
    be served. Models from a directory on the node are copied as well.
  - Never modifies a published revision. A damaged revision is replaced as a whole. Its intact files are linked, so that
    only damaged files are copied again.
  - Internal to this collection; its options may change without notice.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  state:
    description:
      - V(described) reads size and SHA-256 of the files of the models of O(origin), on the machine on which the module
        runs, and checks that each model is complete. It needs no store.
      - V(planned) compares the store with O(models), and returns what must be copied or fetched, and whether it fits.
        It returns problems instead of failing.
      - V(present) publishes models that are not published yet. Files from the controller must be in the incoming
        directory that V(planned) has returned.
      - V(absent) removes all revisions of O(names), also the newest, with their fast copies, unless a kept release, a
        unit or a container needs them. Directories that the store did not publish stay.
      - V(absent) fails and removes nothing if the needed revisions cannot be determined, or if other nodes may have the
        store's file system, too.
    type: str
    choices: [described, planned, present, absent]
    default: present
  store:
    description: The root of the store. Required for every state but V(described).
    type: path
  models:
    description:
      - Entries of the model registry by name. Only their keys C(model), C(revision), C(checksum) and C(adapter) are
        read.
    type: dict
  origin:
    description:
      - Which models V(described) reads. V(controller) are those whose C(model) begins with C(controller:), V(node)
        those with a path on the node. For V(controller), delegate the module to the controller.
    type: str
    choices: [controller, node]
    default: node
  manifests:
    description: The manifests of the models from the controller, as V(described) returns them.
    type: dict
    default: {}
  other_space:
    description:
      - Space in GiB that other roles will need on the node, by directory. Space on the store's file system is not
        available for models.
    type: dict
    default: {}
  reserve_gib:
    description: Space in GiB to keep free on the store's file system.
    type: float
    default: 0
  cache:
    description:
      - A file with checksums by path, size, modification time and inode, so that a second run reads no file again.
      - Without a cache, every file is read. Check mode reads the cache, but does not write it.
    type: path
  verify:
    description: Read every file again, without the cache.
    type: bool
    default: false
  hub_endpoint:
    description: The hub, or a mirror of the hub, from which the sizes of models to fetch are read.
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
      - V(absent) removes all models and unfinished transfers. It also removes the directories O(store) and O(fast_path)
        if they are then empty.
    type: bool
    default: false
  fast_path:
    description: The root of the fast copies that V(absent) removes with the models; empty for none.
    type: str
    default: ""
  leaving:
    description:
      - Instances whose releases do not count as needed, because a run outside check mode removes them before the
        models.
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

- name: Publish the models whose files are on the node
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
  description: All problems of the models, each with the found value and what to do.
  returned: O(state=described), O(state=planned) or O(state=present)
  type: list
  elements: str
rsync:
  description: The path of rsync on this machine; empty if rsync is not installed.
  returned: O(state=described), O(state=planned) or O(state=present)
  type: str
  sample: /usr/bin/rsync
places:
  description: >-
    The current or future directory of each model, by name. The revision of a model that must be fetched is C(REVISION).
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
    - The revision of each model that the store did not have intact, by name; C(REVISION) if the model must be fetched.
  returned: O(state=planned) or O(state=present)
  type: dict
  sample:
    tiny-a: ab12cd34ef56
transfers:
  description: The models that are not published yet, or whose published revision is damaged.
  returned: O(state=planned) or O(state=present)
  type: list
  elements: dict
  contains:
    name:
      description: The model.
      type: str
    origin:
      description: The origin, C(controller) or C(node).
      type: str
    source:
      description: The model's directory at its origin.
      type: str
    incoming:
      description: The directory on the node to which the files must be copied.
      type: str
    files:
      description: The number of files to copy.
      type: int
    bytes:
      description: The number of bytes to copy.
      type: int
    rsync_opts:
      description: Options for rsync that select exactly these files.
      type: list
      elements: str
    summary:
      description: A summary for operators.
      type: str
    damage:
      description: The damage of the published revision; empty if none is published.
      type: list
      elements: str
copies:
  description: The items of RV(transfers) with files to copy from the controller.
  returned: O(state=planned) or O(state=present)
  type: list
  elements: dict
fetches:
  description: The models that M(baremetal.inference.model_fetch) must fetch from the network first.
  returned: O(state=planned) or O(state=present)
  type: list
  elements: dict
  contains:
    name:
      description: The model.
      type: str
    hub:
      description: Whether the model comes from a hub, by the client in the engine's image.
      type: bool
    source:
      description: The model's URL, or its name on the hub.
      type: str
    summary:
      description: A summary for operators, with the number of bytes.
      type: str
remotes:
  description: The models that come from the network, by name.
  returned: O(state=planned) or O(state=present)
  type: dict
  contains:
    key:
      description: An identifier of the content, the same for every source.
      type: str
    revision:
      description: The published, intact revision; empty if there is none.
      type: str
freed_gib:
  description: The space that was freed, or would be in check mode, in GiB.
  returned: O(state=absent)
  type: float
removed:
  description: The directories that were removed, or would be in check mode.
  returned: O(state=absent)
  type: list
  elements: str
kept:
  description: The revisions that stay, and what needs them.
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
