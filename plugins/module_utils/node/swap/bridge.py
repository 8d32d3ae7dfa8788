# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps for a bridge: a second engine that serves while the only engine of its set is swapped.
Private to the collection."""

from __future__ import annotations

from typing import Any

from ...engine import bridge_place, bridges, swap_settings
from ...engine.inventory import bridge_name
from ...engine.state import drains, releases
from ...engine.state.drains import format_time
from ...engine.state.swaps import Swap
from . import leave, proof
from .node import Node, StepFailed
from .serving import accept, await_ready, await_share, judge_errors
from .traffic import DEAF_SECONDS

UNUSED_SECONDS = 5.0
"""How long to wait for the connections of a bridge that gets no requests from gateways. The bridge may hang."""


def place(node: Node, swap: Swap) -> bridge_place.Place:
    """Where the bridge would run, or why it cannot."""
    port = bridges.declared_port(node.paths, node.name)
    if swap.origin is None:
        return bridge_place.Place(problem="nothing served before")
    try:
        return bridges.place(node.paths, node.name, swap.origin, swap.target, port)
    except releases.ReleaseError as error:
        return bridge_place.Place(problem=str(error))


def bridge(node: Node, swap: Swap) -> dict[str, Any]:
    """Start the bridge with the next release. So the release proves itself before the engine stops."""
    if not swap.notes.get("bridge"):
        return {}
    port, found = bridges.declared_port(node.paths, node.name), place(node, swap)
    if port is None or found.problem:
        raise StepFailed(f"the bridge can no longer run: {found.problem or 'the instance has no bridge_port'}")
    bridge = bridge_name(node.name)
    node.say(f"{bridge} starts on port {port}")
    _changed, number = bridges.start(
        node.paths, bridges.Wish(node.name, swap.target, port, found.gpus), node.now(), check=False
    )
    # An earlier swap may have left the gate of its bridge closed.
    node.traffic.open(port)
    await_ready(node, bridge, number)
    fit = accept(node, bridge, number, swap)
    drains.undrain(node.paths, bridge, drains.UPDATE, node.now())
    share = await_share(node, bridge, node.own[1])
    if missing := [*share.short.values(), *share.unheard.values()]:
        raise StepFailed(f"the bridge does not serve yet: {'; '.join(missing)}")
    before = node.ask()
    proof.watch(node.paths, bridge, swap.terms.watch_seconds)
    judge_errors(node, swap, before, node.own[1])
    speed = "" if fit.tokens_per_second is None else f", {fit.tokens_per_second} tokens/s"
    node.say(f"{bridge} serves{speed}")
    return {}


def unbridge(node: Node, swap: Swap) -> dict[str, Any]:
    """Remove the bridge after its instance serves again."""
    if not swap.bridged:
        return {}
    port = bridges.declared_port(node.paths, node.name)
    try:
        if bridges.left(node.paths, node.name):
            _remove(node, swap, port)
    finally:
        if port is not None:
            # Even if the bridge stays: a closed gate would refuse the requests of the next bridge.
            node.traffic.open(port)
    return {}


def _remove(node: Node, swap: Swap, port: int | None) -> None:
    """Drain the bridge and remove it. Raises StepFailed if the bridge must stay."""
    bridge = bridge_name(node.name)
    if node.settings == swap_settings.UNKNOWN:
        raise StepFailed(
            f"cannot tell whether gateways have another server than {bridge}: run baremetal.inference.site"
        )
    views = node.ask_settled()
    if last := views.alone_at([node.own[1]]):
        raise StepFailed(f"{bridge} is the last server of {node.name} at {', '.join(last)}: it stays")
    wanted = drains.Drain(drains.UPDATE, f"{node.name} serves again", format_time(node.now()))
    drains.drain(node.paths, [bridge], wanted, force=True)
    node.traffic.wait_confirmed(bridge, "drain", DEAF_SECONDS)
    if port is not None:
        node.traffic.close(port)
        asked = any(node.own[1] in view.up() for view in views.shown)
        left = node.traffic.wait_unused(port, float(swap.terms.drain_seconds) if asked else UNUSED_SECONDS)
        if left and asked and not swap.terms.force:
            raise StepFailed(f"{leave.still_in_flight(len(left))} at {bridge}, of {leave.addresses(left)}")
    bridges.remove(node.paths, node.name, check=False)
