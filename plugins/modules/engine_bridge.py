#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: engine_bridge
short_description: Have a second engine that serves while an instance is swapped
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - The bridge runs one of the instance's releases, on a port and GPUs of its own. It is drained from the beginning,
    until somebody has tried it and takes that back.
  - By its own name, which M(baremetal.inference.engine_facts) returns, all other modules handle it like any
    instance.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  name:
    description: The instance that the bridge stands in for.
    type: str
    required: true
  state:
    description:
      - V(started) starts it, without waiting for its answer. One that runs the same is left alone, but drained.
      - V(absent) stops it and removes all of it but its logs, without waiting for its requests.
    type: str
    choices: [started, absent]
    default: started
  release:
    description: The number of the instance's release that it runs. Required for V(started).
    type: int
  port:
    description: Where it listens. Required for V(started).
    type: int
  gpus:
    description: The GPUs that it gets, by index or UUID.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Have another engine serve meanwhile
  baremetal.inference.engine_bridge:
    name: main
    release: 4
    port: 5105

- name: Remove it
  baremetal.inference.engine_bridge:
    name: main
    state: absent
"""

RETURN = r"""
release:
  description: The number that the release has as one of the bridge's own.
  returned: O(state=started)
  type: int
"""

from datetime import UTC, datetime

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.engine import bridges
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import releases


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["started", "absent"], "default": "started"},
            "release": {"type": "int"},
            "port": {"type": "int"},
            "gpus": {"type": "list", "elements": "str", "default": []},
        },
        required_if=[("state", "started", ["release", "port"])],
        supports_check_mode=True,
    )
    paths, given, check = Paths(), module.params, module.check_mode
    try:
        if given["state"] == "absent":
            module.exit_json(changed=bridges.remove(paths, given["name"], check=check))
        wish = bridges.Wish(given["name"], given["release"], given["port"], tuple(given["gpus"]))
        changed, number = bridges.start(paths, wish, datetime.now(UTC), check=check)
    except (InputError, releases.ReleaseError, systemd.SystemdError, OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=changed, release=number)


if __name__ == "__main__":
    main()
