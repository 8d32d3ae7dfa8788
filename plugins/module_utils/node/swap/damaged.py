# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a swap whose record is damaged. Private to the collection.

The drain, the gate and the time of the engine's start show how far the swap came. An engine that serves, or was not
stopped, gets its requests back. Any other engine is started anew, and has to pass the probe behind its gate.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from ...core import systemd
from ...core.paths import Paths, unit_name
from ...engine import endpoints, gate
from ...engine.state import drains, lock, releases, swaps
from ...engine.state.drains import parse_time
from ...engine.state.swaps import Swap

_STARTED = "InactiveExitTimestamp"


def rebuilt(paths: Paths, name: str, found: Swap) -> Swap:
    """The swap that ends what a swap at the step DAMAGED has begun. Raises SystemdError, OSError."""
    runs = endpoints.of(paths, name, [found.origin])
    swap = replace(
        found,
        run_id=run_id(paths, name),
        closed_port=runs[0].port if runs else None,
        # True even without a bridge: the gate of a bridge's port may be closed.
        bridged=True,
        gang=_spans_nodes(paths, name, found.origin),
    )
    if _untouched(paths, name):
        if found.origin is not None and not releases.proven(paths, name, found.origin):
            swap = replace(swap, notes={"unproven": "the record of its swap was damaged"})
        return replace(swap, step=swaps.RELEASE)
    step = swaps.DRAIN if found.origin is not None else swaps.STUCK
    return replace(swap, step=step, returning=True, touched=True)


def _spans_nodes(paths: Paths, name: str, number: int | None) -> bool:
    """Whether a release is a gang's. False if unknown: the swap then leaves out the steps of gangs, and the followers
    mark the release as proven once the gang serves."""
    try:
        return number is not None and releases.load(paths, name, number).gang is not None
    except releases.ReleaseError:
        return False


def run_id(paths: Paths, name: str) -> str:
    """The run of `inferctl` that began a swap whose record is damaged, by the record of the lock; empty if unknown."""
    try:
        found = lock.read(paths)
    except (OSError, ValueError):
        return ""
    if found is None or found.playbook != lock.BY_HAND:
        return ""
    others = [swaps.read(paths, other) for other in swaps.names(paths) if other != name]
    return "" if any(other and other.run_id == found.run_id for other in others) else found.run_id


def _untouched(paths: Paths, name: str) -> bool:
    """Whether the engine runs, and either the swap has not stopped it, or its gate is open and clients reach it.

    False if nft does not answer. Raises SystemdError, OSError.
    """
    unit = unit_name(name)
    shown = systemd.show([unit], ["ActiveState", _STARTED])[unit]
    if shown["ActiveState"] != "active":
        return False
    drain = drains.read(paths, name, datetime.now(UTC))
    if drain is None or drain.owner != drains.UPDATE:
        ports = {endpoint.port for endpoint in endpoints.of(paths, name, releases.numbers(paths, name))}
        try:
            return not ports & _closed()
        except gate.GateError:
            # The gate may be closed: then the engine has not proved itself.
            return False
    try:
        return int(shown[_STARTED].removeprefix("@")) < parse_time(drain.since).timestamp()
    except ValueError:
        return False


def _closed() -> set[int]:
    """The ports whose gate is closed; none on a node without nftables. Raises GateError."""
    try:
        return gate.closed()
    except gate.NotInstalled:
        return set()
