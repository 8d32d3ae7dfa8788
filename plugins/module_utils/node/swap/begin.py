# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first step of a swap. Private to the collection."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ...engine import bridges, gate, load_time, prepare
from ...engine.state import drains, install_state, releases
from ...engine.state.swaps import Swap
from . import proof, reach, way
from .bridge import place
from .gateways import Views
from .node import POLL_SECONDS, Node, StepFailed


def begun(node: Node, swap: Swap) -> dict[str, Any]:
    """Refuse what cannot work, and choose how clients are served meanwhile. Raises StepFailed."""
    # Raises GateError without nftables, before anything changes.
    gate.closed()
    serves = install_state.serving(node.paths, node.name, node.now())
    _refuse_unfit(node, swap.target)
    drain = drains.read(node.paths, node.name, node.now())
    if drain and drain.owner != drains.UPDATE and drain.until:
        raise StepFailed(f"{node.name} is {drain}: that could end during the swap. Wait, or undrain {node.name} first")
    views = node.ask_settled()
    runs, comes = (next(iter(node.endpoints(number)), None) for number in (swap.origin, swap.target))
    if unreached := reach.problems(runs, comes, views.shown, node.own[0]):
        raise StepFailed("; ".join(unreached))
    load = load_time.expected(node.paths, node.name, swap.origin, swap.target)
    question = way.Question(
        name=node.name,
        own=node.own,
        # If another owner has drained the instance, it has no requests, and clients lose nothing by the swap.
        serves=serves and (drain is None or drain.owner == drains.UPDATE),
        allow_downtime=swap.terms.allow_downtime,
        vouched=swap.terms.vouched,
        deaf=node.traffic.deaf(node.name),
        needed=load_time.swap_seconds(load),
        unbridged=lambda: place(node, swap).problem,
    )
    chosen = way.choose(question, views)
    if chosen.kind == way.HELD and (others := way.drained(views, node.own)):
        node.say(f"{', '.join(others)} is drained: this swap waits until that node serves again")
        # The other node may have begun just before, and may take longer.
        views = _await_server(node, 2 * (question.needed or way.TURN_SECONDS))
        chosen = way.choose(question, views)
        swapped = sorted(set(others) - set(way.drained(views, node.own)))
        if chosen.kind == way.HELD and swapped:
            # If neither node serves, gateways would hold requests for two swaps.
            raise StepFailed(f"{', '.join(swapped)} swaps, too: swap here when that node serves")
    if chosen.problem:
        raise StepFailed(chosen.problem, chosen.permission)
    words = {
        way.BRIDGE: "side by side: a second engine serves meanwhile",
        way.HELD: f"the only server of its set: gateways hold requests; requests in flight get {chosen.patience} s",
        way.DOWNTIME: "clients may find no engine meanwhile",
    }.get(chosen.kind, "")
    if words:
        node.say(words)
    bridged = chosen.kind == way.BRIDGE or bridges.left(node.paths, node.name)
    notes = {
        **swap.notes,
        "way": chosen.kind,
        "patience": chosen.patience,
        "bridge": chosen.kind == way.BRIDGE,
        "requests": [asdict(view) for view in views.shown],
        "counted": [*swap.notes.get("counted", []), proof.counted(node.paths, node.name)],
    }
    return {"bridged": bridged, "notes": notes}


def _await_server(node: Node, seconds: float) -> Views:
    """Wait up to `seconds` until every gateway that sends requests here has another server.

    Returns the last views of the gateways.
    """
    deadline = node.traffic.clock() + seconds
    while (views := node.ask_settled()).alone_at(node.own) and node.traffic.clock() < deadline:
        node.traffic.sleep(POLL_SECONDS)
    return views


def _refuse_unfit(node: Node, number: int) -> None:
    """Raises StepFailed if a release cannot start here."""
    try:
        release = releases.load(node.paths, node.name, number)
        releases.verify(node.paths, node.name, number)
    except releases.ReleaseError as error:
        raise StepFailed(str(error)) from error
    missing = prepare.missing(release, node.docker)
    if missing:
        raise StepFailed("; ".join(missing))
