# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The implementation of the module engine_service."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

from ...core import files, systemd
from ...core.call import Call
from ...core.docker_api import (
    Docker,
    DockerError,
    DockerUnavailable,
)
from ...core.paths import Paths, unit_name
from ...core.problems import InputError
from ...engine import bridges, load_time, removal
from ...engine.inventory import bridge_name, bridged_instance
from ...engine.probe import wait
from ...engine.release import TARGET_UNIT
from ...engine.state import (
    drains,
    history,
    pins,
    releases,
    swaps,
)
from ...maintenance import docker_disk


class Service:
    """Starts, stops and repairs units. In check mode, it only records what it would change."""

    def __init__(self, module: Call, paths: Paths) -> None:
        self.check_mode = module.check_mode
        self.warn = module.warn
        self.paths = paths
        self.changed = False
        self.waits = False
        """Whether an engine still has to answer, or its release has to be marked as proven, after start()."""

    def start(self, names: list[str]) -> list[str]:
        """Start the instances that neither serve nor load, and repair the installed files of all others. Returns the
        started instances.

        An engine that runs keeps its release, since systemd needs the files of that release if the engine dies.
        """
        states = {outcome.instance: outcome.state for outcome in wait.outcomes(self.paths, names)}
        down = [name for name, state in states.items() if state == "failed"]
        self.waits = any(state != "ready" or self.unmarked(name) for name, state in states.items())
        # A unit that systemd restarts again and again without success gets the release that is desired now.
        self.stop(down)
        reload = self.install_target()
        for name in names:
            reload |= self.install_desired(name) if name in down else self.repair(name)
        self.changed |= reload or bool(down)
        # An instance that runs and could not be repaired may have no unit file.
        sound = [name for name in names if name in down or self.paths.unit(name).exists()]
        self.enable(["inference.target", *map(unit_name, sound)], reload)
        if down and not self.check_mode:
            units = list(map(unit_name, down))
            # An operator or playbook wants this start: earlier failures must not prevent it.
            systemd.systemctl("reset-failed", *units)
            systemd.systemctl("start", "--no-block", *units)
        return down

    def without_swap(self, names: list[str]) -> list[str]:
        """The names of instances without a swap. Warns of each instance that has one: during a swap, only the swap may
        start and prove releases."""
        swapped = [name for name in names if swaps.read(self.paths, name)]
        for name in swapped:
            self.warn(f"{name} was left alone: it is in a swap, or its swap was cut off. See inferctl status")
        return [name for name in names if name not in swapped]

    def install_target(self) -> bool:
        """Install the target to which all units belong. Returns whether it changed."""
        if self.check_mode:
            return not files.same(self.paths.target, TARGET_UNIT)
        return files.write(self.paths.target, TARGET_UNIT)

    def install_desired(self, name: str) -> bool:
        """Install the desired release. Returns whether anything changed. Raises ReleaseError."""
        if self.check_mode:
            # The release may not be on the node yet, and a start is a change in any case.
            return True
        number = pins.wanted_number(self.paths, name)
        if number is None:
            raise releases.ReleaseError(self.paths.instance(name), "names no release")
        return releases.activate(self.paths, name, number)

    def repair(self, name: str) -> bool:
        """Install the running release again, if its files were removed or edited. Returns whether anything changed."""
        number = releases.active_number(self.paths, name)
        if number is None:
            self.warn(f"{name} runs, but {self.paths.active(name)} does not name its release: its unit is not checked")
            return False
        try:
            if self.check_mode:
                return not releases.installed(self.paths, name, number)
            return releases.activate(self.paths, name, number)
        except releases.ReleaseError as error:
            # The engine runs: only its next start is in danger. Another release is a matter of the swap.
            self.warn(f"{name} runs, but may not start again after its end: {error}")
            return False

    def enable(self, units: list[str], reload: bool) -> None:
        """Reload systemd if units changed, and enable the units that are not enabled."""
        shown = self.shown(units)
        # True after a unit was edited and restored, or after an earlier run was cut off.
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
        """systemd's properties of the units' files."""
        return systemd.show(units, ["NeedDaemonReload", "UnitFileState"])

    def stop(self, names: list[str]) -> None:
        """Stop the instances that run or that systemd would start again."""
        running = [unit_name(name) for name in names if systemd.active_state(unit_name(name)) in systemd.RUNNING]
        self.changed |= bool(running)
        if running and not self.check_mode:
            systemd.systemctl("stop", *running)

    def proven(self, name: str) -> bool:
        """Whether the active release is the one that last proved itself, so that its failure may be temporary."""
        active = releases.active_number(self.paths, name)
        return active is not None and active == releases.current_number(self.paths, name)

    def unmarked(self, name: str) -> bool:
        """Whether prove() would change anything."""
        active = releases.active_number(self.paths, name)
        return active is not None and not releases.proven(self.paths, name, active)

    def prove(self, names: list[str]) -> None:
        """Mark the releases that answered as current."""
        for name in names:
            active = releases.active_number(self.paths, name)
            if active is not None and releases.commit(self.paths, name, active):
                now = drains.format_time(datetime.now(UTC))
                history.add(self.paths, name, history.Served(active, now, load_time.seconds(name)))
                self.changed = True


