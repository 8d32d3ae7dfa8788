# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The servers of each replica set that are up, by gateway. Private to the collection. Pure.

Gateways can differ: one may have lost a node that another still reaches. Clients notice nothing only if every gateway
keeps a server, so the gateways' answers are never merged. A node that the controller cannot reach still counts if a
gateway sends it requests.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from ...engine.inventory import bridge_name
from ...gateway.view import GatewayView

NODES = "the nodes themselves"
"""Stands for a gateway's name if there is no gateway."""


@dataclass(frozen=True)
class View:
    """One replica set at one gateway."""

    gateway: str
    """The gateway's name, or NODES."""
    up: frozenset[str]
    """The servers to which the gateway sends requests: nodes, and bridges as INSTANCE_bridge.NODE."""


@dataclass
class Serving:
    """The servers of each replica set that are up."""

    views: dict[str, list[View]] = field(default_factory=dict)
    """Views by set. If a gateway gave several nodes different answers, it has a view for each answer."""

    @classmethod
    def of(cls, seen: Iterable[GatewayView], engines: Mapping[str, Collection[str]]) -> Serving:
        """Make the views from the gateways' answers. `engines` has the serving nodes of sets without such an answer."""
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
        """Whether a gateway has answered for a set."""
        return any(view.gateway != NODES for view in self.views.get(name, ()))

    def count(self, name: str, host: str) -> int:
        """The number of a set's views in which a node is up."""
        return sum(host in view.up for view in self.views.get(name, ()))

    def lost(self, name: str, going: Collection[str]) -> list[View]:
        """The views of a set that would lose their last up server without the servers in `going`."""
        return [view for view in self.views.get(name, ()) if view.up and view.up <= set(going)]

    def back(self, name: str, hosts: Collection[str]) -> None:
        """Record that nodes serve a set again at every gateway, and that their bridges no longer do."""
        bridges = {f"{bridge_name(name)}.{host}" for host in hosts}
        views = self.views.setdefault(name, [View(NODES, frozenset())])
        views[:] = [View(view.gateway, (view.up - bridges) | set(hosts)) for view in views]

    def sets(self, host: str) -> dict[str, list[str]]:
        """The sets that a node serves, each with the gateways that send the node requests."""
        found = {
            name: sorted({view.gateway for view in views if host in view.up}) for name, views in self.views.items()
        }
        return {name: gateways for name, gateways in sorted(found.items()) if gateways}


def gateways(views: Iterable[View]) -> str:
    """The names of the views' gateways, as text."""
    return ", ".join(sorted({view.gateway for view in views}))


def left_out(serving: Serving, hosts: Collection[str]) -> list[str]:
    """A line for each node that cannot be reached. It says which gateways send the node requests."""
    lines = []
    for host in sorted(hosts):
        sets = [f"{name} (by {', '.join(names)})" for name, names in serving.sets(host).items()]
        word = f"it gets requests for {', '.join(sets)}" if sets else "no gateway sends it requests"
        lines.append(f"{host} cannot be reached, and is left out: {word}")
    return lines
