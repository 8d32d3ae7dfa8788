# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which servers of each replica set are up, by each gateway for itself. Private to the collection. Pure.

Two gateways may differ: one has lost a node that the other still has. Clients notice nothing only where every gateway
keeps a server, so that no answer here merges what two gateways say. A node that the controller cannot reach counts
where a gateway sends it requests.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from ...engine.inventory import bridge_name
from ...gateway.view import GatewayView

NODES = "the nodes themselves"
"""Who tells where there is no gateway."""


@dataclass(frozen=True)
class View:
    """What one gateway shows of one replica set."""

    gateway: str
    """Its name, or NODES."""
    up: frozenset[str]
    """The servers that it sends requests to: nodes, and bridges as INSTANCE_bridge.NODE."""


@dataclass
class Serving:
    """The servers of each replica set that are up."""

    views: dict[str, list[View]] = field(default_factory=dict)
    """By set. A gateway that was asked by several nodes has a view for each answer that differs."""

    @classmethod
    def of(cls, seen: Iterable[GatewayView], engines: Mapping[str, Collection[str]]) -> Serving:
        """By what gateways show; a set that no gateway was asked about, by `engines`: the nodes that serve the set."""
        made = cls()
        for view in seen:
            made._add(view.name, View(view.gateway, view.up))
        for name in sorted(engines.keys() - made.views.keys()):
            made._add(name, View(NODES, frozenset(engines[name])))
        return made

    def _add(self, name: str, view: View) -> None:
        views = self.views.setdefault(name, [])
        if view not in views:
            views.append(view)

    def asked(self, name: str) -> bool:
        """Whether a gateway tells of a set."""
        return any(view.gateway != NODES for view in self.views.get(name, ()))

    def count(self, name: str, host: str) -> int:
        """How many views have a node as a server of a set that is up."""
        return sum(host in view.up for view in self.views.get(name, ()))

    def lost(self, name: str, going: Collection[str]) -> list[View]:
        """The views of a set in which a server is up, and none would be without those that go."""
        return [view for view in self.views.get(name, ()) if view.up and view.up <= set(going)]

    def back(self, name: str, hosts: Collection[str]) -> None:
        """Take note that nodes serve a set again, at every gateway, and that their bridges do not any more."""
        bridges = {f"{bridge_name(name)}.{host}" for host in hosts}
        views = self.views.setdefault(name, [View(NODES, frozenset())])
        views[:] = [View(view.gateway, (view.up - bridges) | set(hosts)) for view in views]

    def sets(self, host: str) -> dict[str, list[str]]:
        """The sets for which a node is up, and the gateways that send it requests."""
        found = {
            name: sorted({view.gateway for view in views if host in view.up}) for name, views in self.views.items()
        }
        return {name: gateways for name, gateways in sorted(found.items()) if gateways}


def gateways(views: Iterable[View]) -> str:
    """The gateways of views, in words."""
    return ", ".join(sorted({view.gateway for view in views}))


def left_out(serving: Serving, hosts: Collection[str]) -> list[str]:
    """A line for each node that cannot be reached, with the gateways' word on whether the node serves."""
    lines = []
    for host in sorted(hosts):
        sets = [f"{name} (by {', '.join(names)})" for name, names in serving.sets(host).items()]
        word = f"it gets requests for {', '.join(sets)}" if sets else "no gateway sends it requests"
        lines.append(f"{host} cannot be reached, and is left out: {word}")
    return lines
