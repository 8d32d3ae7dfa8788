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
  - Uses the units of the releases that M(baremetal.inference.engine_release) has staged.
  - Never restarts an engine that serves or loads.
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
      - V(started) starts each instance that does not run. It installs and enables the unit of the pinned release, or
        else of the desired release, and does not wait for an answer. For an instance that runs, it repairs the files of
        the running release, so that systemd can start the engine again.
      - V(ready) waits until every instance has answered a request of its task, and marks the release as proven. If a
        start fails, the module stops the unit, and fails with the engine's last log lines. With O(prove=true), it does
        not stop the unit of the current release, so that systemd tries again.
      - With O(prove=true), V(started) and V(ready) skip an instance in a swap, with a warning.
      - V(stopped) stops the instances, and keeps their units.
      - V(absent) stops the engines, and removes their units, containers, environments, releases, histories, probes,
        drains, compile caches and records of recovery. It also removes images that only their releases needed. Models
        and logs stay. A missing instance is no error.
      - V(absent) does not check whether clients still need an instance. The playbook
        C(baremetal.inference.decommission) does, and drains first. An instance's bridge is removed with the instance,
        or alone by its own name, as RV(bridge) or M(baremetal.inference.engine_facts) returns it.
    type: str
    choices: [started, ready, stopped, absent]
    default: started
  prove:
    description:
      - Whether V(ready) marks a release that has answered as proven. An update watches the release for longer first.
    type: bool
    default: true
  timeout:
    description: How long V(ready) waits, in seconds. Instances that are still loading then are returned as RV(loading).
    type: int
    default: 20
  bridge:
    description:
      - Starts only the bridge of the instance in O(names), and does not wait for its answer. A bridge is a second
        engine that serves while the instance is swapped. It runs a release of the instance on its own port and GPUs.
      - With this option, O(names) must have one name.
      - A bridge starts drained, until it has passed the acceptance probe. If the bridge already runs with the same
        settings, it keeps running, drained.
      - Other modules take the bridge by its own name, RV(bridge), like an instance.
      - Only for V(started).
    type: dict
    suboptions:
      release:
        description: The number of the instance's release that the bridge runs.
        type: int
        required: true
      port:
        description: The port that the bridge listens on.
        type: int
        required: true
      gpus:
        description: The GPUs of the bridge, by index or UUID.
        type: list
        elements: str
        default: []
  cache_path:
    description: The directory of the instances' compile caches, for V(absent); empty to keep the caches.
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
      - Shows what O(state=absent) removes.
seealso:
  - module: baremetal.inference.engine_release
"""

EXAMPLES = r"""
- name: Start the instances that do not run
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
    - Whether an engine must be started or is still loading, a file or unit must be repaired, or a release must be
      marked as proven.
  returned: O(state=started) without O(bridge)
  type: bool
ready:
  description: The instances that have answered.
  returned: O(state=ready)
  type: list
  elements: str
loading:
  description: The instances that are still loading.
  returned: O(state=ready)
  type: list
  elements: str
progress:
  description: The progress of the loading instances, from their log.
  returned: O(state=ready)
  type: list
  elements: str
failed_instances:
  description: The last log lines of each instance that failed, by name.
  returned: failure
  type: dict
bridge:
  description: The name of the bridge.
  returned: if O(bridge) is given
  type: str
release:
  description: The number of the release under the bridge's name.
  returned: if O(bridge) is given
  type: int
removed:
  description: The instances that were removed, or would be in check mode.
  returned: O(state=absent)
  type: list
  elements: str
also:
  description: >-
    What else was removed, such as compile caches, containers, images, and entries of the node's model registry. Check
    mode lists no containers and images.
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
