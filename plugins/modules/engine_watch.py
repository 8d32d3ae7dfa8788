#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: engine_watch
short_description: See whether an engine goes on serving for a while
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Looks at the engine's unit and at what the node's agent finds out about it, and fails as soon as it does not serve,
    with what is known and the engine's last words.
  - Fails at the end where it has answered its clients too slowly meanwhile, by the engine's own counters.
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
  seconds:
    description: How long to watch, in seconds. The agent takes up to 40 to tell that an engine hangs.
    type: int
    required: true
  before:
    description:
      - Two looks at the engine's counters, from before it was swapped, which
        M(baremetal.inference.engine_facts) has returned. Without them, it is not judged how fast it is.
    type: list
    elements: dict
    default: []
  speed_bound:
    description:
      - Fails where a request gets less than this share of the tokens per second that it got between the two looks of
        O(before), with the same model. 0 for no bound.
      - Not judged where fewer than 200 tokens were counted, before or now, or where the engine reads and makes more
        than 1.5 times the tokens per second that it did. A request that has more company is slower.
    type: float
    default: 0
"""

EXAMPLES = r"""
- name: Watch the engine for a minute
  baremetal.inference.engine_watch:
    name: main
    seconds: 60

- name: Watch it for a minute, and for its speed under load
  baremetal.inference.engine_watch:
    name: main
    seconds: 60
    before: "{{ [__counted.counters.main, __counted_last.counters.main] }}"
    speed_bound: 0.25
"""

RETURN = r"""
verdict:
  description: The agent's last verdict.
  returned: success
  type: str
speed:
  description:
    - How fast the engine answered its clients meanwhile, and before, in words, or why that is not judged; empty where
      there is no bound.
  returned: success
  type: str
"""

import time
from datetime import UTC, datetime
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths, unit_name
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import health, throughput, wait
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import probe_state
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.drains import parse_time

POLL_SECONDS = 1.0

CONDEMNED = frozenset({health.HUNG, health.DEAD, health.WRONG, health.STOPPED})


def verdict_since(paths: Paths, name: str, began: datetime) -> tuple[str, str]:
    """The agent's verdict and its detail; `unknown` where it is from before the watch, or is not known."""
    state = probe_state.read(paths, name)
    if state is None or parse_time(state.checked) < began.replace(microsecond=0):
        return health.UNKNOWN, ""
    return state.verdict, state.detail


def judge(given: dict[str, Any], now: throughput.Pace | None) -> tuple[bool, str]:
    """Whether it is too slow for its bound, and what is known of that, in words."""
    if not given["speed_bound"]:
        return False, ""
    looks = [throughput.Look(**one) if one else None for one in given["before"]]
    return throughput.judge(throughput.between(*looks) if looks else None, now, given["speed_bound"])


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "seconds": {"type": "int", "required": True},
            "before": {"type": "list", "elements": "dict", "default": []},
            "speed_bound": {"type": "float", "default": 0.0},
        },
        supports_check_mode=True,
    )
    paths, name = Paths(), module.params["name"]
    unit = unit_name(name)
    began, deadline = datetime.now(UTC), time.monotonic() + module.params["seconds"]
    verdict = health.UNKNOWN
    try:
        first = systemd.show([unit], ["InvocationID"])[unit]["InvocationID"]
        looked = throughput.look(paths, name)
        while True:
            shown = systemd.show([unit], ["ActiveState", "InvocationID"])[unit]
            verdict, detail = verdict_since(paths, name, began)
            if shown["ActiveState"] != "active" or shown["InvocationID"] != first:
                words = wait.last_words(paths, name, retrying=shown["ActiveState"] == "activating")
                module.fail_json(msg=f"{name} stopped serving while it was watched. Its last words:\n{words}")
            if verdict in CONDEMNED:
                words = wait.last_words(paths, name, retrying=False)
                found = f"{name} was found {verdict} while it was watched: {detail}"
                module.fail_json(msg=f"{found}. Its last words:\n{words}")
            if time.monotonic() >= deadline:
                break
            time.sleep(POLL_SECONDS)
    except (systemd.SystemdError, OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    slow, speed = judge(module.params, throughput.between(looked, throughput.look(paths, name)))
    if slow:
        bound = f"vllm_update_watch_speed_bound allows no less than {module.params['speed_bound']} of before"
        module.fail_json(msg=f"{name} got too slow: {speed}; {bound}")
    module.exit_json(changed=False, verdict=verdict, speed=speed)


if __name__ == "__main__":
    main()
