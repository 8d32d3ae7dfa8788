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
    """Acts on units; in check mode it only says what it would do."""

    def __init__(self, module: Call, paths: Paths) -> None:
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
        """The names without those in a swap: only the swap starts and proves a release that it has not tried."""
        swapped = [name for name in names if swaps.read(self.paths, name)]
        for name in swapped:
            self.warn(f"{name} is being swapped, or was when a swap was cut off: see inferctl status")
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


def await_ready(module: Call, service: Service, names: list[str]) -> None:
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
