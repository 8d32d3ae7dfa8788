# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps that keep requests away from an engine, and stop the engine. Private to the collection."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from ...core import systemd
from ...core.paths import unit_name
from ...core.sizes import counted
from ...engine import activation
from ...engine.probe import health
from ...engine.state import drains, install_state, probe_state, releases
from ...engine.state.drains import format_time
from ...engine.state.swaps import Swap
from ...engine.swap_terms import FORCE
from . import gateways, proof, way
from .node import POLL_SECONDS, Node, StepFailed
from .traffic import DEAF_SECONDS, ILL_SECONDS

REASON = "a swap of releases"
"""Reason of the drain if the swap has none."""

GATED_SECONDS = 60.0
"""Least seconds for requests in flight to end after the gate is closed. An only server may get fewer. On the way
back, an engine that does not serve gets ILL_SECONDS."""

QUIET_SECONDS = 15.0
"""Seconds after which the swap reports the clients for which it waits."""


def drain(node: Node, swap: Swap) -> dict[str, Any]:
    """Drain the instance, and wait until gateways have read the drain."""
    limit = drain_limit(swap)
    serves = install_state.serving(node.paths, node.name, node.now())
    notes = {"drained": time.time(), **swap.notes, "served": serves}
    if not swap.returning:
        notes["counted"] = [*swap.notes.get("counted", []), proof.counted(node.paths, node.name)]
    keep_away(node, drains.UPDATE, swap.reason or REASON)
    unconfirmed = node.traffic.wait_confirmed(node.name, "drain", DEAF_SECONDS)
    # The way back needs neither confirmation nor another server: the gate keeps requests at the gateways.
    if not swap.returning:
        _refuse_unconfirmed(node, swap, unconfirmed)
        _refuse_last(node, swap)
    port = node.port(swap.target)
    if port is not None and node.settings.gateways and serves:
        _await_clients(node, swap, port, max(0.0, limit - GATED_SECONDS))
    if port is None:
        # The active release is damaged. A gate that an earlier step has closed must be opened in the end.
        return {"notes": notes}
    other = node.other_port(port, swap.origin, swap.target)
    return {"notes": notes, "closed_port": port, "other_port": other}


def _await_clients(node: Node, swap: Swap, port: int, seconds: float) -> None:
    """Wait until no client is connected, and report clients that stay connected."""
    quiet = min(seconds, QUIET_SECONDS)
    if left := node.traffic.wait_unused(port, quiet, looks=1, gated=False):
        node.say(f"waits up to {seconds:.0f} s for {counted(len(left), 'connection')} of {addresses(left)}")
        hopeless = partial(_hopeless, node, swap)
        node.traffic.wait_unused(port, seconds - quiet, looks=1, gated=False, hopeless=hopeless)


def _hopeless(node: Node, swap: Swap) -> bool:
    """Whether the swap may cut requests, and the engine will not end them: by the agent's verdict, the engine is hung,
    dead or wrong."""
    if not swap.terms.force:
        return False
    state = probe_state.read(node.paths, node.name)
    return state is not None and state.verdict in health.CONDEMNED and not probe_state.stale(state, node.now())


def keep_away(node: Node, owner: str, reason: str) -> None:
    """Drain the instance, unless another owner has drained it. Raises OSError."""
    present = drains.read(node.paths, node.name, node.now())
    if present is None or present.owner == owner:
        drains.drain(node.paths, [node.name], drains.Drain(owner, reason, format_time(node.now())))


def _refuse_unconfirmed(node: Node, swap: Swap, unconfirmed: Sequence[str]) -> None:
    """Raises StepFailed if this is the only server of its set, and a gateway has not confirmed the drain."""
    if unconfirmed and swap.notes.get("way") == way.HELD:
        words = f"{', '.join(unconfirmed)} does not know of the drain"
        raise StepFailed(f"{words}, and {node.name} is the only server of its set")
    if unconfirmed:
        node.say(f"{', '.join(unconfirmed)} does not know of the drain: the gate refuses its requests")


def _refuse_last(node: Node, swap: Swap) -> None:
    """Raises StepFailed if no other server is left. Of several nodes that begin at once, all but one give way."""
    if swap.notes.get("way") not in (way.OTHERS, way.BRIDGE):
        return
    # A bridge serves meanwhile, so gateways lose only the instance's own server.
    own = node.own[:1] if swap.notes.get("bridge") else node.own
    # A gateway that sent no requests here when the swap began loses no server.
    spared = {
        view.gateway
        for view in map(gateways.from_note, swap.notes.get("requests", []))
        if not view.up() & set(node.own)
    }
    deadline = node.traffic.clock() + way.FIRST_SECONDS
    while True:
        views = node.ask_settled()
        lacking = [gateway for gateway in views.without_others(own) if gateway not in spared]
        if not lacking and (views.shown or not node.settings.gateways):
            return
        first = way.yields_to(node.settings.node, views, node.own)
        if first:
            raise StepFailed(
                f"{way.no_other_server(node.name, lacking)}: {', '.join(first)} drains the same set, and goes first."
                " Swap again when that node serves"
            )
        if node.traffic.clock() >= deadline:
            raise StepFailed(way.no_other_server(node.name, lacking or list(views.silent)))
        node.traffic.sleep(POLL_SECONDS)


