#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: engine_service
short_description: Start, await, stop and remove the engines of a node
version_added: 0.1.0
description:
  - Works on the units that the desired releases describe, see M(baremetal.inference.engine_release).
  - An engine that serves, or that is loading, is never restarted.
author:
  - The baremetal.inference contributors (@baremetal-inference)
options:
  names:
    description: The instances to work on.
    type: list
    elements: str
    required: true
  state:
    description:
      - V(started) installs the unit of the desired release, or of the one that is pinned in its place, where the
        instance does not run, enables it and starts it without waiting for the answer. Of an instance that runs, the
        files of the release that runs are repaired, so that it comes back after its end.
      - V(ready) waits until every instance has answered a completion, and marks the release that answered as proven.
        A release that failed to start and has never answered is stopped, so that it does not go on trying with what
        cannot work; one that has answered before is left to systemd. The module fails with the engine's last words.
      - V(stopped) stops the instances and leaves their units in place.
      - V(absent) stops the engines, and removes their units, containers, environments, releases, histories, probes,
        drains, compile caches, and what the recovery has kept of them. Images that only their releases needed go as
        well. Models stay, and so do logs. It does not ask whether clients still need them; the playbook C(decommission)
        does that, and drains them first. The bridge of an instance goes along with the instance, or alone by its own
        name, as RV(bridge) or M(baremetal.inference.engine_facts) returns it. An instance that is not there is fine.
    type: str
    choices: [started, ready, stopped, absent]
    default: started
  prove:
    description:
      - Whether V(ready) marks what answered as proven. An update wants to see more of a release first.
    type: bool
    default: true
  timeout:
    description: How long V(ready) waits, in seconds. Instances that load longer are returned as RV(loading).
    type: int
    default: 20
  bridge:
    description:
      - Starts the bridge of the one instance of O(names) instead, without waiting for its answer. A bridge is a second
        engine that serves while the instance is swapped. It runs one of the instance's releases, on a port and GPUs of
        its own.
      - It is drained from the beginning, until it has passed the acceptance probe. A bridge that runs the same is left
        alone, but drained.
      - By its own name, RV(bridge), all modules handle it like any instance.
      - Goes with V(started) alone.
    type: dict
    suboptions:
      release:
        description: The number of the instance's release that it runs.
        type: int
        required: true
      port:
        description: Where it listens.
        type: int
        required: true
      gpus:
        description: The GPUs that it gets, by index or UUID.
        type: list
        elements: str
        default: []
  cache_path:
    description: Where each instance has its compile cache, for V(absent) to remove; empty to leave it.
    type: str
    default: ""
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: partial
    details:
      - Of what O(state=absent) removes.
seealso:
  - module: baremetal.inference.engine_release
"""

EXAMPLES = r"""
- name: Start what does not run
  baremetal.inference.engine_service:
    names: [main]

- name: Wait until the engine answers
  baremetal.inference.engine_service:
    names: [main]
    state: ready
  register: __ready
  until: __ready.loading | length == 0
  retries: 90
  delay: 0

- name: Start the bridge of an instance
  baremetal.inference.engine_service:
    names: [main]
    bridge:
      release: 4
      port: 5105

- name: Remove an instance
  baremetal.inference.engine_service:
    names: [main]
    state: absent
    cache_path: /mnt/nvme/workspace/vllm_cache
"""

RETURN = r"""
started:
  description: The instances that were started by this call.
  returned: O(state=started) without O(bridge)
  type: list
  elements: str
due:
  description:
    - Whether anything was or is left to do until every instance serves, an engine to start or to wait for, a file or a
      unit to repair, or a release to mark as proven.
  returned: O(state=started) without O(bridge)
  type: bool
ready:
  description: The instances that answer.
  returned: O(state=ready)
  type: list
  elements: str
loading:
  description: The instances that are still loading.
  returned: O(state=ready)
  type: list
  elements: str
progress:
  description: What the loading instances are at, in their own words.
  returned: O(state=ready)
  type: list
  elements: str
failed_instances:
  description: The instances that failed, each with its last words.
  returned: failure
  type: dict
bridge:
  description: The name of the bridge.
  returned: if O(bridge) is given
  type: str
release:
  description: The number that the release has as one of the bridge's own.
  returned: if O(bridge) is given
  type: int
removed:
  description: The instances that were removed, or would be in check mode.
  returned: O(state=absent)
  type: list
  elements: str
also:
  description: What was removed with them, as compile caches, containers, images, and entries of the node's registry.
  returned: O(state=absent)
  type: list
  elements: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import node_call

BRIDGE: dict[str, Any] = {
    "release": {"type": "int", "required": True},
    "port": {"type": "int", "required": True},
    "gpus": {"type": "list", "elements": "str", "default": []},
}


SPECIFICATION = {
    "argument_spec": {
        "names": {"type": "list", "elements": "str", "required": True},
        "state": {"type": "str", "choices": ["started", "ready", "stopped", "absent"], "default": "started"},
        "prove": {"type": "bool", "default": True},
        "timeout": {"type": "int", "default": 20},
        "bridge": {"type": "dict", "options": BRIDGE},
        "cache_path": {"type": "str", "default": ""},
    },
    "supports_check_mode": True,
}


def main() -> None:
    node_call.refuse(AnsibleModule(**SPECIFICATION))


if __name__ == "__main__":
    main()
