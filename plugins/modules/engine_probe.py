#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: engine_probe
short_description: Try an engine before clients use it, and watch it afterwards
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Runs the acceptance probe of a release, or watches an engine that serves, and fails with the step that failed and
    the engine's last words.
  - Internal to this collection; its options may change without notice.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - Asks in check mode, too.
  diff_mode:
    support: none
options:
  name:
    description: The instance.
    type: str
    required: true
  state:
    description:
      - V(accepted) asks the engine that runs O(release), and no other process on its port, for one token, for a stream
        to its end, to read a long prompt, for several answers at once, and for those of the golden prompts.
      - V(watched) looks for O(seconds) at the engine's unit and at what the node's agent finds out about it, and fails
        as soon as the engine does not serve. It fails at the end where the engine has answered its clients too slowly
        meanwhile, by the engine's own counters.
    type: str
    choices: [accepted, watched]
    default: accepted
  release:
    description: The release that has to run. Required for V(accepted).
    type: int
  models:
    description: The model registry, for the C(golden-prompts) of the release's model. Used by V(accepted).
    type: dict
    default: {}
  timeout:
    description: How long each answer to V(accepted) may take, in seconds.
    type: int
    default: 300
  compare_to:
    description: The release before it, which V(accepted) compares the speed with.
    type: int
  seconds:
    description:
      - How long to watch, in seconds. The agent takes up to 40 to tell that an engine hangs. Required for V(watched).
    type: int
  before:
    description:
      - What the engine had counted at two times before it was swapped, as C(counters) of
        M(baremetal.inference.engine_facts) has it. Without these, V(watched) does not judge how fast the engine is.
    type: list
    elements: dict
    default: []
  speed_bound:
    description:
      - V(accepted) fails where one request alone gets less than this share of the tokens per second that the release
        O(compare_to) got, if both serve the same model.
      - V(watched) fails where a request gets less than this share of the tokens per second that it got between the two
        times of O(before), with the same model. It does not judge where fewer than 200 tokens were counted, before or
        now, or where the engine reads and makes more than 1.5 times the tokens per second that it did. A request that
        has more company is slower.
      - 0 for no bound.
    type: float
    default: 0
"""

EXAMPLES = r"""
- name: Try the new release
  baremetal.inference.engine_probe:
    name: main
    release: 4
    models: "{{ models }}"

- name: Watch the engine for a minute
  baremetal.inference.engine_probe:
    name: main
    state: watched
    seconds: 60

- name: Watch it for a minute, and for its speed under load
  baremetal.inference.engine_probe:
    name: main
    state: watched
    seconds: 60
    before: "{{ [__counted.counters.main, __counted_last.counters.main] }}"
    speed_bound: 0.25
"""

RETURN = r"""
steps:
  description: What passed.
  returned: O(state=accepted)
  type: list
  elements: str
tokens_per_second:
  description: What one request alone gets.
  returned: success and O(state=accepted)
  type: float
verdict:
  description: The agent's last verdict.
  returned: success and O(state=watched)
  type: str
speed:
  description:
    - How fast the engine answered its clients meanwhile, and before, in words, or why that is not judged; empty where
      there is no bound.
  returned: success and O(state=watched)
  type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import node_call

SPECIFICATION = {
    "argument_spec": {
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["accepted", "watched"], "default": "accepted"},
        "release": {"type": "int"},
        "models": {"type": "dict", "default": {}},
        "timeout": {"type": "int", "default": 300},
        "compare_to": {"type": "int"},
        "seconds": {"type": "int"},
        "before": {"type": "list", "elements": "dict", "default": []},
        "speed_bound": {"type": "float", "default": 0.0},
    },
    "required_if": [("state", "accepted", ["release"]), ("state", "watched", ["seconds"])],
    "supports_check_mode": True,
}


def main() -> None:
    node_call.refuse(AnsibleModule(**SPECIFICATION))


if __name__ == "__main__":
    main()
