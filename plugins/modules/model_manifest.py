#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: model_manifest
short_description: Check directories of models and describe them by size and checksum
version_added: 0.1.0
description:
  - Checks that each model is complete. Its configuration parses, every shard that its index names is there, and every
    safetensors file is as long as its header says.
  - Describes each model that is complete by the size and SHA-256 of its files, and by a revision made from them.
  - Changes nothing but its own cache of checksums.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  models:
    description:
      - Entries of the model registry by name. Only their keys C(model) and C(revision) are read.
    type: dict
    required: true
  origin:
    description:
      - Which models to look at, those whose C(model) begins with C(controller:), or those with a path on the node.
      - The module looks at the machine it runs on. Delegate it to the controller for V(controller).
    type: str
    choices: [controller, node]
    default: node
  cache:
    description:
      - A file that keeps checksums by path, size, modification time and inode, so that a second run reads nothing.
      - Without it every file is read. In check mode it is read, but not written.
    type: path
  verify:
    description: Read every file again, whatever the cache says.
    type: bool
    default: false
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
seealso:
  - module: baremetal.inference.model_publish
"""

EXAMPLES = r"""
- name: Describe the models on the controller
  baremetal.inference.model_manifest:
    models:
      tiny-a:
        model: controller:/srv/models/tiny-a
    origin: controller
    cache: ~/.cache/baremetal-inference/manifests.json
  delegate_to: localhost
  become: false
  register: manifests
"""

RETURN = r"""
manifests:
  description: The manifest of every model without a problem, by name.
  returned: success
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
  description: Everything that is wrong with the models, each with file, what was found and what is expected.
  returned: success
  type: list
  elements: str
rsync:
  description: Path of rsync on this machine; empty where it is not installed.
  returned: success
  type: str
  sample: /usr/bin/rsync
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.store.hashes import hash_cache
from ansible_collections.baremetal.inference.plugins.module_utils.store.store import (
    CONTROLLER,
    NODE,
    build_manifests,
    load_sources,
)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "models": {"type": "dict", "required": True},
            "origin": {"type": "str", "choices": [CONTROLLER, NODE], "default": NODE},
            "cache": {"type": "path"},
            "verify": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    models = module.params["models"]
    cache_path = Path(module.params["cache"]) if module.params["cache"] else None
    sources, problems = load_sources(models)
    wanted = {name: source for name, source in sources.items() if source.origin == module.params["origin"]}
    try:
        with hash_cache(cache_path, read_only=module.check_mode) as cache:
            manifests, found = build_manifests(wanted, models, cache, module.params["verify"])
    except OSError as error:
        module.fail_json(msg=f"The cache {cache_path} cannot be used: {error}. Set another path, or correct its owner.")
    # An entry whose source cannot be used belongs to no machine: the node's own task reports it once.
    problems = [*problems, *found] if module.params["origin"] == NODE else found
    module.exit_json(
        changed=False,
        manifests={name: manifest.to_dict() for name, manifest in manifests.items()},
        problems=[str(problem) for problem in problems],
        rsync=module.get_bin_path("rsync") or "",
    )


if __name__ == "__main__":
    main()
