# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an instance leaves on a node, and what is left of the last one: how it goes. Private to the collection.

What was begun and cut off is gone on with: the releases go last, and by them the next run knows the instance.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..core import docker_api, files, systemd
from ..core.paths import (
    AGENT_UNIT,
    METRICS_TEMPLATE,
    METRICS_TIMERS,
    RECOVERY_DISPATCH,
    RECOVERY_PATH,
    RECOVERY_TEMPLATE,
    Paths,
    container_name,
    unit_name,
)
from ..models.registry.variants import lineage
from .state import releases

FORGET_SECONDS = 15.0
"""Longer than the agent takes to see that an instance has gone."""

STAYING = (Path("/"), Path("/mnt"), Path("/srv"), Path("/var"), Path("/var/lib"), Path("/opt"), Path("/home"))
"""Directories that a machine has without us."""

METRICS = "inference-*.prom"
"""What we write for node_exporter."""


def traces(paths: Paths, name: str) -> list[Path]:
    """The files that an instance leaves on a node, but for its releases, its probe and its drain."""
    return [
        paths.unit(name),
        paths.env(name),
        paths.instance(name),
        paths.known_good(name),
        paths.starts(name),
        paths.pin(name),
        paths.history(name),
        paths.swap(name),
        paths.recovered(name),
        paths.recovered_meanwhile(name),
        paths.deaths(name),
        paths.recovery_requests / name,
    ]


def directories(paths: Paths, name: str) -> list[Path]:
    """The directories that an instance leaves, but for its releases."""
    return [paths.evidence(name), paths.aside(name)]


def left(paths: Paths, name: str) -> bool:
    """Whether anything of an instance is on the node."""
    found = [*traces(paths, name), *directories(paths, name), paths.releases(name), paths.drain(name)]
    return any(path.exists() for path in found)


def remove(paths: Paths, name: str, *, check: bool) -> bool:
    """Stop an instance, and remove all of it but its logs and its compile cache. Returns whether there was anything.

    Raises SystemdError and OSError.
    """
    if not left(paths, name):
        return False
    if check:
        return True
    systemd.stop_and_disable(unit_name(name), installed=paths.unit(name).exists())
    for path in traces(paths, name):
        files.write(path, None)
    for directory in directories(paths, name):
        shutil.rmtree(directory, ignore_errors=True)
    systemd.systemctl("daemon-reload")
    if paths.releases(name).exists():
        shutil.rmtree(paths.releases(name))
    _await_forgotten(paths.probe(name))
    files.write(paths.drain(name), None)
    return True


def _await_forgotten(probe: Path) -> None:
    """Wait until the agent, which still has its last verdict, would not answer by it any more."""
    deadline = time.monotonic() + FORGET_SECONDS
    while probe.exists() and time.monotonic() < deadline:
        time.sleep(0.5)
    # Without an agent, nobody else does it.
    files.write(probe, None)


def remove_container(docker: docker_api.Docker, name: str) -> bool:
    """Remove what a supervisor that was killed has left. Returns whether there was one.

    Raises DockerUnavailable and DockerError.
    """
    container = container_name(name)
    if docker.inspect(container) is None:
        return False
    docker.remove(container)
    return True


def forget_models(paths: Paths, gone: Iterable[str], *, check: bool) -> list[str]:
    """Take the entries out of the node's registry that only instances need that go. Returns their names.

    Raises OSError, and ValueError where the desired state is damaged.
    """
    registry = files.read_json(paths.registry)
    models = registry.get("models", {}) if isinstance(registry, dict) else {}
    staying = [name for name in releases.names(paths) if name not in set(gone)]
    states = [files.read_json(paths.instance(name)) or {} for name in staying]
    needed = {entry for state in states for entry in lineage(models, state.get("model", ""))}
    unneeded = sorted(set(models) - needed)
    if unneeded and not check:
        kept = {name: entry for name, entry in models.items() if name in needed}
        files.write_json(paths.registry, {**registry, "models": kept})
    return unneeded


