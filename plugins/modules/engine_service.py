#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: engine_service
short_description: Start, await and stop the engines of a node
version_added: 0.1.0
description:
  - Works on the units that the desired releases describe, see M(baremetal.inference.engine_release).
  - An engine that serves, or that is loading, is never restarted.
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
      - V(started) installs the unit of the desired release where the instance does not run, enables it and starts it
        without waiting for the answer.
      - V(ready) waits until every instance has answered a completion, and marks the release that answered as proven.
        A release that failed to start and has never answered is stopped, so that it does not go on trying with what
        cannot work; one that has answered before is left to systemd. The module fails with the engine's last words.
      - V(stopped) stops the instances and leaves their units in place.
    type: str
    choices: [started, ready, stopped]
    default: started
  timeout:
    description: How long V(ready) waits, in seconds. Instances that load longer are returned as RV(loading).
    type: int
    default: 20
attributes:
  check_mode:
    description: Can run in check mode and return changed status prediction without modifying the target.
    support: full
  diff_mode:
    description: Returns details on what has changed.
    support: none
seealso:
  - module: baremetal.inference.engine_release
"""

EXAMPLES = r"""
- name: Start what does not run
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
"""

RETURN = r"""
started:
  description: The instances that were started by this call.
  returned: O(state=started)
  type: list
  elements: str
ready:
  description: The instances that answer.
  returned: O(state=ready)
  type: list
  elements: str
loading:
  description: The instances that are still loading.
  returned: O(state=ready)
  type: list
  elements: str
progress:
  description: What the loading instances are at, in their own words.
  returned: O(state=ready)
  type: list
  elements: str
failed_instances:
  description: The instances that failed, each with its last words.
  returned: failure
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.node import files, releases, systemd, wait
from ansible_collections.baremetal.inference.plugins.module_utils.paths import Paths, unit_name
from ansible_collections.baremetal.inference.plugins.module_utils.release import TARGET_UNIT


class Service:
    """Acts on units; in check mode it only says what it would do."""

    def __init__(self, module: AnsibleModule, paths: Paths) -> None:
        self.check_mode = module.check_mode
        self.paths = paths
        self.changed = False

    def start(self, names: list[str]) -> list[str]:
        """Start the instances that neither serve nor load. Returns them."""
        idle = [outcome.instance for outcome in wait.look(self.paths, names) if outcome.state == "failed"]
        if self.check_mode:
            self.changed |= bool(idle) or not self.paths.target.exists()
            return idle
        # One that systemd starts again and again, in vain, gets the release that is wanted now.
        self.stop(idle)
        reload = files.write(self.paths.target, TARGET_UNIT)
        for name in idle:
            number = releases.desired_number(self.paths, name)
            if number is None:
                raise releases.ReleaseError(f"{self.paths.instance(name)}: names no release: run engine_release first")
            reload |= releases.activate(self.paths, name, number)
        if reload:
            systemd.systemctl("daemon-reload")
        units = [unit_name(name) for name in idle]
        self.enable(["inference.target", *map(unit_name, names)])
        if units:
            # A start that was wished for counts anew: earlier failures must not hold it back.
            systemd.systemctl("reset-failed", *units)
            systemd.systemctl("start", "--no-block", *units)
        self.changed |= reload or bool(units)
        return idle

    def enable(self, units: list[str]) -> None:
        """Enable the units that are not enabled."""
        missing = [unit for unit in units if not systemd.is_enabled(unit)]
        if missing:
            systemd.systemctl("enable", *missing)
            self.changed = True

    def stop(self, names: list[str]) -> None:
        """Stop the instances that run or that systemd would start again."""
        running = [unit_name(name) for name in names if systemd.active_state(unit_name(name)) in systemd.RUNNING]
        self.changed |= bool(running)
        if running and not self.check_mode:
            systemd.systemctl("stop", *running)

    def proven(self, name: str) -> bool:
        """Whether the release that is installed has answered before: then its failure may pass."""
        active = releases.active_number(self.paths, name)
        return active is not None and active == releases.current_number(self.paths, name)

    def prove(self, names: list[str]) -> None:
        """Mark the releases that answered as the last that are known to work."""
        for name in names:
            active = releases.active_number(self.paths, name)
            if active is not None:
                self.changed |= releases.commit(self.paths, name, active)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "names": {"type": "list", "elements": "str", "required": True},
            "state": {"type": "str", "choices": ["started", "ready", "stopped"], "default": "started"},
            "timeout": {"type": "int", "default": 20},
        },
        supports_check_mode=True,
    )
    names = module.params["names"]
    service = Service(module, Paths())
    try:
        if module.params["state"] == "started":
            module.exit_json(started=service.start(names), changed=service.changed)
        if module.params["state"] == "stopped":
            service.stop(names)
            module.exit_json(changed=service.changed)
        await_ready(module, service, names)
    except (releases.ReleaseError, systemd.SystemdError, OSError, ValueError) as error:
        module.fail_json(msg=str(error))


def await_ready(module: AnsibleModule, service: Service, names: list[str]) -> None:
    """Wait, prove what answered, stop what never did."""
    if module.check_mode:
        # What has never answered would be started before, and would then prove itself for the first time.
        unproven = [name for name in names if releases.current_number(service.paths, name) is None]
        module.exit_json(changed=bool(unproven), ready=[], loading=[], progress=[])
    found = wait.wait_ready(service.paths, names, module.params["timeout"])
    outcomes = {outcome.instance: outcome for outcome in found}
    ready = [name for name, outcome in outcomes.items() if outcome.state == "ready"]
    loading = [name for name, outcome in outcomes.items() if outcome.state == "loading"]
    failed = {name: outcome.last_words for name, outcome in outcomes.items() if outcome.state == "failed"}
    service.prove(ready)
    if failed:
        service.stop([name for name in failed if not service.proven(name)])
        blocks = [
            f"{name} did not start. Its last words:\n{words}\n"
            f"The whole log: journalctl -t vllm@{name} -u {unit_name(name)}"
            for name, words in failed.items()
        ]
        module.fail_json(msg="\n\n".join(blocks), failed_instances=failed, ready=ready, loading=loading)
    module.exit_json(
        changed=service.changed,
        ready=ready,
        loading=loading,
        progress=[f"{name}: {outcomes[name].status}" for name in loading],
    )


if __name__ == "__main__":
    main()
