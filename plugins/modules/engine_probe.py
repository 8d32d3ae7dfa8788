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

import time
from datetime import UTC, datetime
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.docker_api import (
    Docker,
    DockerError,
    DockerUnavailable,
)
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths, unit_name
from ansible_collections.baremetal.inference.plugins.module_utils.engine import environment
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import (
    acceptance,
    health,
    probe,
    throughput,
    wait,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import LABEL, Release
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import history, probe_state, releases
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state.drains import parse_time
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.variants import resolve

ACCEPTED = "accepted"
WATCHED = "watched"

POLL_SECONDS = 1.0

CONDEMNED = frozenset({health.HUNG, health.DEAD, health.WRONG, health.STOPPED})


def identity(release: Release, target: probe.Target, docker: Docker) -> str:
    """What is wrong with the process that answers; empty where it is the release's. Raises DockerError and the like."""
    container = docker.inspect(release.container)
    if container is None or not container["State"]["Running"]:
        return f"the container {release.container} does not run"
    label = container["Config"]["Labels"].get(LABEL)
    if label != str(release.number):
        return f"the container {release.container} runs release {label}, and not {release.number}"
    verdict = probe.check(target, container["State"]["Pid"])
    return "" if verdict.ready else verdict.message


def accept(module: AnsibleModule) -> None:
    """Run the acceptance probe of a release."""
    given, paths = module.params, Paths()
    name = given["name"]
    key = ""

    def refuse(message: str, steps: list[str], *, words: bool = True) -> None:
        shown = environment.mask(message, [key])
        if words:
            shown += f". Its last words:\n{wait.last_words(paths, name, retrying=False)}"
        module.fail_json(msg=f"release {given['release']} of {name} is not fit to serve: {shown}", steps=steps)

    try:
        release = releases.load(paths, name, given["release"])
        key = environment.read(paths, name).get(environment.API_KEY, "")
        target = probe.Target(release.address, release.port, release.served_names, key)
        if wrong := identity(release, target, Docker()):
            refuse(wrong, [])
        golden = acceptance.golden_prompts(resolve(given["models"], release.model) or {})
        found = acceptance.run(target, golden, given["timeout"])
        before = _speed_before(paths, name, release, given["compare_to"])
    except acceptance.ProbeFailed as error:
        refuse(str(error), error.steps)
    except (releases.ReleaseError, DockerError, DockerUnavailable, OSError) as error:
        refuse(str(error), [])
    speed, bound = found.tokens_per_second, given["speed_bound"]
    if before is not None and speed < bound * before:
        refuse(
            f"one request alone gets {speed} tokens per second, the release before got {before}, and speed_bound is"
            f" {bound}",
            found.steps,
            words=False,
        )
    module.exit_json(changed=False, steps=["answered a completion", *found.steps], tokens_per_second=speed)


def _speed_before(paths: Paths, name: str, release: Release, number: int | None) -> float | None:
    """Tokens per second of the release before, where it served the same model."""
    known = history.last(paths, name, number) if number is not None else None
    if known is None or number is None:
        return None
    try:
        same = releases.load(paths, name, number).model == release.model
    except releases.ReleaseError:
        return None
    return known.tokens_per_second if same else None


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
    looks = [throughput.Counters(**one) if one else None for one in given["before"]]
    return throughput.judge(throughput.between(*looks) if looks else None, now, given["speed_bound"])


def watch(module: AnsibleModule) -> None:
    """Watch an engine that serves."""
    paths, name = Paths(), module.params["name"]
    unit = unit_name(name)
    began, deadline = datetime.now(UTC), time.monotonic() + module.params["seconds"]
    verdict = health.UNKNOWN
    try:
        first = systemd.show([unit], ["InvocationID"])[unit]["InvocationID"]
        looked = throughput.read(paths, name)
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
    slow, speed = judge(module.params, throughput.between(looked, throughput.read(paths, name)))
    if slow:
        bound = f"vllm_update_watch_speed_bound allows no less than {module.params['speed_bound']} of before"
        module.fail_json(msg=f"{name} got too slow: {speed}; {bound}")
    module.exit_json(changed=False, verdict=verdict, speed=speed)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "state": {"type": "str", "choices": [ACCEPTED, WATCHED], "default": ACCEPTED},
            "release": {"type": "int"},
            "models": {"type": "dict", "default": {}},
            "timeout": {"type": "int", "default": 300},
            "compare_to": {"type": "int"},
            "seconds": {"type": "int"},
            "before": {"type": "list", "elements": "dict", "default": []},
            "speed_bound": {"type": "float", "default": 0.0},
        },
        required_if=[("state", ACCEPTED, ["release"]), ("state", WATCHED, ["seconds"])],
        supports_check_mode=True,
    )
    (accept if module.params["state"] == ACCEPTED else watch)(module)


if __name__ == "__main__":
    main()
