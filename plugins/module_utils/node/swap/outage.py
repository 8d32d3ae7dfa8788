# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Engines without requests for a while, for work on their node, or before they are removed. Private to the collection.

The releases stay, so that no gate is needed: the drain alone keeps requests away, and every gateway has to know.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from ...core import systemd
from ...core.paths import unit_name
from ...engine.state import drains, install_state, releases
from . import proof, way
from .gateways import Views
from .leave import addresses, keep_away
from .node import Node
from .serving import share_of

LOOKS = 2
"""In a row without a connection of a client."""

LOOK_SECONDS = 0.3


class Refused(Exception):
    """Requests cannot be kept away; the message says why."""


@dataclass
class Outage:
    """The engines of one node that are to have no requests, or to have them again."""

    nodes: Sequence[Node]
    """The node, once for each instance."""
    owner: str

    def begin(self, reason: str, last: Collection[str], *, check: bool = False) -> bool:
        """Keep requests away. Returns whether anything changed.

        Raises Refused before anything changes where some gateway would have no server; SystemdError, OSError.
        """
        waiting = [node for node in self.nodes if self._drain(node) is None]
        found = [words for node in waiting if node.name not in last and (words := _last(node))]
        if found:
            raise Refused(f"{'; '.join(found)}. Nothing was changed")
        for node in self.nodes if not check else ():
            keep_away(node, self.owner, reason)
        return bool(waiting)

    def requests(self, seconds: float, last: Collection[str]) -> list[str]:
        """Wait until there are no requests any more, at most so long. Returns what is left, a line each.

        Raises Refused where another node drains the same set at once, and goes first; SystemdError.
        """
        return self._wait(seconds, lambda node: _requests(node, contested=node.name not in last), LOOKS)

    def end(self, *, check: bool = False) -> bool:
        """Try the engines that run, and let requests back. Returns whether anything changed.

        Raises Unfit where an engine must have none: its drain stays; ReleaseError, SystemdError, OSError.
        """
        own = [node for node in self.nodes if (drain := self._drain(node)) and drain.owner == self.owner]
        for node in own if not check else ():
            number = releases.active_number(node.paths, node.name)
            if number is not None and _runs(node):
                # What served before is not judged by what is asked of the next.
                proof.accept(node.paths, node.name, number, [])
            drains.undrain(node.paths, node.name, self.owner, node.now())
        return bool(own)

    def share(self, seconds: float) -> list[str]:
        """Wait until every gateway gives the engines their full share, at most so long. Returns what is missing.

        An engine that does not run, or that another owner has drained, is not waited for. Raises SystemdError.
        """
        return self._wait(seconds, lambda node: [] if self._drain(node) or not _runs(node) else _share(node), looks=1)

    def _wait(self, seconds: float, missing: Callable[[Node], list[str]], looks: int) -> list[str]:
        traffic = self.nodes[0].traffic
        deadline = traffic.clock() + seconds
        in_a_row = 0
        while True:
            found = [words for node in self.nodes for words in missing(node)]
            in_a_row = 0 if found else in_a_row + 1
            if in_a_row == looks or traffic.clock() >= deadline:
                return found or ([] if in_a_row == looks else ["the last look is missing"])
            traffic.sleep(LOOK_SECONDS)

    def _drain(self, node: Node) -> drains.Drain | None:
        return drains.read(node.paths, node.name, node.now())


def _runs(node: Node) -> bool:
    return systemd.active_state(unit_name(node.name)) in systemd.RUNNING


def _last(node: Node) -> str:
    """Why an instance must not be drained; empty where it may. Raises SystemdError."""
    if not node.settings.gateways or not install_state.serving(node.paths, node.name, node.now()):
        return ""
    views, deaf = node.ask_settled(), node.traffic.deaf(node.name)
    # A gateway that asks the agent routes here. Without its word, this node may be its only server.
    blind = [words for gateway, words in views.silent.items() if gateway not in deaf]
    if blind:
        return "; ".join(blind)
    alone = views.alone_at(node.own)
    return way.nobody_words(node.name, alone) if alone else ""


def _requests(node: Node, *, contested: bool) -> list[str]:
    """What still sends an instance requests, in words. Raises Refused, SystemdError."""
    views = node.ask_settled()
    if contested and (rivals := _contested(node, views)):
        return rivals
    sending = _knowing(node, views) - _cut_off(node, views)
    untold = [name for name in node.traffic.untold(node.name, "drain") if name in sending] if _runs(node) else []
    number = releases.active_number(node.paths, node.name)
    port = None if number is None else node.port(number)
    connected = node.traffic.clients(port) if port is not None else []
    found = [f"{name} was not told to send {node.name} nothing" for name in untold]
    found += [f"{node.name} has {len(connected)} connections of {addresses(connected)}"] if connected else []
    # Without gateways, clients of the node itself are seen by the engine's own count alone.
    busy = node.in_flight() if not node.settings.gateways else 0
    return found + ([f"{node.name} has {busy} requests at work"] if busy else [])


def _contested(node: Node, views: Views) -> list[str]:
    """The gateways that have no server left because another node drains the set at the same time.

    Raises Refused where the other node goes first.
    """
    nobody = [
        view.gateway
        for view in views.told
        if not view.up() - set(node.own) and way.drained(Views((view,), {}), node.own)
    ]
    if not nobody:
        return []
    first = way.yields_to(node.settings.node, views, node.own)
    words = way.nobody_words(node.name, nobody)
    if first:
        raise Refused(f"{words}: {', '.join(first)} drains the same set, and goes first")
    return [words]


def _knowing(node: Node, views: Views) -> set[str]:
    """The gateways that may send an instance requests. One that neither tells nor asks the agent is away."""
    deaf = node.traffic.deaf(node.name)
    told = {view.gateway for view in views.told if node.own[0] in view.servers}
    return told | {name for name in views.silent if name not in deaf}


def _cut_off(node: Node, views: Views) -> set[str]:
    """The gateways that have an instance as down and do not ask the agent. When they reach it again, they hear of the
    drain first."""
    down = {view.gateway for view in views.told if node.own[0] not in view.up()}
    return down & set(node.traffic.deaf(node.name))


def _share(node: Node) -> list[str]:
    """The gateways that do not give an instance its full share, in words."""
    views = node.ask()
    knowing, telling = _knowing(node, views), {view.gateway for view in views.told}
    share = share_of(node, node.name, node.own[0])
    # A gateway that shows the engine up, and does not reach the agent, goes by its health checks.
    missing = dict(share.short) | {gateway: words for gateway, words in share.unheard.items() if gateway not in telling}
    return [words for gateway, words in missing.items() if gateway in knowing]
