#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: model_share
short_description: Share models of a node's store with other nodes, for a limited time
version_added: 0.1.0
description:
  - Starts a server in the transient unit C(inference-share.service), on one address of the node. The server sends only
    the given revisions, only to clients with its token. Each call makes a new token.
  - The server has no privileges, can read only the shared revisions of the store, and cannot write. It ends after
    O(seconds), also if the playbook was killed.
  - M(baremetal.inference.model_fetch) fetches from this server, and verifies the files.
  - Internal to this collection; its options may change without notice.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  state:
    description: V(started) shares O(models) in place of earlier ones, V(stopped) stops the server.
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
    description: The address of this node to listen on. If empty, nothing is shared, and RV(problem) is set.
    type: str
    default: ""
  port:
    description: The port to listen on.
    type: int
    default: 5003
  seconds:
    description: After how many seconds the server ends by itself.
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
- name: Share a model with other nodes
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
  description: The URL below which each file is C(NAME/REVISION/FILE); empty if nothing is shared.
  returned: success
  type: str
  sample: http://192.0.2.7:5003
token:
  description: The token that clients must send. Keep it out of logs.
  returned: success
  type: str
manifests:
  description: The manifest of each shared model by name, as in M(baremetal.inference.model).
  returned: success
  type: dict
problem:
  description: Why this node cannot share; empty on success. Other nodes then use other sources.
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
            changed = sharing.runs() if module.check_mode else sharing.stop()
        elif not module.check_mode:
            models = {str(name): str(revision) for name, revision in values["models"].items()}
            share = sharing.start(Path(values["store"]), models, values["address"], values["port"], values["seconds"])
    except (ShareError, OSError) as error:
        if values["state"] == "stopped":
            module.fail_json(msg=str(error))
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
