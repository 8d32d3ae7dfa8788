# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bridges: engines that serve in the place of an instance while an update swaps it. Private to the collection.

On the node, a bridge is an instance like any other, with its own releases, unit, drains and probes. The inventory does
not declare bridges: an update starts and removes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ..core import files
from ..core.paths import Paths
from . import activation, bridge_place, listeners, removal
from .inventory import bridge_name, bridged_instance
from .release import Rendered, bridge_of
from .state import drains, lock, releases

NO_PORT = "it has no bridge_port"


@dataclass(frozen=True)
class Wish:
    """A bridge to start: the instance, the release of the instance, and the place."""

    name: str
    release: int
    port: int
    gpus: tuple[str, ...] = ()


def instances(paths: Paths) -> list[str]:
    """The instances on this node, without bridges."""
    return [name for name in releases.names(paths) if not bridged_instance(name)]


def left(paths: Paths, name: str) -> bool:
    """Whether an instance has a bridge, or parts of a bridge."""
    bridge = bridge_name(name)
    return any(path.exists() for path in (paths.releases(bridge), paths.unit(bridge), paths.drain(bridge)))


def declared_port(paths: Paths, name: str) -> int | None:
    """The port on which the bridge of an instance may listen; None where no bridge may run. Raises OSError, and
    ValueError where the desired state is damaged."""
    value = files.read_json(paths.instance(name))
    port = value.get("bridge_port") if isinstance(value, dict) else None
    return port if isinstance(port, int) else None


def place(paths: Paths, name: str, origin: int, target: int, port: int | None) -> bridge_place.Place:
    """Where the bridge of an instance would run, or why no bridge can run. Raises ReleaseError, OSError."""
    bridge = bridge_name(name)
    number = releases.active_number(paths, bridge)
    wanted = releases.load(paths, name, target)
    if wanted.gang is not None:
        return bridge_place.Place(problem="it spans several nodes")
    if port is None:
        room = bridge_place.place(paths, name, origin, target).problem
        return bridge_place.Place(problem=f"{NO_PORT}, and {room}" if room else NO_PORT)
    if number is not None:
        # An update has left this bridge: the new bridge takes its GPUs.
        gpus = tuple(releases.load(paths, bridge, number).gpus)
        return (
            bridge_place.Place(gpus)
            if len(gpus) == len(wanted.gpus)
            else bridge_place.place(paths, name, origin, target)
        )
    owners = listeners.ownership(port, wanted.address, init_pid=None)
    if owners.strangers or owners.unknown:
        return bridge_place.Place(problem=f"its bridge_port {port} is taken by another process")
    return bridge_place.place(paths, name, origin, target)


def unattended(paths: Paths, now: datetime) -> list[str]:
    """The bridges that no update uses: an update was cut off, or could not remove them. Raises nothing."""
    if lock.held(paths, now):
        return []
    return [name for name in releases.names(paths) if bridged_instance(name)]


def start(paths: Paths, wish: Wish, now: datetime, *, check: bool) -> tuple[bool, int]:
    """Start a bridge, drained. Returns whether a bridge was started, and the number of the bridge's release.

    Raises ReleaseError, SystemdError and OSError.
    """
    bridge, original = bridge_name(wish.name), releases.text_of(paths, wish.name, wish.release)

    def rendered(number: int) -> Rendered:
        return bridge_of(original.release, original.environment, wish.port, wish.gpus, number)

    if not check:
        # Before the start: gateways must not use an engine that has not proved itself.
        reason = f"it was started with release {wish.release} of {wish.name}, and has to prove itself"
        drain = drains.Drain(drains.UPDATE, reason, drains.format_time(now))
        drains.drain(paths, [bridge], drain, force=True)
    staged, written = releases.stage(paths, bridge, rendered(0).release.id, rendered, lambda _words: None, check=check)
    number = staged.release.number
    if not written and activation.runs(paths, bridge, number):
        return False, number
    if not check:
        activation.run(paths, bridge, number)
    return True, number


def remove(paths: Paths, name: str, *, check: bool) -> bool:
    """Stop the bridge of an instance, and remove everything of the bridge but its logs. Returns whether one existed.

    Raises SystemdError and OSError.
    """
    if not left(paths, name):
        return False
    if check:
        return True
    return removal.remove(paths, bridge_name(name), check=False)
