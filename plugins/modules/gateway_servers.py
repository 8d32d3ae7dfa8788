#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: gateway_servers
short_description: See, or wait for, what a gateway does with an engine
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Runs on a gateway, and looks at the servers of HAProxy that stand for one instance of one node.
  - Also counts what processes still do that a reload has left to end.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
    details:
      - Looks in check mode, too.
  diff_mode:
    support: none
options:
  name:
    description: The instance.
    type: str
    required: true
  host:
    description: The node's name in the inventory. Required for the states other than V(seen).
    type: str
  gateway:
    description: The gateway's own name in the inventory, which is returned with what it says.
    type: str
    default: ""
  state:
    description:
      - V(seen) looks once.
      - V(drained) waits until the gateway sends the engine nothing, and nothing is in flight.
      - V(serving) waits until the engine gets its full share.
    type: str
    choices: [seen, drained, serving]
    default: seen
  seconds:
    description: How long to wait, in seconds.
    type: int
    default: 20
"""

EXAMPLES = r"""
- name: Wait until no gateway has requests for it
  baremetal.inference.gateway_servers:
    name: main
    host: "{{ inventory_hostname }}"
    state: drained
  delegate_to: gateway1
  register: __drained
  until: __drained.reached
  retries: 30
  delay: 0
"""

RETURN = r"""
name:
  description: The instance.
  returned: success
  type: str
reached:
  description: Whether the state is reached.
  returned: success
  type: bool
gateway:
  description: O(gateway).
  returned: success
  type: str
known:
  description: Whether the gateway has a server for the instance of O(host).
  returned: success
  type: bool
silent:
  description: Why nothing is known, where HAProxy does not answer; empty where it does.
  returned: success
  type: str
bridge_known:
  description: Whether the gateway has a server for the engine that may stand in for the instance of O(host).
  returned: success
  type: bool
keyed:
  description: Whether the gateway sends the engines of the replica set a key.
  returned: success
  type: bool
up:
  description:
    - The hosts of the replica set that the gateway sends requests to. An engine that stands in for another during an
      update is there by its own name, C(NAME_bridge.HOST).
  returned: success
  type: list
  elements: str
hold_seconds:
  description: How long the gateway holds requests while nobody of a set serves.
  returned: success
  type: int
requests:
  description: Requests that the engine got, since the gateway's process began.
  returned: success
  type: int
set_requests:
  description: Requests that the whole replica set got through this gateway, since the gateway's process began.
  returned: success
  type: int
failures:
  description: Broken connections and answers of 500 and above among them.
  returned: success
  type: int
"""

import re
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import files
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import bridge_name
from ansible_collections.baremetal.inference.plugins.module_utils.gateway import runtime, servers
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.backends import SET
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.config import CONTROL_SOCKET

POLL_SECONDS = 0.3
"""At first. What takes long is looked at less often, up to SELDOM_SECONDS: a whole fleet may wait for one gateway."""

SELDOM_SECONDS = 1.5

LOOKS = 2
"""In a row that find it drained: what was on its way during the first is there in the second."""

BETWEEN_LOOKS = 1.2
"""Seconds. Longer than the interval in which the gateway asks the node's agent: a worker that began just before the
first look has asked it by the second."""

CONFIG = Path("/etc/haproxy/haproxy.cfg")


ENGINE_KEYS = Path("/etc/haproxy/engines.map")
"""The key behind each backend."""


def sends_key(name: str) -> bool:
    """Whether this gateway sends the engines of a replica set a key. Raises OSError."""
    return any(line.startswith(f"{SET}{name} ") for line in (files.text(ENGINE_KEYS) or "").splitlines())


def hold_seconds() -> int:
    """How long this gateway holds requests while nobody serves. Raises OSError."""
    found = re.search(r"lua\.hold (\d+)", CONFIG.read_text(encoding="utf-8"))
    return int(found[1]) if found else 0


@dataclass(frozen=True)
class Seen:
    """What is missing, the instance's servers, the hosts of its set that are up, and the set's requests."""

    missing: str = ""
    now: list[servers.Server] = field(default_factory=list)
    up: list[str] = field(default_factory=list)
    set_requests: int = 0
    bridge: bool = False


def look(given: dict[str, Any]) -> Seen:
    """One look. Raises OSError."""
    control, master = (runtime.ask(Path(path)) for path in (CONTROL_SOCKET, servers.MASTER_SOCKET))
    stat = control("show stat")
    now = servers.servers(stat, given["host"] or "", given["name"])
    missing = ""
    if given["state"] == "drained":
        workers = servers.processes(master("show proc"))
        before = [
            server
            for pid in workers.old
            for server in servers.servers(master(f"@!{pid} show stat"), given["host"], given["name"])
        ]
        missing = servers.not_drained(now, workers, before)
    elif given["state"] == "serving":
        missing = servers.not_serving(now)
    return Seen(
        missing,
        now,
        servers.up_hosts(stat, given["name"]),
        servers.set_requests(stat, given["name"]),
        bool(servers.servers(stat, given["host"] or "", bridge_name(given["name"]))),
    )


def pause(waited: float) -> float:
    """Seconds until the next look, after so many."""
    return min(SELDOM_SECONDS, max(POLL_SECONDS, waited / 10))


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "host": {"type": "str"},
            "gateway": {"type": "str", "default": ""},
            "state": {"type": "str", "choices": ["seen", "drained", "serving"], "default": "seen"},
            "seconds": {"type": "int", "default": 20},
        },
        required_if=[("state", "drained", ["host"]), ("state", "serving", ["host"])],
        supports_check_mode=True,
    )
    given = module.params
    began = time.monotonic()
    deadline = began + given["seconds"]
    needed = LOOKS if given["state"] == "drained" else 1
    looks, seen, silent = 0, Seen(), ""
    while looks < needed:
        try:
            seen, silent = look(given), ""
        except OSError as error:
            # The master takes nothing for a moment while it reloads.
            silent = f"HAProxy does not answer: {error}"
            seen = replace(seen, missing=silent)
        looks = 0 if seen.missing else looks + 1
        if looks < needed:
            if time.monotonic() >= deadline:
                break
            time.sleep(BETWEEN_LOOKS if looks else pause(time.monotonic() - began))
    try:
        held, keyed = hold_seconds(), sends_key(given["name"])
    except OSError as error:
        module.fail_json(msg=f"this gateway cannot be looked at: {error}: run site.yml")
    module.exit_json(
        changed=False,
        name=given["name"],
        reached=looks == needed,
        msg=f"{given['name']} on {given['host']}: {seen.missing}" if seen.missing else "",
        gateway=given["gateway"],
        silent=silent,
        known=bool(seen.now),
        bridge_known=seen.bridge,
        keyed=keyed,
        up=seen.up,
        hold_seconds=held,
        requests=sum(server.requests for server in seen.now),
        set_requests=seen.set_requests,
        failures=sum(server.failures for server in seen.now),
    )


if __name__ == "__main__":
    main()