def caches(cache_path: Path, names: Sequence[str]) -> list[Path]:
    """The compile caches of instances that are there."""
    return [path for name in names if (path := cache_path / name).is_dir()]


def node_traces(paths: Paths) -> list[Path]:
    """What is ours on a node without instances, agent and recovery, and what is no engine's: files and directories."""
    # Beside them lie the trials of the role common, which stays.
    memory = [paths.recovery_requests, paths.recovered_meanwhile("").parent, paths.share, paths.gpu_clocks]
    found = [paths.target, paths.etc, paths.state, *memory, *sorted(paths.textfiles.glob(METRICS))]
    return [path for path in found if path.exists()]


def refuse_instances(paths: Paths) -> None:
    """Raise ValueError while an instance is left: what it runs by must not vanish below it."""
    if there := releases.names(paths):
        raise ValueError(f"{', '.join(there)} must leave the node first: decommission.yml -e instance={there[0]}")


def remove_node_traces(paths: Paths, keep: Sequence[Path] = (), *, check: bool) -> list[Path]:
    """Remove them, but for what is to be kept below them. Returns what goes. Raises SystemdError and OSError.

    The lock of the run that asks for it goes as well, and is no change.
    """
    own = [*keep, paths.lock, paths.lock_guard]
    going = [path for path in node_traces(paths) if not _only(path, own)]
    if check:
        return going
    if paths.target in going:
        systemd.stop_and_disable(paths.target.name, installed=True)
    for path in node_traces(paths):
        _clear(path, keep)
    if going:
        systemd.systemctl("daemon-reload")
    return going


def remove_services(paths: Paths, *, check: bool) -> list[Path]:
    """Stop agent, metrics and recovery, and remove their units and slices. Returns the unit files that were there.

    Raises SystemdError, OSError.
    """
    units = [paths.agent_unit, *paths.metrics_units.values(), *paths.recovery_units.values()]
    # The agent asks for recoveries, and the path unit waits for the agent: first those, then what they start.
    stopped = [*METRICS_TIMERS, AGENT_UNIT, RECOVERY_PATH, RECOVERY_DISPATCH]
    there, _running = systemd.remove_units(units, stopped, check=check)
    if not check:
        _remove_slices()
    return there


def _remove_slices() -> None:
    """Stop the slices of our templates. Raises SystemdError."""
    templates = [METRICS_TEMPLATE, RECOVERY_TEMPLATE]
    # The engine of another owner would stop with its slice.
    states = ",".join(sorted({*systemd.RUNNING, "deactivating"}))
    if not systemd.systemctl("list-units", "--plain", "--no-legend", f"--state={states}", unit_name("*")).strip():
        templates.append(unit_name(""))
    for template in templates:
        systemd.stop_and_disable(slice_of(template), installed=False)


def slice_of(template: str) -> str:
    r"""The slice that systemd makes for a template's instances, and keeps without them until the next boot.

    Source: systemd.slice(5); in its name, a hyphen would stand for a slice within another: \x2d.
    """
    name = template.partition("@")[0].replace("-", r"\x2d")
    return f"system-{name}.slice"


def remove_directories(wanted: Iterable[Path], *, check: bool) -> list[Path]:
    """Remove directories, and the directories above them that are empty then. Returns the wanted ones that were there.

    Raises OSError.
    """
    there = [path for path in wanted if path.is_dir()]
    for path in [] if check else there:
        shutil.rmtree(path)
        for parent in path.parents:
            if parent in STAYING or parent.is_mount() or any(parent.iterdir()):
                break
            parent.rmdir()
    return there


def _only(path: Path, kept: Sequence[Path]) -> bool:
    """Whether a directory holds nothing but what is kept."""
    held = [each for each in path.rglob("*") if not each.is_dir()] if path.is_dir() else []
    return bool(held) and all(each in kept for each in held)


def _clear(path: Path, keep: Sequence[Path]) -> None:
    """Remove a file, or a directory as far as it holds nothing that is kept."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    for child in path.iterdir():
        if child not in keep:
            _clear(child, keep)
    if not any(path.iterdir()):
        path.rmdir()
