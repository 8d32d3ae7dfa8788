# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removes an instance from a node. Private to the collection.

The unit goes before the releases: where a removal is cut off, the next run still finds the instance by its releases.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..core import docker_api, files, systemd
from ..core.paths import Paths, container_name, unit_name
from ..models.registry.needed import needed
from .state import releases

FORGET_SECONDS = 15.0
"""Seconds: longer than the agent needs to notice that an instance is gone."""


def traces(paths: Paths, name: str) -> list[Path]:
    """The files of an instance on a node, without its releases, its drain, and the files that the agent writes."""
    return [
        # First, so that the agent does not take the missing unit for a dead engine.
        paths.instance(name),
        paths.unit(name),
        paths.env(name),
        paths.known_good(name),
        paths.starts(name),
        paths.pin(name),
        paths.history(name),
        paths.swap(name),
        paths.swap_meanwhile(name),
        paths.swap_report(name),
        paths.recovered(name),
        paths.recovered_meanwhile(name),
        paths.deaths(name),
        paths.gang(name),
        paths.gang_move(name),
        paths.recovery_requests / name,
    ]


def directories(paths: Paths, name: str) -> list[Path]:
    """The directories of an instance, without its releases."""
    return [paths.evidence(name), paths.aside(name)]


def left(paths: Paths, name: str) -> bool:
    """Whether anything of an instance is on the node."""
    found = [*traces(paths, name), *directories(paths, name), paths.releases(name), paths.drain(name)]
    return any(path.exists() for path in found)


def remove(paths: Paths, name: str, *, check: bool) -> bool:
    """Stop an instance, and remove everything but its logs and compile cache. Returns whether there was anything.

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
    files.write(paths.gateway_answers(name), None)
    files.write(paths.drain(name), None)
    return True


def _await_forgotten(probe: Path) -> None:
    """Wait until the agent has dropped its last verdict on the instance."""
    deadline = time.monotonic() + FORGET_SECONDS
    while probe.exists() and time.monotonic() < deadline:
        time.sleep(0.5)
    # Without an agent, nothing else removes the file.
    files.write(probe, None)


def remove_container(docker: docker_api.Docker, name: str) -> bool:
    """Remove the container that a killed supervisor has left. Returns whether there was a container.

    Raises DockerUnavailable and DockerError.
    """
    container = container_name(name)
    if docker.inspect(container) is None:
        return False
    docker.remove(container)
    return True


def forget_models(paths: Paths, gone: Iterable[str], *, check: bool) -> list[str]:
    """Remove from the node's model registry the entries that no instance outside of `gone` needs.

    Returns their names.

    Raises OSError, and ValueError where the desired state is damaged.
    """
    registry = files.read_json(paths.registry)
    models = registry.get("models") if isinstance(registry, dict) else None
    if not isinstance(models, dict):
        return []
    staying = [name for name in releases.names(paths) if name not in set(gone)]
    kept_names = needed(models, [_model(paths.instance(name)) for name in staying])
    unneeded = sorted(set(models) - kept_names)
    if unneeded and not check:
        kept = {name: entry for name, entry in models.items() if name in kept_names}
        files.write_json(paths.registry, {**registry, "models": kept})
    return unneeded


def _model(path: Path) -> str:
    """The model in a desired state; empty if there is none. Raises OSError, and ValueError for a damaged file."""
    state = files.read_json(path, missing={})
    if not isinstance(state, dict):
        raise ValueError(f"{path} is damaged: baremetal.inference.site writes it anew")
    return str(state.get("model", ""))


def caches(cache_path: Path, names: Sequence[str]) -> list[Path]:
    """The compile caches of these instances that exist."""
    return [path for name in names if (path := cache_path / name).is_dir()]
