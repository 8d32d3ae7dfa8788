#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: engine_update_facts
short_description: Tell which instances of a node are due for another release
version_added: 0.1.0
author:
  - The baremetal.inference contributors (@baremetal-inference)
description:
  - Compares what each instance runs with what it shall run, and checks that this is all on the node.
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
  names:
    description: The instances.
    type: list
    elements: str
    required: true
  targets:
    description:
      - The release that each instance shall run, by its name, in the place of the inventory's or of one that is pinned.
    type: dict
    default: {}
  rollback:
    description:
      - The instances go back to the release that they served with before, or to O(release).
    type: bool
    default: false
  release:
    description: The release to roll back to.
    type: int
  unstaged:
    description:
      - What M(baremetal.inference.engine_release) returned as C(releases). In check mode it has kept nothing, and the
        target is only known from there.
    type: list
    elements: dict
    default: []
  ask_engine:
    description:
      - Whether the image of a release that is due, and has not served yet, is asked if it takes the arguments. It
        starts nothing and reads no weights, but takes some seconds.
    type: bool
    default: false
  ports:
    description:
      - The port of each instance by the inventory, which gateways go by from the end of the update on. What runs, and
        what shall run, is compared with it, but for instances that are not named here.
    type: dict
    default: {}
  address:
    description: The address of all of them by the inventory.
    type: str
    default: 127.0.0.1
  api_key:
    description: Their key by the inventory. It is compared, and never shown.
    type: str
    default: ""
  gateways:
    description: Whether there are gateways. Without any, only the port is compared.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: See what is due
  baremetal.inference.engine_update_facts:
    names: [main]
