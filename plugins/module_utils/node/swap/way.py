# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Chooses how clients are served while an engine is swapped. Private to the collection.

A node swaps if every gateway has another server of the set. Without another server there are three ways: a bridge
serves, gateways hold requests, or the operator allows that clients find no engine.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from ...engine.inventory import bridge_name
from ...engine.swap_terms import ALLOW_DOWNTIME
from .gateways import Views

OTHERS, BRIDGE, HELD, DOWNTIME, UNCHANGED = "others", "bridge", "held", "downtime", "unchanged"
"""Other servers serve; a bridge serves; gateways hold requests; no server serves; no server served before either."""

TURN_SECONDS = 60.0
"""Seconds that a swap takes, if unknown. A swap waits twice its own time for another drained node."""

FIRST_SECONDS = 20.0
"""If several nodes begin at once: how long the first node waits until another server is up."""


@dataclass(frozen=True)
class Way:
    """How clients are served meanwhile. `patience`: seconds for requests in flight while gateways hold others."""

    kind: str
    patience: int | None = None
    problem: str = ""
    """Why the swap must not begin; empty if it may."""
    permission: str = ""
    """The term that would allow the swap nevertheless."""


@dataclass(frozen=True)
class Question:
    """The facts about an instance before its swap."""

    name: str
    own: Collection[str]
    """Its servers at the gateways: the instance's, and the bridge's."""
    serves: bool
    allow_downtime: bool
    vouched: bool
    deaf: Collection[str]
    """Gateways that do not check this node's agent."""
    needed: int | None
    """Seconds that the swap takes in addition to the drain; None if unknown."""
    unbridged: Callable[[], str]
    """Returns why no bridge can serve meanwhile; empty if one can. Called only if the answer matters."""


def choose(question: Question, views: Views) -> Way:
    """The way of a swap, or the problem that prevents the swap."""
    name, own = question.name, question.own
    if not question.serves:
        return Way(UNCHANGED)
    # A gateway that checks the agent sends requests here. If it does not list its servers, it may have only this one.
    blind = [words for gateway, words in views.silent.items() if gateway not in question.deaf]
    if blind and not question.allow_downtime:
        return Way(OTHERS, problem=f"{'; '.join(blind)}. Correct that first", permission=ALLOW_DOWNTIME)
    unknown = [view.gateway for view in views.shown if not view.known or not view.servers.keys() & set(own)]
    if unknown:
        return Way(
            OTHERS,
            problem=f"{', '.join(unknown)} does not know {name} of this node: run baremetal.inference.site there",
        )
    if not views.shown:
        return _unasked(question)
    if not views.without_others(own):
        return Way(OTHERS)
    if not views.alone_at(own):
        # A gateway without any server, as after a stuck swap, loses nothing. The others have another server.
        return Way(OTHERS if any(view.up() & set(own) for view in views.shown) else UNCHANGED)
    if question.allow_downtime and (views.silent or question.deaf):
        return Way(DOWNTIME)
    if question.deaf:
        deaf = f"{', '.join(question.deaf)} does not check this node's agent"
        problem = f"{name} is the only server of its set, and {deaf}: repair that gateway first"
        return Way(HELD, problem=problem, permission=ALLOW_DOWNTIME)
    unbridged = question.unbridged() or _unaware(name, own, views)
    if not unbridged:
        return Way(BRIDGE)
    return Way(DOWNTIME) if question.allow_downtime else _held(question, views, unbridged)


def _unasked(question: Question) -> Way:
    """The way if no gateway gives an answer."""
    if question.allow_downtime or question.vouched:
        return Way(DOWNTIME)
    who = "no gateway shows who else serves" if question.deaf else "this node has no gateway that would hold requests"
    return Way(DOWNTIME, problem=f"{question.name} serves, and {who}", permission=ALLOW_DOWNTIME)


def _unaware(name: str, own: Collection[str], views: Views) -> str:
    bridges = {server for server in own if server.startswith(f"{bridge_name(name)}.")}
    unaware = [view.gateway for view in views.shown if not view.servers.keys() & bridges]
    return f"its bridge is not known to {', '.join(unaware)}: run baremetal.inference.site there" if unaware else ""


def _held(question: Question, views: Views, unbridged: str) -> Way:
    holds = min(view.hold_seconds for view in views.shown)
    where = f"{question.name} is the only server of its set"
    way = f"add a replica. No second engine can serve meanwhile: {unbridged}"
    if question.needed is None:
        problem = f"{where}, and how long its release loads is unknown: {way}"
        return Way(HELD, problem=problem, permission=ALLOW_DOWNTIME)
    if holds < question.needed:
        problem = (
            f"{where}. Judged by the last load, the swap may take {question.needed} s, but gateways run with"
            f" gateway_hold_seconds {holds}: set gateway_hold_seconds to {question.needed} or more (requests in flight"
            f" get the rest), then run baremetal.inference.site for the gateways, or {way}"
        )
        return Way(HELD, problem=problem, permission=ALLOW_DOWNTIME)
    return Way(HELD, patience=holds - question.needed)


def drained(views: Views, own: Collection[str]) -> list[str]:
    """The other nodes of the set that are drained now: they swap, or an owner keeps requests away."""
    found = {
        server
        for view in views.shown
        for server, found in view.servers.items()
        if server not in own and "_bridge." not in server and found.status.startswith("DRAIN")
    }
    return sorted(found)


def yields_to(node: str, views: Views, own: Collection[str]) -> list[str]:
    """The nodes that drain the same set now, and go first: those whose names sort before the name of this node."""
    return [server for server in drained(views, own) if server < node]


def no_other_server(name: str, gateways: Collection[str]) -> str:
    """That the gateways have no other server, in words."""
    return f"{', '.join(gateways)} would have no server left for {name} without this node"
