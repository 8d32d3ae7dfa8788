#!/usr/bin/python
# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: engine_service
short_description: Start, await, stop and remove the engines of a node
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
      - V(started) installs the unit of the desired release, or of the one that is pinned in its place, where the
        instance does not run, enables it and starts it without waiting for the answer. Of an instance that runs, the
        files of the release that runs are repaired, so that it comes back after its end.
      - V(ready) waits until every instance has answered a completion, and marks the release that answered as proven.
        A release that failed to start and has never answered is stopped, so that it does not go on trying with what
        cannot work; one that has answered before is left to systemd. The module fails with the engine's last words.
      - V(stopped) stops the instances and leaves their units in place.
      - V(absent) stops the engines, and removes their units, containers, environments, releases, histories, probes,
        drains, compile caches, and what the recovery has kept of them. Images that only their releases needed go as
        well. Models stay, and so do logs. It does not ask whether clients still need them; the playbook C(decommission)
        does that, and drains them first. The bridge of an instance goes along with the instance, or alone by its own
        name, as RV(bridge) or M(baremetal.inference.engine_facts) returns it. An instance that is not there is fine.
    type: str
    choices: [started, ready, stopped, absent]
    default: started
  prove:
    description:
      - Whether V(ready) marks what answered as proven. An update wants to see more of a release first.
    type: bool
    default: true
  timeout:
    description: How long V(ready) waits, in seconds. Instances that load longer are returned as RV(loading).
    type: int
    default: 20
  bridge:
    description:
      - Starts the bridge of the one instance of O(names) instead, without waiting for its answer. A bridge is a second
        engine that serves while the instance is swapped. It runs one of the instance's releases, on a port and GPUs of
        its own.
      - It is drained from the beginning, until it has passed the acceptance probe. A bridge that runs the same is left
        alone, but drained.
      - By its own name, RV(bridge), all modules handle it like any instance.
      - Goes with V(started) alone.
    type: dict
    suboptions:
      release:
        description: The number of the instance's release that it runs.
        type: int
        required: true
      port:
        description: Where it listens.
        type: int
        required: true
      gpus:
        description: The GPUs that it gets, by index or UUID.
        type: list
        elements: str
        default: []
  cache_path:
    description: Where each instance has its compile cache, for V(absent) to remove; empty to leave it.
    type: str
    default: ""
extends_documentation_fragment:
  - baremetal.inference.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: partial
    details:
      - Of what O(state=absent) removes.
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

- name: Start the bridge of an instance
  baremetal.inference.engine_service:
    names: [main]
    bridge:
      release: 4
      port: 5105

- name: Remove an instance
  baremetal.inference.engine_service:
    names: [main]
    state: absent
    cache_path: /mnt/nvme/workspace/vllm_cache
"""

RETURN = r"""
started:
  description: The instances that were started by this call.
  returned: O(state=started) without O(bridge)
  type: list
  elements: str
due:
  description:
    - Whether anything was or is left to do until every instance serves, an engine to start or to wait for, a file or a
      unit to repair, or a release to mark as proven.
  returned: O(state=started) without O(bridge)
  type: bool
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
bridge:
  description: The name of the bridge.
  returned: if O(bridge) is given
  type: str
release:
  description: The number that the release has as one of the bridge's own.
  returned: if O(bridge) is given
  type: int
removed:
  description: The instances that were removed, or would be in check mode.
  returned: O(state=absent)
  type: list
  elements: str
also:
  description: What was removed with them, as compile caches, containers, images, and entries of the node's registry.
  returned: O(state=absent)
  type: list
  elements: str
