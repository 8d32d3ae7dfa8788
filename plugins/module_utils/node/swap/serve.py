# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps that start a release, and let requests reach it. Private to the collection."""

from __future__ import annotations

import time
from typing import Any

from ...engine import activation, load_time
from ...engine.state import drains, history, pins, releases
from ...engine.state.drains import format_time
from ...engine.state.swaps import Swap
from . import gateways, proof
from .leave import REASON, keep_away, open_gates
from .node import Node, StepFailed
from .serving import accept, await_ready, await_share, judge_errors


def start(node: Node, swap: Swap) -> dict[str, Any]:
    """Start the release, and wait for its first answer."""
    number = number_of(swap)
    # After a restart of the node in `admit` or `watch`, this step runs again, and the drain may be gone.
    keep_away(node, drains.UPDATE, swap.reason or REASON)
    with node.traffic.kept_closed(swap.closed_ports):
        if not activation.runs(node.paths, node.name, number):
            activation.run(node.paths, node.name, number)
        await_ready(node, node.name, number, patient=swap.returning)
    return {"notes": {**swap.notes, "load_seconds": load_time.seconds(node.name)}}


def probe(node: Node, swap: Swap) -> dict[str, Any]:
    """Probe the release before clients reach it."""
    number = number_of(swap)
    with node.traffic.kept_closed(swap.closed_ports):
        found = accept(node, node.name, number, swap, measure=not swap.returning and not swap.back)
    return {"notes": {**swap.notes, "tokens_per_second": found.tokens_per_second}}


def admit(node: Node, swap: Swap) -> dict[str, Any]:
    """Open the gate, then undrain the instance, and wait until gateways send it its full share of requests."""
    open_gates(node, swap)
    left = drains.undrain(node.paths, node.name, drains.UPDATE, node.now()).drain
    notes = {**swap.notes, "admitted": time.time()}
    if left:
        node.say(f"{node.name} stays {left}")
        return {"notes": {**notes, "drained_by": left.owner}}
    share = await_share(node, node.name, node.own[0])
    if share.short and not swap.returning:
        raise StepFailed(f"{node.name} does not get its full share: {'; '.join(share.short.values())}")
    # The release has passed its probe, so it serves. The swap does not fail because a gateway does not answer.
    for name in share.unheard:
        node.say(f"cannot tell whether {name} sends requests to {node.name} again")
    return {"notes": {**notes, "unheard": list(share.unheard)}}


def watch(node: Node, swap: Swap) -> dict[str, Any]:
    """Watch the release under its clients' load."""
    if not swap.terms.watch_seconds:
        return {}
    before = node.ask()
    speed = proof.watch(
        node.paths,
        node.name,
        swap.terms.watch_seconds,
        before=swap.notes.get("counted", []),
        speed_bound=0.0 if swap.back else swap.terms.watch_speed_bound,
    )
    errors = judge_errors(node, swap, before, node.own[0])
    return {"notes": {**swap.notes, "speed": speed, "errors": errors}}


def prove(node: Node, swap: Swap) -> dict[str, Any]:
    """Mark the release as proven."""
    number, now = number_of(swap), format_time(node.now())
    releases.commit(node.paths, node.name, number)
    notes = swap.notes
    history.add(
        node.paths,
        node.name,
        history.Served(number, now, notes.get("load_seconds"), notes.get("tokens_per_second")),
    )
    if swap.returning or not swap.pin:
        pins.loosen(node.paths, node.name, number)
    else:
        pins.settle(node.paths, node.name, number, swap.reason, now, back=swap.back)
    pinned = pins.in_force(node.paths, node.name, releases.desired_number(node.paths, node.name)) is not None
    views = [gateways.from_note(each) for each in notes.get("requests", [])]
    return {"notes": {**notes, "pinned": pinned, "meanwhile": gateways.requests_between(views, node.ask().shown)}}


def number_of(swap: Swap) -> int:
    if swap.release is None:
        raise StepFailed("no release served before, so the swap cannot return")
    return swap.release
