#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: engine_probe
short_description: Try an engine before clients get to it
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Asks the engine that runs the release, and no other process on its port, for one token, for a stream to its end, to
    read a long prompt, for several answers at once, and for those of the golden prompts.
  - Fails with the step that failed, and the engine's last words.
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
  release:
    description: The release that has to run.
    type: int
    required: true
  models:
    description: The model registry, for the C(golden-prompts) of the release's model.
    type: dict
    default: {}
  timeout:
    description: How long each answer may take, in seconds.
    type: int
    default: 300
  speed_bound:
    description:
      - Fails where one request alone gets less than this share of the tokens per second that the release before it got,
        if both serve the same model. 0 for no bound.
    type: float
    default: 0
  compare_to:
    description: The release before it.
    type: int
"""

EXAMPLES = r"""
- name: Try the new release
  baremetal.inference.engine_probe:
    name: main
    release: 4
    models: "{{ models }}"
"""

RETURN = r"""
steps:
  description: What passed.
  returned: always
  type: list
  elements: str
tokens_per_second:
  description: What one request alone gets.
  returned: success
  type: float
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core.docker_api import (
    Docker,
    DockerError,
    DockerUnavailable,
)
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import environment
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import acceptance, probe, wait
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import LABEL, Release
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import history, releases
from ansible_collections.baremetal.inference.plugins.module_utils.models.registry.variants import resolve


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


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "release": {"type": "int", "required": True},
            "models": {"type": "dict", "default": {}},
            "timeout": {"type": "int", "default": 300},
            "speed_bound": {"type": "float", "default": 0.0},
            "compare_to": {"type": "int"},
        },
        supports_check_mode=True,
    )
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


if __name__ == "__main__":
    main()
