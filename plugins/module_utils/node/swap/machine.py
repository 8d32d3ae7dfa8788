# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of a swap's steps, and what follows when a step fails. Private to the collection; pure.

begun - bridge - drain - gate - stop - start - probe - admit - watch - prove - unbridge: done. Until `stop`, a failure
lets requests back, and nothing was touched: refused. From `stop` on, a failure takes the release before the same way:
returned. A step of either way back that fails is tried again. Where all tries fail, or there is no release before,
requests stay away: stuck. What serves again is never stuck: what is left to do is reported.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...engine.state import swaps
from ...engine.state.swaps import Swap

_FORWARD = (
    swaps.BEGUN,
    swaps.BRIDGE,
    swaps.DRAIN,
    swaps.GATE,
    swaps.STOP,
    swaps.START,
    swaps.PROBE,
    swaps.ADMIT,
    swaps.WATCH,
    swaps.PROVE,
    swaps.UNBRIDGE,
)
"""The steps of a swap that goes well."""

_NOT_RETURNING = frozenset({swaps.BEGUN, swaps.BRIDGE, swaps.WATCH})
"""Steps that the way back leaves out: what served before is known to work."""

_BLIND = frozenset({swaps.ADMIT, swaps.WATCH, swaps.PROVE, swaps.RELEASE, swaps.UNBRIDGE})
"""Steps that go on where the node does not know its gateways: the engine that runs is the one that is to serve."""

WAITS = (2.0, 4.0, 8.0, 16.0, 30.0)
"""Seconds before each further try of a step on the way back. What nft, systemd or Docker refuse now, they may do in a
minute. An engine that does not start is started anew by systemd meanwhile; a further try looks at it again."""

SLOW_SECONDS = 60.0
"""A step that fails after that has waited for an engine long enough, and is not tried again."""


@dataclass(frozen=True)
class Ended:
    """The swap is over."""

    swap: Swap
    outcome: str
    """`done`, `returned` or `refused`."""


def passed(swap: Swap) -> Swap | Ended:
    """What follows a step that went well."""
    if swap.step == swaps.UNBRIDGE:
        return _ended(swap)
    if swap.step == swaps.RELEASE:
        return replace(swap, step=swaps.UNBRIDGE, tries=0)
    steps = [step for step in _FORWARD if not (swap.returning and step in _NOT_RETURNING)]
    following = steps[steps.index(swap.step) + 1]
    # From here on, the engine that served is not there any more.
    return replace(swap, step=following, touched=swap.touched or following == swaps.STOP, tries=0)


def _ended(swap: Swap) -> Ended:
    return Ended(swap, swaps.RETURNED if swap.returning else swaps.DONE if not swap.failure else swaps.REFUSED)


def failed(swap: Swap, reason: str, seconds: float = 0.0, permission: str = "") -> Swap | Ended:
    """What follows a step that failed after so many seconds. `permission`: the term that would have allowed it."""
    if swap.step == swaps.UNBRIDGE:
        # What the swap was for is done: the bridge stays, serves, and is removed by the next swap.
        return _ended(replace(swap, notes={**swap.notes, "kept_bridge": reason}))
    backward = swap.returning or swap.step == swaps.RELEASE
    if backward and swap.tries < len(WAITS) and seconds < SLOW_SECONDS:
        return replace(swap, tries=swap.tries + 1)
    if swap.returning and swap.step == swaps.PROVE:
        # The release before serves. To keep requests away from it now would help nobody.
        return passed(replace(swap, notes={**swap.notes, "unproven": reason}))
    if backward:
        why = f"{swap.failure}; and then: {reason}" if swap.failure else reason
        return replace(swap, step=swaps.STUCK, failure=why)
    if not swap.touched:
        return replace(swap, step=swaps.RELEASE, failure=reason, permission=permission)
    if swap.origin is None:
        nothing = "Nothing has served before: there is nothing to go back to"
        return replace(swap, step=swaps.STUCK, failure=f"{reason}. {nothing}")
    return replace(swap, step=swaps.DRAIN, returning=True, failure=reason)


def blind(swap: Swap, reason: str) -> Swap:
    """What becomes of a swap whose node does not know its gateways any more. The way back does without them."""
    if swap.returning or swap.step in _BLIND:
        return swap
    following = failed(swap, reason)
    return following.swap if isinstance(following, Ended) else following


def restarted(swap: Swap) -> Swap:
    """What a restart of the node makes of a swap: the engine has started anew, and has to pass the probe again."""
    return replace(swap, step=swaps.START, tries=0) if swap.step in (swaps.ADMIT, swaps.WATCH) else swap