def run(module: Call) -> None:
    """Answer a call."""
    names = module.params["names"]
    if module.params["bridge"]:
        start_bridge(module, Paths())
    elif module.params["state"] == "absent":
        remove_instances(module, Paths())
    else:
        serve(module, Service(module, Paths()), names)


def serve(module: Call, service: Service, names: list[str]) -> None:
    """Start instances, stop them, or wait for them."""
    if module.params["prove"] and module.params["state"] != "stopped":
        names = service.without_swap(names)
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


def start_bridge(module: Call, paths: Paths) -> None:
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


def remove_instances(module: Call, paths: Paths) -> None:
    """Remove instances and bridges, and report what was removed."""
    names, check = module.params["names"], module.check_mode
    # With a bridge, only the bridge is removed: its image and model belong to the instance, which stays.
    alone = [name for name in names if bridged_instance(name)]
    try:
        removed = [name for name in alone if bridges.remove(paths, bridged_instance(name), check=check)]
        gone, also = remove(
            paths, Docker(), [name for name in names if name not in alone], module.params["cache_path"], check=check
        )
    except (releases.ReleaseError, systemd.SystemdError, DockerError, DockerUnavailable, OSError, ValueError) as error:
        module.fail_json(msg=f"{', '.join(names)}: {error}. Correct this and run again: the removal continues.")
    removed += gone
    lines = [*(f"instance {name}" for name in removed), *also]
    module.exit_json(
        changed=bool(lines),
        removed=removed,
        also=also,
        diff={"before": "".join(f"{line}\n" for line in lines), "after": ""},
    )


def images_of(paths: Paths, names: list[str]) -> set[str]:
    """The images of the instances' releases. A damaged release counts as one without an image."""
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
    """The removed instances, and what was removed with them.

    Raises ReleaseError, SystemdError, DockerError, DockerUnavailable, OSError, ValueError.
    """
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
    # A node without Docker has neither containers nor images.
    if docker.path.exists():
        # Not in check mode: containers that end with their units would be listed, too.
        for name in [] if check else names:
            if removal.remove_container(docker, name):
                also.append(f"container of {name}")
        also += [] if check else [f"image {item.name}" for item in docker_disk.Disk(docker, paths).forget(before)]
    return removed, also


def await_ready(module: Call, service: Service, names: list[str]) -> None:
    """Wait for engines, and stop instances whose start failed.

    With `prove`, mark releases that answered as proven. Then an instance whose release is proven already is not
    stopped: systemd starts it again.
    """
    if module.check_mode:
        # A real run would start the stopped instances first, with releases that may not be staged yet.
        changed = [
            outcome.instance
            for outcome in wait.outcomes(service.paths, names)
            if outcome.state == "failed" or (module.params["prove"] and service.unmarked(outcome.instance))
        ]
        module.exit_json(changed=bool(changed), ready=[], loading=[], progress=[])
    found = wait.wait_ready(service.paths, names, module.params["timeout"])
    outcomes = {outcome.instance: outcome for outcome in found}
    ready = [name for name, outcome in outcomes.items() if outcome.state == "ready"]
    loading = [name for name, outcome in outcomes.items() if outcome.state == "loading"]
    failed = {name: outcome.last_words for name, outcome in outcomes.items() if outcome.state == "failed"}
    if module.params["prove"]:
        service.prove(ready)
    if failed:
        service.stop([name for name in failed if not module.params["prove"] or not service.proven(name)])
        blocks = [
            f"{name} did not start. Its last log lines:\n{words}\n"
            f"The whole log: journalctl -t vllm@{name}; journalctl -u vllm@{name}"
            for name, words in failed.items()
        ]
        module.fail_json(msg="\n\n".join(blocks), failed_instances=failed, ready=ready, loading=loading)
    progress = [f"{name}: {outcomes[name].status}" for name in loading]
    # If an engine still loads at a task's last try, Ansible fails the task with this message.
    words = f"still loading: {'; '.join(progress)}" if progress else ""
    module.exit_json(changed=service.changed, ready=ready, loading=loading, progress=progress, msg=words)
