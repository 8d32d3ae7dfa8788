# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether an engine is ready, fit, and served by the gateways. Private to the collection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...engine.probe import acceptance, wait
from ...engine.state import releases
from ...engine.state.swaps import Swap
from . import gateways, proof
from .gateways import SetView, Views
from .node import POLL_SECONDS, Node, StepFailed
from .traffic import DEAF_SECONDS, FRESH_SECONDS

START_MARGIN_SECONDS = 180
"""Beside the release's own limit: preparing takes 2 minutes at most, and the supervisor has the last word."""

READY_SECONDS = 5.0
"""Seconds of one wait for an engine that loads; between two waits, the gate is looked at."""

SHARE_SECONDS = 260.0
"""How long gateways may take to give the full share: gateway_slow_start_seconds is 180 at most, and begins when agent
and health checks have said up."""

FULL_WEIGHT = 100


def await_ready(node: Node, name: str, number: int, closed: Iterable[int] = ()) -> None:
    """Keep the gates of ports closed meanwhile. Raises StepFailed with the engine's last words where the release does
    not get ready."""
    limit = releases.load(node.paths, name, number).start_timeout + START_MARGIN_SECONDS
    deadline = node.traffic.clock() + limit
    while True:
        outcome = wait.wait_ready(node.paths, [name], READY_SECONDS)[0]
        if outcome.state == "ready":
            return
        if outcome.state == "failed":
            raise StepFailed(f"release {number} of {name} does not start. Its last words:\n{outcome.last_words}")
        if node.traffic.clock() >= deadline:
            raise StepFailed(f"release {number} of {name} does not answer after {limit} s: {outcome.status}")
        for port in closed:
            node.traffic.hold(port)


def accept(node: Node, name: str, number: int, swap: Swap, *, measure: bool = False) -> acceptance.Result:
    model = releases.load(node.paths, name, number).model
    # What served before is not judged by what is asked of the next.
    asked = not swap.returning and not swap.back
    return proof.accept(
        node.paths,
        name,
        number,
        node.settings.golden.get(model, []) if asked else [],
        origin=swap.origin if measure else None,
        speed_bound=swap.terms.speed_bound if measure else 0.0,
    )


@dataclass(frozen=True)
class Share:
    """Gateways that do not give a server its full share, and gateways that do not tell; each with the reason."""

    short: Mapping[str, str]
    unheard: Mapping[str, str]


def await_share(node: Node, name: str, server: str) -> Share:
    """Wait until all gateways give a server its full share."""
    began = node.traffic.clock()
    while True:
        share = share_of(node, name, server)
        waited = node.traffic.clock() - began
        # One that is silent in both ways is not waited for any longer than one that is only slow to ask.
        if not (share.short or share.unheard) or waited >= (SHARE_SECONDS if share.short else DEAF_SECONDS):
            return share
        node.traffic.sleep(min(FRESH_SECONDS, max(POLL_SECONDS, waited / 10)))


def share_of(node: Node, name: str, server: str) -> Share:
    """Which gateways give a server its full share now."""
    views, deaf = node.ask(), node.traffic.deaf(name)
    short = {view.gateway: words for view in views.told if (words := _short(view, server))}
    unheard = dict(views.silent)
    for one in node.traffic.untold(name, "up"):
        # A gateway that does not reach the agent goes by its health checks, and says nothing against the engine.
        missing = unheard if one in deaf else short
        if one not in short and one not in unheard:
            missing[one] = f"{one} has not asked the agent again"
    return Share(short, unheard)


def judge_errors(node: Node, swap: Swap, before: Views, server: str) -> str:
    """What gateways have seen fail. Raises StepFailed where that is too much."""
    after = {view.gateway: view for view in node.ask().told}
    unknown = []
    for view in before.told:
        share = gateways.failed_share(view, after[view.gateway], server) if view.gateway in after else None
        if share is None:
            unknown.append(view.gateway)
            continue
        failures, requests = share
        if failures > swap.terms.error_share * requests:
            raise StepFailed(
                f"{failures} of {requests} requests that {view.gateway} has sent to {server} while it was watched"
                f" have failed; update_error_share allows {swap.terms.error_share} of them"
            )
    return f"what failed at {', '.join(unknown)} is not known: it was reloaded or silent" if unknown else ""


def _short(view: SetView, server: str) -> str:
    """What is missing until a gateway gives a server its full share, in words; empty where nothing is."""
    found = view.servers.get(server)
    if found is None:
        return f"{view.gateway} has no server {server}: run baremetal.inference.site there"
    if not found.up:
        return f"{view.gateway} has {server} as {found.status}"
    return f"{view.gateway} gives {server} {found.weight} % of its share" if found.weight < FULL_WEIGHT else ""