"""

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baremetal.inference.plugins.module_utils.core import files, systemd
from ansible_collections.baremetal.inference.plugins.module_utils.core.docker_api import (
    Docker,
    DockerError,
    DockerUnavailable,
)
from ansible_collections.baremetal.inference.plugins.module_utils.core.paths import Paths, unit_name
from ansible_collections.baremetal.inference.plugins.module_utils.core.problems import InputError
from ansible_collections.baremetal.inference.plugins.module_utils.engine import bridges, load_time, removal
from ansible_collections.baremetal.inference.plugins.module_utils.engine.instances import bridge_name, bridged_instance
from ansible_collections.baremetal.inference.plugins.module_utils.engine.probe import wait
from ansible_collections.baremetal.inference.plugins.module_utils.engine.release import TARGET_UNIT
from ansible_collections.baremetal.inference.plugins.module_utils.engine.state import (
    drains,
    history,
    pins,
    releases,
    swaps,
)
from ansible_collections.baremetal.inference.plugins.module_utils.maintenance import docker_disk

BRIDGE: dict[str, Any] = {
    "release": {"type": "int", "required": True},
    "port": {"type": "int", "required": True},
    "gpus": {"type": "list", "elements": "str", "default": []},
}


class Service:
    """Acts on units; in check mode it only says what it would do."""

    def __init__(self, module: AnsibleModule, paths: Paths) -> None:
        self.check_mode = module.check_mode
        self.warn = module.warn
        self.paths = paths
        self.changed = False
        self.waits = False
        """Whether an engine has to be waited for, or to be marked as proven, when all that is started is started."""

    def start(self, names: list[str]) -> list[str]:
        """Start the instances that neither serve nor load, and repair the installed files of all. Returns the former.

        An engine that runs keeps its release: systemd needs the files of that one when the engine dies.
        """
        states = {outcome.instance: outcome.state for outcome in wait.outcomes(self.paths, names)}
        idle = [name for name, state in states.items() if state == "failed"]
        self.waits = any(state != "ready" or self.unmarked(name) for name, state in states.items())
        # One that systemd starts again and again, in vain, gets the release that is wanted now.
        self.stop(idle)
        reload = self.install_target()
        for name in names:
            reload |= self.install_idle(name) if name in idle else self.repair(name)
        self.changed |= reload or bool(idle)
        # What runs and could not be repaired may have no unit file left.
        sound = [name for name in names if name in idle or self.paths.unit(name).exists()]
        self.enable(["inference.target", *map(unit_name, sound)], reload)
        if idle and not self.check_mode:
            units = list(map(unit_name, idle))
            # A start that was wished for counts anew: earlier failures must not hold it back.
            systemd.systemctl("reset-failed", *units)
            systemd.systemctl("start", "--no-block", *units)
        return idle

    def left_alone(self, names: list[str]) -> list[str]:
        """The names without those that an update is at: nobody else starts or proves what it has not tried."""
        swapped = [name for name in names if swaps.read(self.paths, name)]
        for name in swapped:
            self.warn(f"{name} is being swapped by an update, or was when one was cut off: run update_model.yml again")
        return [name for name in names if name not in swapped]

    def install_target(self) -> bool:
        """Have the target that all units belong to. Returns whether it changed."""
        if self.check_mode:
            return not files.same(self.paths.target, TARGET_UNIT)
        return files.write(self.paths.target, TARGET_UNIT)

    def install_idle(self, name: str) -> bool:
        """Install the desired release. Returns whether that changed anything. Raises ReleaseError."""
        if self.check_mode:
            # It may not be on the node yet, and a start is a change in any case.
            return True
        number = pins.wanted_number(self.paths, name)
        if number is None:
            raise releases.ReleaseError(self.paths.instance(name), "names no release")
        return releases.activate(self.paths, name, number)

    def repair(self, name: str) -> bool:
        """Install what runs once more, where its files were removed or edited. Returns whether anything changed."""
        number = releases.active_number(self.paths, name)
        if number is None:
            self.warn(
                f"{name} runs, but {self.paths.active(name)} does not tell which release: its unit is not checked"
            )
            return False
        try:
            if self.check_mode:
                return not releases.installed(self.paths, name, number)
            return releases.activate(self.paths, name, number)
        except releases.ReleaseError as error:
            # It serves; only its next start is in danger, and the desired release is not this one.
            self.warn(f"{name} runs, but may not come back after its end: {error}")
            return False

    def enable(self, units: list[str], reload: bool) -> None:
        """Let systemd read units that changed, and enable those that are not."""
        shown = self.shown(units)
        # A file that was edited and put right again, or an earlier run that was cut off.
        reload |= any(unit["NeedDaemonReload"] == "yes" for unit in shown.values())
        self.changed |= reload
        if reload and not self.check_mode:
            systemd.systemctl("daemon-reload")
            shown = self.shown(units)
        missing = [name for name, unit in shown.items() if unit["UnitFileState"] != "enabled"]
        self.changed |= bool(missing)
        if missing and not self.check_mode:
            systemd.systemctl("enable", *missing)

    @staticmethod
    def shown(units: list[str]) -> dict[str, dict[str, str]]:
        """What systemd knows of the units' files."""
        return systemd.show(units, ["NeedDaemonReload", "UnitFileState"])

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

    def unmarked(self, name: str) -> bool:
        """Whether prove() would change anything."""
        active = releases.active_number(self.paths, name)
        return active is not None and not releases.proven(self.paths, name, active)

    def prove(self, names: list[str]) -> None:
        """Mark the releases that answered as the last that are known to work."""
        for name in names:
            active = releases.active_number(self.paths, name)
            if active is not None and releases.commit(self.paths, name, active):
                now = drains.format_time(datetime.now(UTC))
                history.add(self.paths, name, history.Served(active, now, load_time.seconds(name)))
                self.changed = True


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "names": {"type": "list", "elements": "str", "required": True},
            "state": {"type": "str", "choices": ["started", "ready", "stopped", "absent"], "default": "started"},
            "prove": {"type": "bool", "default": True},
            "timeout": {"type": "int", "default": 20},
            "bridge": {"type": "dict", "options": BRIDGE},
            "cache_path": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    names = module.params["names"]
    if module.params["bridge"]:
        start_bridge(module, Paths())
    elif module.params["state"] == "absent":
        remove_instances(module, Paths())
    else:
        serve(module, Service(module, Paths()), names)


