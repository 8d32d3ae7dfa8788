# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An outage: the engines of a node get no requests, for work on the node or before a removal. Private to the
collection.

The releases stay, so no gate is needed. The drain alone keeps requests away, so every gateway that may send
requests must confirm the drain.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from ...core import systemd
from ...core.paths import unit_name
from ...core.sizes import counted
from ...engine.state import drains, install_state, releases
from . import proof, way
from .gateways import Views
from .leave import addresses, keep_away
from .node import Node
from .serving import share_of

LOOKS = 2
"""How many looks in a row must find no connection of a client."""

LOOK_SECONDS = 0.3


class Refused(Exception):
    """The outage cannot begin; the message says why."""


@dataclass
class Outage:
    """The outage of the engines of one node."""

    nodes: Sequence[Node]
    """One Node for each instance."""
    owner: str

    def begin(self, reason: str, last: Collection[str], *, check: bool = False) -> bool:
        """Drain the instances. Returns whether anything changed.

        Raises SystemdError, OSError, and Refused before any change if a gateway would have no server left, or does not
        show its servers.
        """
        waiting = [node for node in self.nodes if self._drain(node) is None]
        found = [words for node in waiting if node.name not in last and (words := _last(node))]
        if found:
            raise Refused(f"{'; '.join(found)}. Nothing was changed")
        for node in self.nodes if not check else ():
            keep_away(node, self.owner, reason)
        return bool(waiting)

    def requests(self, seconds: float, last: Collection[str]) -> list[str]:
        """Wait up to `seconds` until the instances have no requests. Returns what is left, one line each.

        Raises SystemdError, and Refused if another node drains the same set at the same time and goes first.
        """
        return self._wait(seconds, lambda node: _requests(node, contested=node.name not in last), LOOKS)

    def end(self, *, check: bool = False) -> bool:
        """Probe the engines that run, and undrain the instances. Returns whether anything changed.

        Raises ReleaseError, SystemdError, OSError, and Unfit if an engine is not fit: its drain stays.
        """
        own = [node for node in self.nodes if (drain := self._drain(node)) and drain.owner == self.owner]
        for node in own if not check else ():
            number = releases.active_number(node.paths, node.name)
            if number is not None and _runs(node):
                # No golden prompts: the prompts of the entry are for the next release, not for one that served before.
                proof.accept(node.paths, node.name, number, [])
            drains.undrain(node.paths, node.name, self.owner, node.now())
        return bool(own)

    def share(self, seconds: float) -> list[str]:
        """Wait up to `seconds` until every gateway gives the engines their full share. Returns what is missing.

        Does not wait for engines that do not run, or that another owner has drained. Raises SystemdError.
        """
        return self._wait(seconds, lambda node: [] if self._drain(node) or not _runs(node) else _share(node), looks=1)

    def _wait(self, seconds: float, missing: Callable[[Node], list[str]], looks: int) -> list[str]:
        traffic = self.nodes[0].traffic
        deadline = traffic.clock() + seconds
        in_a_row = 0
        once = f"{looks} looks in a row must find no requests, only one did"
        while True:
            found = [words for node in self.nodes for words in missing(node)]
            in_a_row = 0 if found else in_a_row + 1
            if in_a_row == looks or traffic.clock() >= deadline:
                return found or ([] if in_a_row == looks else [once])
            traffic.sleep(LOOK_SECONDS)

    def _drain(self, node: Node) -> drains.Drain | None:
        return drains.read(node.paths, node.name, node.now())


def _runs(node: Node) -> bool:
    return systemd.active_state(unit_name(node.name)) in systemd.RUNNING


def _last(node: Node) -> str:
    """Why an instance must not be drained; empty if it may. Raises SystemdError."""
    if not node.settings.gateways or not install_state.serving(node.paths, node.name, node.now()):
        return ""
    views, deaf = node.ask_settled(), node.traffic.deaf(node.name)
    # A gateway that checks the agent sends requests here. If it does not list its servers, it may have only this one.
    blind = [words for gateway, words in views.silent.items() if gateway not in deaf]
    if blind:
        return "; ".join(blind)
    alone = views.alone_at(node.own)
    return way.no_other_server(node.name, alone) if alone else ""


def _requests(node: Node, *, contested: bool) -> list[str]:
    """Which gateways and clients may still send an instance requests, as text. Raises Refused, SystemdError."""
    views = node.ask_settled()
    if contested and (rivals := _contested(node, views)):
        return rivals
    sending = _may_send(node, views) - _cut_off(node, views)
    unconfirmed = (
        [name for name in node.traffic.unconfirmed(node.name, "drain") if name in sending] if _runs(node) else []
    )
    number = releases.active_number(node.paths, node.name)
    port = None if number is None else node.port(number)
    connected = node.traffic.clients(port) if port is not None else []
    found = [f"{name} does not know of the drain of {node.name}" for name in unconfirmed]
    found += [f"{node.name} has {counted(len(connected), 'connection')} of {addresses(connected)}"] if connected else []
    # Without gateways, clients on the node itself show only in the engine's own count.
    busy = node.in_flight() if not node.settings.gateways else 0
    return found + ([f"{node.name} has {counted(busy, 'request')} in flight"] if busy else [])


def _contested(node: Node, views: Views) -> list[str]:
    """A message with the gateways that have no server left because another node drains the set at the same time.

    Raises Refused if the other node goes first.
    """
    own = set(node.own)
    # The drain of this node takes no server from a gateway that has none of this node.
    lacking = [
        view.gateway
        for view in views.shown
        if view.servers.keys() & own and not view.up() - own and way.drained(Views((view,), {}), own)
    ]
    if not lacking:
        return []
    first = way.yields_to(node.settings.node, views, node.own)
    words = way.no_other_server(node.name, lacking)
    if first:
        raise Refused(f"{words}: {', '.join(first)} drains the same set, and goes first")
    return [words]


def _may_send(node: Node, views: Views) -> set[str]:
    """The gateways that may send an instance requests. Leaves out gateways that neither answer nor check the agent."""
    deaf = node.traffic.deaf(node.name)
    listing = {view.gateway for view in views.shown if node.own[0] in view.servers}
    return listing | {name for name in views.silent if name not in deaf}


def _cut_off(node: Node, views: Views) -> set[str]:
    """The gateways that show an instance as down and do not check the agent. When they check the agent
    again, they learn of the drain first."""
    down = {view.gateway for view in views.shown if node.own[0] not in view.up()}
    return down & set(node.traffic.deaf(node.name))


def _share(node: Node) -> list[str]:
    """A message for each gateway that does not give an instance its full share."""
    views = node.ask()
    may_send, shown = _may_send(node, views), {view.gateway for view in views.shown}
    share = share_of(node, node.name, node.own[0])
    # A gateway that shows the engine up, but does not reach the agent, relies on its health checks.
    missing = dict(share.short) | {gateway: words for gateway, words in share.unheard.items() if gateway not in shown}
    return [words for gateway, words in missing.items() if gateway in may_send]
