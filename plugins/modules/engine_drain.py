#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: engine_drain
short_description: Keep requests away from an engine, and wait until it has none
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Records the intent on the node, as C(inferctl drain) does; the node's agent tells the gateways.
  - An intent of somebody else is left as it is, and is no failure, since requests are kept away already.
  - Internal to this collection; its options may change without notice.
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  name:
    description: The instance.
    type: str
    required: true
  owner:
    description: Whose intent it is. Only their own is taken back.
    type: str
    required: true
  state:
    description:
      - V(drained) records the intent. One of its own gets another O(reason).
      - V(idle) waits until the engine itself has no request at work or waiting. An engine that does not run has none.
      - V(undrained) takes the intent back.
    type: str
    choices: [drained, idle, undrained]
    default: drained
  reason:
    description: Why, for those who wonder. Required for V(drained).
    type: str
  seconds:
    description: How long V(idle) waits, in seconds.
    type: int
    default: 20
"""

EXAMPLES = r"""
- name: Keep requests away
  baremetal.inference.engine_drain:
    name: main
    owner: update
    reason: release 4 comes

- name: Wait until what is at work has ended
  baremetal.inference.engine_drain:
    name: main
    owner: update
    state: idle
  register: __idle
  until: __idle.idle
  retries: 30
  delay: 0
"""

RETURN = r"""
drained_by:
  description: Whose intent is in force now; empty where there is none.
  returned: success
  type: str
idle:
  description: Whether the engine has nothing to do.
  returned: O(state=idle)
  type: bool
in_flight:
  description: The requests that it works at or keeps waiting; none where it does not tell.
  returned: O(state=idle)
  type: int
"""

import time
from datetime import UTC, datetime

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths, unit_name
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import idle
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import drains, releases

POLL_SECONDS = 0.3

LOOKS = 2
"""In a row without a request. One that the engine has not yet counted has a connection, and with that no stop is quick:
supervisor.py."""


def in_flight(paths: Paths, name: str) -> int | None:
    """Requests at the engine; None where it does not tell. Raises ReleaseError."""
    number = releases.active_number(paths, name)
    if number is None or systemd.active_state(unit_name(name)) not in systemd.RUNNING:
        return 0
    return idle.in_flight(paths, releases.load(paths, name, number))


def wait_idle(paths: Paths, name: str, seconds: float) -> int | None:
    """Requests at the engine when it has been idle for LOOKS, or when the time is over. Raises ReleaseError."""
    deadline = time.monotonic() + seconds
    looks = 0
    while True:
        found = in_flight(paths, name)
        looks = looks + 1 if found == 0 else 0
        if looks == LOOKS or time.monotonic() >= deadline:
            return found if looks in (0, LOOKS) else None
        time.sleep(POLL_SECONDS)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "owner": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["drained", "idle", "undrained"], "default": "drained"},
            "reason": {"type": "str"},
            "seconds": {"type": "int", "default": 20},
        },
        required_if=[("state", "drained", ["reason"])],
        supports_check_mode=True,
    )
    paths, given = Paths(), module.params
    name, owner, now = given["name"], given["owner"], datetime.now(UTC)
    try:
        present = drains.read(paths, name, now)
        if given["state"] == "idle":
            found = wait_idle(paths, name, given["seconds"])
            words = "it does not tell" if found is None else f"{found} requests are in flight"
            module.exit_json(
                changed=False,
                idle=found == 0,
                in_flight=found,
                drained_by=present.owner if present else "",
                msg="" if found == 0 else f"{name} is not idle: {words}",
            )
        own = present is not None and present.owner == owner
        another = own and present is not None and present.reason != given["reason"]
        changed = own if given["state"] == "undrained" else present is None or another
        if changed and not module.check_mode:
            if given["state"] == "undrained":
                present = drains.undrain(paths, name, owner, now).drain
            else:
                wanted = drains.Drain(owner, given["reason"], drains.format_time(now))
                present = drains.drain(paths, [name], wanted)[0].drain
    except (drains.Held, releases.ReleaseError, systemd.SystemdError, OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=changed, drained_by=present.owner if present else "")


if __name__ == "__main__":
    main()