def serve(module: AnsibleModule, service: Service, names: list[str]) -> None:
    """Start, await or stop instances."""
    if module.params["prove"] and module.params["state"] != "stopped":
        names = service.left_alone(names)
    try:
        if module.params["state"] == "started":
            started = service.start(names)
            module.exit_json(started=started, due=service.changed or service.waits, changed=service.changed)
        if module.params["state"] == "stopped":
            service.stop(names)
            module.exit_json(changed=service.changed)
        await_ready(module, service, names)
    except (releases.ReleaseError, systemd.SystemdError, OSError, ValueError) as error:
        module.fail_json(msg=str(error))


def start_bridge(module: AnsibleModule, paths: Paths) -> None:
    """Start the bridge of an instance."""
    given, names = module.params["bridge"], module.params["names"]
    if len(names) != 1 or module.params["state"] != "started":
        module.fail_json(msg="bridge starts the bridge of one instance: give one name, and the state started")
    wish = bridges.Wish(names[0], given["release"], given["port"], tuple(given["gpus"]))
    try:
        changed, number = bridges.start(paths, wish, datetime.now(UTC), check=module.check_mode)
    except (InputError, releases.ReleaseError, systemd.SystemdError, OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=changed, bridge=bridge_name(wish.name), release=number)


def remove_instances(module: AnsibleModule, paths: Paths) -> None:
    """Remove instances and bridges, and report what is gone."""
    names, check = module.params["names"], module.check_mode
    # Of a bridge nothing but the bridge goes: its image and its model are those of the instance, which stays.
    alone = [name for name in names if bridged_instance(name)]
    try:
        removed = [name for name in alone if bridges.remove(paths, bridged_instance(name), check=check)]
        gone, also = remove(
            paths, Docker(), [name for name in names if name not in alone], module.params["cache_path"], check=check
        )
    except (releases.ReleaseError, systemd.SystemdError, DockerError, DockerUnavailable, OSError, ValueError) as error:
        module.fail_json(msg=f"{', '.join(names)}: {error}. Run it again: it goes on from where it stopped.")
    removed += gone
    lines = [*(f"instance {name}" for name in removed), *also]
    module.exit_json(
        changed=bool(lines),
        removed=removed,
        also=also,
        diff={"before": "".join(f"{line}\n" for line in lines), "after": ""},
    )


def images_of(paths: Paths, names: list[str]) -> set[str]:
    """The images that the releases of instances need; one that is damaged needs none any more."""
    found = set()
    for name in names:
        for number in releases.numbers(paths, name):
            try:
                found.add(releases.load(paths, name, number).image)
            except releases.ReleaseError:
                continue
    return found


def remove(
    paths: Paths, docker: Docker, instances: list[str], cache_path: str, *, check: bool
) -> tuple[list[str], list[str]]:
    """The instances that go, and what goes with them. Raises what the parts raise."""
    if not instances:
        return [], []
    names = [each for name in instances for each in (name, bridge_name(name))]
    before = images_of(paths, names)
    caches = removal.caches(Path(cache_path), names) if cache_path else []
    removed = [name for name in names if removal.remove(paths, name, check=check)]
    also = [f"entry {name} of the node's registry" for name in removal.forget_models(paths, removed, check=check)]
    for cache in caches:
        also.append(str(cache))
        if not check:
            shutil.rmtree(cache)
    # A node whose Docker was never installed, or is gone, has neither.
    if docker.path.exists():
        # In check mode, those of engines that run are still there, and go with them.
        for name in [] if check else names:
            if removal.remove_container(docker, name):
                also.append(f"container of {name}")
        also += [] if check else [f"image {item.name}" for item in docker_disk.Disk(docker, paths).forget(before)]
    return removed, also


def await_ready(module: AnsibleModule, service: Service, names: list[str]) -> None:
    """Wait, prove what answered, stop what never did."""
    if module.check_mode:
        # What does not run would be started before, with a release that may be staged only then.
        changed = [
            outcome.instance
            for outcome in wait.outcomes(service.paths, names)
            if outcome.state == "failed" or service.unmarked(outcome.instance)
        ]
        module.exit_json(changed=bool(changed), ready=[], loading=[], progress=[])
    found = wait.wait_ready(service.paths, names, module.params["timeout"])
    outcomes = {outcome.instance: outcome for outcome in found}
    ready = [name for name, outcome in outcomes.items() if outcome.state == "ready"]
    load_time = [name for name, outcome in outcomes.items() if outcome.state == "loading"]
    failed = {name: outcome.last_words for name, outcome in outcomes.items() if outcome.state == "failed"}
    if module.params["prove"]:
        service.prove(ready)
    if failed:
        service.stop([name for name in failed if not module.params["prove"] or not service.proven(name)])
        blocks = [
            f"{name} did not start. Its last words:\n{words}\n"
            f"The whole log: journalctl -t vllm@{name} -u {unit_name(name)}"
            for name, words in failed.items()
        ]
        module.fail_json(msg="\n\n".join(blocks), failed_instances=failed, ready=ready, loading=load_time)
    module.exit_json(
        changed=service.changed,
        ready=ready,
        loading=load_time,
        progress=[f"{name}: {outcomes[name].status}" for name in load_time],
    )


if __name__ == "__main__":
    main()
