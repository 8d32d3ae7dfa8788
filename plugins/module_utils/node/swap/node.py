# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An instance and its node, as the steps of a swap use them. Private to the collection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ...core import systemd
from ...core.docker_api import Docker
from ...core.paths import Paths, unit_name
from ...engine import endpoints, gate
from ...engine.instance_facts import Endpoint
from ...engine.probe import idle
from ...engine.state import releases, swaps
from ...engine.swap_settings import SwapSettings
from . import gateways
from .gateways import Views
from .traffic import Traffic

POLL_SECONDS = 0.3

SETTLED_SECONDS = 10.0
"""How long to wait for a gateway that was just reloaded, before a decision that depends on other servers."""


class StepFailed(Exception):
    """A step cannot be done; the message is for the operator. `permission`: the term that would allow the step."""

    def __init__(self, message: str, permission: str = "") -> None:
        super().__init__(message)
        self.permission = permission


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Node:
    """One instance of a node, and everything that the steps of its swap need."""

    paths: Paths
    name: str
    """The name of the instance."""
    settings: SwapSettings
    traffic: Traffic
    say: Callable[[str], None]
    """Reports a message to the operator."""
    docker: Docker = field(default_factory=Docker)
    now: Callable[[], datetime] = _now

    def ask(self) -> Views:
        """What all gateways show of the instance's replica set."""
        return gateways.ask_all(self.settings.gateways, self.name)

    def ask_settled(self) -> Views:
        """Like ask(), but waits up to SETTLED_SECONDS until all gateways have checked the agents themselves: after a
        reload, this takes a moment."""
        deadline = self.traffic.clock() + SETTLED_SECONDS
        while True:
            views = self.ask()
            if all(view.age >= gateways.YOUNG_SECONDS for view in views.shown) or self.traffic.clock() >= deadline:
                return views
            self.traffic.sleep(POLL_SECONDS)

    @property
    def own(self) -> tuple[str, str]:
        """The names of the servers of the instance, and of its bridge, at the gateways."""
        return gateways.own_servers(self.settings.node, self.name)

    def port(self, target: int) -> int | None:
        """The port of the active release, or else of the target; None if that release is damaged."""
        number = releases.active_number(self.paths, self.name) or target
        try:
            return releases.load(self.paths, self.name, number).port
        except releases.ReleaseError:
            return None

    def endpoints(self, *numbers: int | None) -> tuple[Endpoint, ...]:
        """The endpoints of releases, each once. Leaves out releases that cannot be read. Raises OSError."""
        return endpoints.of(self.paths, self.name, numbers)

    def other_port(self, port: int | None, *numbers: int | None) -> int | None:
        """The port of these releases that differs from `port`; None if there is none. Raises OSError."""
        found = {endpoint.port for endpoint in self.endpoints(*numbers)} - {port}
        return min(found) if port is not None and found else None

    def left_gates(self) -> tuple[int, ...]:
        """The ports of this instance's releases that a stuck swap has left closed.

        Call this only while the gate of the running engine is open. An instance has one engine, so no engine uses a
        closed port. Raises GateError, OSError.
        """
        own = {found.port for found in self.endpoints(*releases.numbers(self.paths, self.name))}
        held: set[int] = set()
        for other in swaps.names(self.paths):
            found = swaps.read(self.paths, other)
            if other != self.name and found:
                # Another instance may use the port by now, and be behind its own gate.
                kept = endpoints.of(self.paths, other, releases.numbers(self.paths, other))
                held |= {*found.closed_ports, *(endpoint.port for endpoint in kept)}
        return tuple(sorted(own & gate.closed() - held))

    def in_flight(self) -> int:
        """Requests at the engine, by its own count; 0 if the engine does not answer."""
        number = releases.active_number(self.paths, self.name)
        if number is None or systemd.active_state(unit_name(self.name)) not in systemd.RUNNING:
            return 0
        try:
            return idle.in_flight(self.paths, releases.load(self.paths, self.name, number)) or 0
        except (OSError, releases.ReleaseError):
            return 0