def gate(node: Node, swap: Swap) -> dict[str, Any]:
    """Refuse new connections, and wait until the last one has ended."""
    port = swap.closed_port
    if port is None:
        return {}
    for each in swap.closed_ports:
        node.traffic.close(each)
    ill = swap.returning and not swap.notes.get("served")
    # At least 0, since the clock may have been set back.
    used = max(0.0, time.time() - swap.notes.get("drained", time.time()))
    limit = ILL_SECONDS if ill else max(_least_seconds(swap), drain_limit(swap) - used)
    left = node.traffic.wait_unused(port, limit, hopeless=partial(_hopeless, node, swap))
    busy = node.in_flight() if not left and not node.settings.gateways else 0
    deadline = node.traffic.clock() + GATED_SECONDS
    while busy and node.traffic.clock() < deadline:
        # Without gateways, clients on the node itself show only in the engine's own count.
        node.traffic.sleep(POLL_SECONDS)
        busy = node.in_flight()
    if (left or busy) and not (swap.terms.force or swap.returning):
        of = f", of {addresses(left)}" if left else ""
        waited = used + limit + (0.0 if left else GATED_SECONDS)
        raise StepFailed(f"{still_in_flight(len(left) or busy)} after {waited:.0f} s{of}", FORCE)
    if left and swap.terms.force:
        node.say(f"cuts {counted(len(left), 'request')} of {addresses(left)}")
    return {}


def _least_seconds(swap: Swap) -> float:
    """Least seconds for requests in flight behind the closed gate: GATED_SECONDS, but for an only server no more than
    the recorded patience. Its gateways hold all other requests meanwhile, for gateway_hold_seconds at most. ILL_SECONDS
    are always left, to see that the last connection has ended."""
    patience = swap.notes.get("patience")
    return GATED_SECONDS if patience is None else min(GATED_SECONDS, max(ILL_SECONDS, float(patience)))


def still_in_flight(number: int) -> str:
    """How many requests have not ended, as text."""
    return f"{counted(number, 'request')} {'is' if number == 1 else 'are'} still in flight"


def addresses(clients: Sequence[str]) -> str:
    """The clients' addresses as text, each once."""
    return ", ".join(dict.fromkeys(clients))


def stop(node: Node, swap: Swap) -> dict[str, Any]:
    """Stop the engine."""
    if not all(node.traffic.still_closed(port) for port in swap.closed_ports):
        # Another program has opened a gate: wait for the connections that came through.
        gate(node, swap)
    number = swap.release
    if number is not None:
        # Read before the engine ends: if the next release is damaged, the engine must keep serving.
        _verify(node, number)
    unit = unit_name(node.name)
    moved = number is not None and activation.runs(node.paths, node.name, number)
    # With the same release on the leader, only followers of a gang move: their engines end with the leader's.
    if moved and not swap.returning and not (swap.gang and swap.origin == number):
        return {}
    if systemd.active_state(unit) != "inactive":
        systemd.systemctl("stop", unit)
    return {}


def _verify(node: Node, number: int) -> None:
    try:
        releases.verify(node.paths, node.name, number)
    except releases.ReleaseError as error:
        raise StepFailed(str(error)) from error


def release(node: Node, swap: Swap) -> dict[str, Any]:
    """Open the gates and undrain the instance: its engine was not stopped."""
    open_gates(node, swap)
    drains.undrain(node.paths, node.name, drains.UPDATE, node.now())
    return {}


def open_gates(node: Node, swap: Swap) -> None:
    """Open the gates that this swap has closed, then those that an earlier swap has left. Raises GateError, OSError."""
    for port in swap.closed_ports:
        node.traffic.open(port)
    for port in node.left_gates():
        node.traffic.open(port)


def drain_limit(swap: Swap) -> float:
    """Seconds that requests in flight may take.
    For an only server the limit may be lower, since gateways hold all other requests meanwhile."""
    patience = swap.notes.get("patience")
    return float(swap.terms.drain_seconds if patience is None else min(patience, swap.terms.drain_seconds))
