#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: model_share
short_description: Give other nodes of the site models of a node's store, for a while
version_added: 0.1.0
description:
  - Starts a server in a transient unit, C(inference-share.service), on one address of the node. It gives the revisions
    that it was told to who shows its token, which is a new one each time, and nothing else.
  - It has no rights, sees of the store only what it shares, and cannot write. After O(seconds) it ends, also when the
    playbook was killed.
  - M(baremetal.inference.model_fetch) takes from it, and verifies what it gets.
  - Internal to this collection; its options may change without notice.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  state:
    description: Whether to share, in the place of what was shared before, or to end it.
    type: str
    choices: [started, stopped]
    default: started
  store:
    description: The root of the store.
    type: path
  models:
    description: The revisions to share, by the model's name. They must be published.
    type: dict
    default: {}
  address:
    description: The address of this node to listen on. Where it is empty, nothing is shared, and RV(problem) says so.
    type: str
    default: ""
  port:
    description: The port to listen on.
    type: int
    default: 5003
  seconds:
    description: After how long the server ends by itself.
    type: int
    default: 3600
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
seealso:
  - module: baremetal.inference.model_fetch
"""

EXAMPLES = r"""
- name: Give another node a model
  baremetal.inference.model_share:
    store: /mnt/models
    models:
      qwen3-8b: ab12cd34ef56
    address: 192.0.2.7
  register: share
  no_log: true

- name: Stop sharing models
  baremetal.inference.model_share:
    state: stopped
"""

RETURN = r"""
url:
  description: Below it each file lies as C(NAME/REVISION/FILE); empty where nothing is shared.
  returned: success
  type: str
  sample: http://192.0.2.7:5003
token:
  description: What a client has to show. Keep it out of logs.
  returned: success
  type: str
manifests:
  description: The manifest of each model that is shared, by name, as of M(baremetal.inference.model).
  returned: success
  type: dict
problem:
  description: Why this node cannot share; empty where it does. Others then have to do without it.
  returned: success
  type: str
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import defaults
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.store.share import Share, ShareError, Sharing


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["started", "stopped"], "default": "started"},
            "store": {"type": "path"},
            "models": {"type": "dict", "default": {}},
            "address": {"type": "str", "default": ""},
            "port": {"type": "int", "default": defaults.PEER_PORT},
            "seconds": {"type": "int", "default": 3600},
        },
        required_if=[("state", "started", ("store",))],
        supports_check_mode=True,
    )
    values: dict[str, Any] = module.params
    sharing = Sharing(module.run_command, Paths())
    share, problem, changed = Share("", "", {}), "", True
    try:
        if values["state"] == "stopped":
            changed = not module.check_mode and sharing.stop()
        elif not module.check_mode:
            models = {str(name): str(revision) for name, revision in values["models"].items()}
            share = sharing.start(Path(values["store"]), models, values["address"], values["port"], values["seconds"])
    except (ShareError, OSError) as error:
        problem = str(error)
    module.exit_json(
        changed=changed,
        url=share.url,
        token=share.token,
        manifests={name: manifest.to_dict() for name, manifest in share.manifests.items()},
        problem=problem,
    )


if __name__ == "__main__":
    main()
