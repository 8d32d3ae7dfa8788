#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: gateway_probe
short_description: Ask every replica set for a token through the gateway
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Asks each name for a completion of one token by the gateway's local socket, which needs no key, until it answers.
    All are asked at once.
  - A replica set whose engines are all drained or in maintenance is passed over, since somebody wants it so.
  - Fails with what the gateway last said of each name that does not answer, and the states of its engines.
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
  names:
    description: The replica sets.
    type: list
    elements: str
    required: true
  seconds:
    description: How long to try in all, in seconds.
    type: int
    default: 60
"""

EXAMPLES = r"""
- name: Ask through the gateway
  baremetal.inference.gateway_probe:
    names: [main]
"""

RETURN = r"""
answered:
  description: The names that answered.
  returned: always
  type: list
  elements: str
drained:
  description: The names that were passed over.
  returned: always
  type: list
  elements: str
silent:
  description: What was last said of each name that did not answer.
  returned: always
  type: dict
"""

import http.client
import json
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core.local_http import LocalConnection
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import bridge_name
from ansible_collections.baremetal.inference.plugins.module_utils.gateway import runtime
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.backends import SET
from ansible_collections.baremetal.inference.plugins.module_utils.gateway.config import (
    CONTROL_SOCKET,
    LOCAL_PATH,
    LOCAL_SOCKET,
)

POLL_SECONDS = 1.0

ON_PURPOSE = ("DRAIN", "MAINT")
"""How the status of a server begins that somebody took out."""


def ask(name: str, seconds: float) -> str:
    """Ask for one token; returns why there is none, empty when there is."""
    body = json.dumps({"model": name, "prompt": "ping", "max_tokens": 1})
    connection = LocalConnection(Path(LOCAL_SOCKET), seconds)
    try:
        connection.request("POST", LOCAL_PATH, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode("utf-8", errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return f"{LOCAL_SOCKET}: {error}"
    finally:
        connection.close()
    return "" if answer.status == 200 else f"{answer.status}: {text[:500]}"


def on_purpose(name: str, states: Mapping[str, str]) -> bool:
    """Whether all engines of a replica set were taken out by somebody; a bridge is down in any case."""
    bridge = f"{bridge_name(name)}."
    statuses = [status for server, status in states.items() if not server.startswith(bridge)]
    return bool(statuses) and all(status.startswith(ON_PURPOSE) for status in statuses)


def server_states() -> Mapping[str, Mapping[str, str]]:
    """The status of every server, by backend. Raises OSError."""
    return runtime.server_states(runtime.ask(Path(CONTROL_SOCKET)))


def settle(name: str, deadline: float) -> tuple[str, str]:
    """Ask until there is an answer, or no time left; returns where the name belongs, and what was said last."""
    while True:
        try:
            if on_purpose(name, server_states().get(SET + name, {})):
                return "drained", ""
            said = ask(name, max(1.0, deadline - time.monotonic()))
        except OSError as error:
            said = f"{CONTROL_SOCKET}: {error}"
        if not said:
            return "answered", ""
        if time.monotonic() >= deadline:
            return "silent", said
        time.sleep(POLL_SECONDS)


def settle_all(names: list[str], deadline: float) -> dict[str, Any]:
    """All at once, so that one that is held takes no other's time: the module's result."""
    with ThreadPoolExecutor(max(1, len(names))) as pool:
        ends = dict(zip(names, pool.map(lambda name: settle(name, deadline), names), strict=True))
    return {
        "changed": False,
        "answered": [name for name, (end, _said) in ends.items() if end == "answered"],
        "drained": [name for name, (end, _said) in ends.items() if end == "drained"],
        "silent": {name: said for name, (end, said) in ends.items() if end == "silent"},
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "names": {"type": "list", "elements": "str", "required": True},
            "seconds": {"type": "int", "default": 60},
        },
        supports_check_mode=True,
    )
    result = settle_all(module.params["names"], time.monotonic() + module.params["seconds"])
    if result["silent"]:
        try:
            states = server_states()
        except OSError:
            states = {}
        lines = [
            f"{name}: {said} Engines: "
            + (", ".join(f"{host} {status}" for host, status in states.get(SET + name, {}).items()) or "none")
            for name, said in result["silent"].items()
        ]
        module.fail_json(
            msg="\n- ".join(["The gateway serves, but these do not answer through it:", *lines]),
            **result,
        )
    module.exit_json(**result)


if __name__ == "__main__":
    main()