"""

RETURN = r"""
instances:
  description: How each instance stands.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The instance.
      type: str
    model:
      description: The model of the release that it shall run.
      type: str
    origin:
      description:
        - The release that it runs; of a swap that was cut off, the one that ran before. None before the first start.
      type: int
    target:
      description: The release that it shall run; none for one that the inventory does not know.
      type: int
    due:
      description: Whether it runs another one, or a swap was cut off.
      type: bool
    interrupted:
      description: Whether a swap was cut off.
      type: bool
    serving:
      description: Whether it answers, by the word of systemd and of the node's agent.
      type: bool
    load_seconds:
      description:
        - How long the target took to load when it last did. For one that has not served yet, what runs now took, and
          for more bytes of another model in proportion longer; none where these are not known.
      type: float
    drained_by:
      description: Who keeps requests away from it; empty for nobody.
      type: str
    drained_until:
      description: When that ends by itself; empty for never.
      type: str
    runs:
      description: What the target runs, by model, revision and image; the same on all nodes where it is the same.
      type: str
    bridge:
      description: The engine that could serve in its place while it is swapped.
      type: dict
      contains:
        name:
          description: By which name other modules know it.
          type: str
        port:
          description: Where it would listen; none where the inventory declares no C(bridge_port).
          type: int
        gpus:
          description: The GPUs that it would get.
          type: list
          elements: str
        left:
          description: Whether there is one, or what remains of one, that an update has left.
          type: bool
        certain:
          description: Whether that it fits is known, which in check mode it is not for a release that is not staged.
          type: bool
        problem:
          description: Why there can be none; empty where there can.
          type: str
    keyed:
      description: Whether the target is due, and wants a key of its clients.
      type: bool
    problems:
      description: Why it cannot run the target.
      type: list
      elements: str
    moved:
      description: Why gateways that go by the inventory would not reach what runs.
      type: list
      elements: str
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import commands, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.docker_api import (
    Docker,
    DockerError,
    DockerUnavailable,
)
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths
from ansible_collections.baremetal.inference.plugins.module_utils.engine import (
    argument_check,
    bridge_place,
    bridges,
    endpoints,
    environment,
    load_time,
    prepare,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import bridge_name
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import (
    drains,
    history,
    install_state,
    pins,
    releases,
    swaps,
)


class Facts:
    """Collects how instances stand."""

    def __init__(self, paths: Paths, docker: Docker, given: dict[str, Any], now: datetime, check_mode: bool) -> None:
        self.check_mode = check_mode
        self.paths = paths
        self.docker = docker
        self.given = given
        self.now = now
        self.running = endpoints.running_instances(paths) if given["ports"] else {}

    def of(self, name: str) -> dict[str, Any]:
        """How one instance stands. Raises SystemdError, OSError, and ValueError where its state is damaged."""
        active = releases.active_number(self.paths, name)
        swap = swaps.read(self.paths, name)
        origin = swap.origin if swap else active
        target = self.target(name, active)
        drain = drains.read(self.paths, name, self.now)
        # One that was cut off before the switch has left its drain alone.
        interrupted = swap is not None or (drain is not None and drain.owner == drains.UPDATE)
        model, runs, problems = self.check(name, target)
        known = history.last(self.paths, name, target) if target else None
        due = target is not None and (active != target or interrupted)
        asked = self.asked(name)
        comes = self.endpoint(name, target) if due and target else None
        if target and comes and asked and not problems:
            problems = self.unreached(name, target, comes, asked)
        # What check mode only knows of cannot be shown to the engine.
        if self.given["ask_engine"] and due and target and not problems and not known and runs:
            problems = self.refused(name, target)
        return {
            "name": name,
            "model": model,
            "runs": runs,
            "origin": origin,
            "target": target,
            "due": due,
            "interrupted": interrupted,
            "serving": install_state.serving(self.paths, name, self.now),
            "load_seconds": (known and known.load_seconds) or self.load_seconds(name, active, target),
            "drained_by": drain.owner if drain else "",
            "drained_until": (drain.until or "") if drain else "",
            "bridge": self.bridge(name, origin, target if due and not problems else None),
            "keyed": comes is not None and comes.key != "",
            "problems": problems,
            "moved": self.moved(name, asked) if asked else [],
        }

    def bridge(self, name: str, origin: int | None, target: int | None) -> dict[str, Any]:
        """The engine that could serve meanwhile; whether it fits is only worked out for a swap that is due.

        Raises ReleaseError, OSError, and ValueError where the instance's state is damaged.
        """
        port, left = bridges.declared_port(self.paths, name), bridges.left(self.paths, name)
        place = bridge_place.Place(problem="it has no bridge_port" if port is None else "it is not due")
        staged = target in releases.numbers(self.paths, name)
        if port is not None and origin is not None and target is not None:
            try:
                # In check mode, what would be staged may fit.
                place = bridges.place(self.paths, name, origin, target, port) if staged else bridge_place.Place()
            except releases.ReleaseError as error:
                place = bridge_place.Place(problem=str(error))
        return {
            "name": bridge_name(name),
            "port": port,
            "gpus": list(place.gpus),
            "left": left,
            "certain": staged,
            "problem": place.problem,
        }

    def target(self, name: str, active: int | None) -> int | None:
        if self.given["rollback"]:
            desired = releases.desired_number(self.paths, name)
            return self.given["release"] or history.back_target(self.paths, name, active, desired)
        number = self.given["targets"].get(name)
        return int(number) if number is not None else pins.wanted_number(self.paths, name)

    def check(self, name: str, target: int | None) -> tuple[str, str, list[str]]:
        """The target's model, all that it runs, and why it cannot."""
        if target is None:
            rollback = "there is no earlier release to go back to: inferctl releases shows those that are kept"
            return "", "", [f"{name}: {rollback}"] if self.given["rollback"] else []
        if self.check_mode and target not in releases.numbers(self.paths, name):
            # It would have been staged before.
            return self.unstaged(name).get("model", ""), "", []
        try:
            release = releases.load(self.paths, name, target)
            releases.verify(self.paths, name, target)
            missing = prepare.missing(release, self.docker)
        except (releases.ReleaseError, DockerError, DockerUnavailable) as error:
            return "", "", [f"{name}: {error}"]
        runs = f"{release.model} {release.revision} {release.image}"
        return release.model, runs, [f"{name}: {problem}" for problem in missing]

    def asked(self, name: str) -> endpoints.Endpoint | None:
        """What an instance is reached by, as the inventory has it; None where nothing is said of it."""
        if name not in self.given["ports"]:
            return None
        return endpoints.Endpoint(self.given["address"], int(self.given["ports"][name]), self.given["api_key"])

    def endpoint(self, name: str, target: int) -> endpoints.Endpoint | None:
        """What the target is reached by; None where its release is damaged, which check() tells. Raises OSError."""
        if target not in releases.numbers(self.paths, name):
            # In check mode, it would have been staged as the inventory has it.
            return self.asked(name)
        try:
            return endpoints.endpoint(self.paths, name, target)
        except releases.ReleaseError:
            return None

    def unreached(self, name: str, target: int, comes: endpoints.Endpoint, asked: endpoints.Endpoint) -> list[str]:
        """Why nobody would reach the target. Raises ValueError where the inventory's address is none."""
        words = {
            endpoints.PORT: f"port {comes.port}, and not {asked.port}",
            endpoints.ADDRESS: f"address {comes.address}, and not {asked.address}",
            endpoints.KEY: "another key (vllm_api_key)",
        }
        found = endpoints.differing(comes, asked, gateways=self.given["gateways"])
        if not found:
            return []
        return [
            f"{name}: release {target} has {'; '.join(words[what] for what in found)}: who goes by the inventory would"
            " not reach it. Go back to another release; or have the inventory ask for the model, image and flags of"
            " this one, and run update-model.yml, which makes a release of them that can be reached"
        ]

    def moved(self, name: str, asked: endpoints.Endpoint) -> list[str]:
        """Why nobody would reach what runs. Raises ValueError where the inventory's address is none."""
        serves = self.running.get(name)
        return [str(found) for found in endpoints.moved(name, serves, asked, gateways=self.given["gateways"])]

    def unstaged(self, name: str) -> dict[str, Any]:
        """What check mode knows of a target that was not staged."""
        return {item["name"]: item for item in self.given["unstaged"]}.get(name, {})

    def load_seconds(self, name: str, active: int | None, target: int | None) -> float | None:
        """How long a target that has not served yet may load; None where nobody knows. Raises SystemdError."""
        seconds = load_time.seconds(name)
        if seconds is None or active is None or target is None:
            return seconds
        try:
            before = releases.load(self.paths, name, active).model_path
            if target in releases.numbers(self.paths, name):
                after = releases.load(self.paths, name, target).model_path
            else:
                after = self.unstaged(name).get("model_path", before)
        except releases.ReleaseError:
            return None
        # In check mode, a model may not have been fetched yet, and what is fetched then may be as large.
        if self.check_mode and not Path(after).exists():
            return seconds
        return load_time.of_another(seconds, Path(before), Path(after))

    def refused(self, name: str, target: int) -> list[str]:
        """Why the engine would not take the target's arguments. Raises ReleaseError and OSError."""
        file = self.paths.release(name, target) / releases.ENV_FILE
        argv = argument_check.argv("docker", releases.load(self.paths, name, target), str(file))
        outcome = commands.run(argv, argument_check.SECONDS + 30)
        if outcome.code is None:
            return []
        reason = argument_check.refusal(outcome.code, outcome.stdout + outcome.stderr)
        shown = environment.mask(reason, environment.secrets(environment.read_file(file)))
        return [f"{name}: the engine refuses the arguments of release {target}: {shown}"] if reason else []


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "names": {"type": "list", "elements": "str", "required": True},
            "targets": {"type": "dict", "default": {}},
            "rollback": {"type": "bool", "default": False},
            "release": {"type": "int"},
            "unstaged": {"type": "list", "elements": "dict", "default": []},
            "ask_engine": {"type": "bool", "default": False},
            "ports": {"type": "dict", "default": {}},
            "address": {"type": "str", "default": "127.0.0.1"},
            "api_key": {"type": "str", "default": "", "no_log": True},
            "gateways": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    try:
        facts = Facts(Paths(), Docker(), module.params, datetime.now(UTC), module.check_mode)
        module.exit_json(changed=False, instances=[facts.of(name) for name in module.params["names"]])
    except (releases.ReleaseError, systemd.SystemdError, OSError, ValueError) as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
