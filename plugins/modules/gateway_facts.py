#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: gateway_facts
short_description: Read which engines a gateway sends requests to, and which replica sets answer through it
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Runs on a gateway. Reads whether HAProxy has a server for an instance of a node, and to which servers of the replica
    set it sends requests.
  - Requests one token from each replica set through the gateway's local socket, which needs no key, until each set
    answers or O(seconds) are over. Skips sets whose engines are all drained or in maintenance. Fails with the last
    error of each set that does not answer, and with the states of its engines.
  - Internal to this collection; its options may change without notice.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - Reads and requests in check mode, too.
  diff_mode:
    support: none
options:
  gather_subset:
    description:
      - What to read.
      - V(servers) reads the gateway's server of the instance O(name) on O(host). V(answers) requests a token from each
        replica set in O(names).
      - V(all) is everything, V(min) nothing. An exclamation mark leaves a subset out. If the list has only
        such items, all remaining subsets of V(all) are read.
    type: list
    elements: str
    default: [servers]
    choices: [all, min, servers, '!servers', answers, '!answers']
  name:
    description: The instance. Required for V(servers).
    type: str
  host:
    description: The node's name in the inventory.
    type: str
  gateway:
    description: The gateway's name in the inventory, which is returned with the facts.
    type: str
    default: ""
  names:
    description: The replica sets. Required for V(answers).
    type: list
    elements: str
  seconds:
    description: The time limit in seconds, for HAProxy's answer or for all replica sets together.
    type: int
    default: 20
"""

EXAMPLES = r"""
- name: Read which servers the gateway sends requests to
  baremetal.inference.gateway_facts:
    name: main
    host: "{{ inventory_hostname }}"
  delegate_to: gateway1

- name: Request a token through the gateway
  baremetal.inference.gateway_facts:
    gather_subset: [answers]
    names: [main]
    seconds: 60
"""

RETURN = r"""
name:
  description: The instance.
  returned: if V(servers) is gathered
  type: str
gateway:
  description: The name from O(gateway).
  returned: if V(servers) is gathered
  type: str
known:
  description: Whether the gateway has a server for the instance of O(host).
  returned: if V(servers) is gathered
  type: bool
silent:
  description: Why HAProxy does not answer; empty if it does.
  returned: if V(servers) is gathered
  type: str
bridge_known:
  description: Whether the gateway has a server for the bridge of the instance of O(host).
  returned: if V(servers) is gathered
  type: bool
up:
  description:
    - The hosts of the replica set to which the gateway sends requests. A bridge has its own name, C(NAME_bridge.HOST).
  returned: if V(servers) is gathered
  type: list
  elements: str
hold_seconds:
  description: How long the gateway holds requests while no engine of a set serves.
  returned: if V(servers) is gathered
  type: int
answered:
  description: The replica sets that answered.
  returned: if V(answers) is gathered
  type: list
  elements: str
textless:
  description: The replica sets of O(names) that answered, and whose model makes no text, such as a model of embeddings.
  returned: if V(answers) is gathered
  type: list
  elements: str
drained:
  description: The replica sets that were skipped because all their engines are drained or in maintenance.
  returned: if V(answers) is gathered
  type: list
  elements: str
unanswered:
  description: The last error of each replica set that did not answer, by name.
  returned: if V(answers) is gathered
  type: dict
"""

import time
from dataclasses import asdict
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core.gather_subset import choices, chosen
from ansible_collections.baremetal.inference.plugins.module_utils.gateway import answers, observation
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.view import GatewayView

SERVERS = "servers"
ANSWERS = "answers"
SUBSETS = (SERVERS, ANSWERS)


def server_facts(given: dict[str, Any]) -> dict[str, Any]:
    """The gateway's view of an instance. Raises OSError."""
    seen = observation.observe(given["name"], given["host"] or "", given["seconds"])
    view = GatewayView(
        gateway=given["gateway"],
        name=given["name"],
        known=seen.known,
        silent=seen.silent,
        bridge_known=seen.bridge_known,
        up=frozenset(seen.up),
        hold_seconds=observation.hold_seconds(),
    )
    return view.to_dict()


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "gather_subset": {
                "type": "list",
                "elements": "str",
                "default": [SERVERS],
                "choices": choices(SUBSETS),
            },
            "name": {"type": "str"},
            "host": {"type": "str"},
            "gateway": {"type": "str", "default": ""},
            "names": {"type": "list", "elements": "str"},
            "seconds": {"type": "int", "default": 20},
        },
        supports_check_mode=True,
    )
    given = module.params
    deadline = time.monotonic() + given["seconds"]
    subset = chosen(given["gather_subset"], SUBSETS)
    for part, option in ((SERVERS, "name"), (ANSWERS, "names")):
        if part in subset and given[option] is None:
            module.fail_json(msg=f"gather_subset has {part}, but {option} is missing: set {option}")
    result: dict[str, Any] = {"changed": False}
    if SERVERS in subset:
        try:
            result.update(server_facts(given))
        except OSError as error:
            module.fail_json(msg=f"the files of this gateway cannot be read: {error}. Run baremetal.inference.site.")
    if ANSWERS in subset:
        found = answers.ask_all(given["names"], deadline)
        result.update(asdict(found))
        if why := answers.report(found):
            module.fail_json(**{**result, "msg": why})
    module.exit_json(**result)


if __name__ == "__main__":
    main()
