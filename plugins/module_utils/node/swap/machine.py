# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of a swap's steps, and what follows a failed step. Private to the collection; pure.

begun - bridge - drain - gate - stop - start - probe - admit - watch - prove - unbridge: done.

A gang has two more steps: `staged` after `begun`, and `members` before `prove`. The leader swaps for the whole gang. In
`members`, followers mark the release as proven, before the leader does in `prove`.

- Before `stop`, a failure leads to the step `release`, which opens the gate and undrains the instance, and then to
  `unbridge`: refused.
- From `stop` on, a failure starts the release before by the same steps: returned.
- On both ways back, a step other than `unbridge` that fails within SLOW_SECONDS is tried again. After a slow
  failure or the last try, or without a release before, requests stay away: stuck.
- From `members` and `prove` on, the release has passed all checks and serves, so the swap neither goes back nor is
  stuck. Both steps are tried again as well. The report names what the swap could not do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...engine.state import swaps
from ...engine.state.swaps import Swap

_FORWARD = (
    swaps.BEGUN,
    swaps.STAGED,
    swaps.BRIDGE,
    swaps.DRAIN,
    swaps.GATE,
    swaps.STOP,
    swaps.START,
    swaps.PROBE,
    swaps.ADMIT,
    swaps.WATCH,
    swaps.MEMBERS,
    swaps.PROVE,
    swaps.UNBRIDGE,
)
"""The steps of a swap that succeeds."""

_NOT_RETURNING = frozenset({swaps.BEGUN, swaps.STAGED, swaps.BRIDGE, swaps.WATCH})
"""Steps that the way back leaves out, since the release before is known to work."""

_SERVES = frozenset({swaps.MEMBERS, swaps.PROVE})
"""Steps that mark a release, which has passed all checks and serves."""

_BLIND = frozenset({swaps.ADMIT, swaps.WATCH, *_SERVES, swaps.RELEASE, swaps.UNBRIDGE})
"""Steps that need no gateways: the engine that runs is already the right one. They continue
if the node cannot read its settings of swaps."""

WAITS = (2.0, 4.0, 8.0, 16.0, 30.0)
"""Seconds before each further try of `members` or `prove`, or of a step on the way back. nft, systemd or Docker may
work again after a minute. Meanwhile, systemd restarts an engine that does not start, and the next try finds it."""

SLOW_SECONDS = 60.0
"""A failed step that took longer has waited for the engine long enough, and is not tried again."""


@dataclass(frozen=True)
class Ended:
    """A swap that has ended."""

    swap: Swap
    outcome: str
    """`done`, `returned` or `refused`."""


def passed(swap: Swap) -> Swap | Ended:
    """What follows a step that succeeded."""
    if swap.step == swaps.UNBRIDGE:
        return _ended(swap)
    if swap.step == swaps.RELEASE:
        return replace(swap, step=swaps.UNBRIDGE, tries=0)
    left_out = (_NOT_RETURNING if swap.returning else frozenset()) | (frozenset() if swap.gang else swaps.OF_GANGS)
    steps = [step for step in _FORWARD if step not in left_out]
    following = steps[steps.index(swap.step) + 1]
    # At `stop`, the engine that served ends.
    return replace(swap, step=following, touched=swap.touched or following == swaps.STOP, tries=0)


def _ended(swap: Swap) -> Ended:
    return Ended(swap, swaps.RETURNED if swap.returning else swaps.DONE if not swap.failure else swaps.REFUSED)


def failed(swap: Swap, reason: str, seconds: float = 0.0, permission: str = "") -> Swap | Ended:
    """What follows a step that failed after `seconds`. `permission`: the term that would have allowed the step."""
    if swap.step == swaps.UNBRIDGE:
        # The release serves. The bridge stays and serves, too, and the next swap removes it.
        return _ended(replace(swap, notes={**swap.notes, "kept_bridge": reason}))
    backward = swap.returning or swap.step == swaps.RELEASE
    if (backward or swap.step in _SERVES) and swap.tries < len(WAITS) and seconds < SLOW_SECONDS:
        return replace(swap, tries=swap.tries + 1)
    if swap.step == swaps.MEMBERS:
        # The release serves. The leader has the members that are behind mark the release when they are back.
        return passed(replace(swap, notes={**swap.notes, "behind": reason}))
    if swap.step == swaps.PROVE:
        # The release serves. A drain would not help: a full disk takes no other release either.
        return passed(replace(swap, notes={**swap.notes, "unproven": reason}))
    if backward:
        why = f"{swap.failure}; and then: {reason}" if swap.failure else reason
        return replace(swap, step=swaps.STUCK, failure=why)
    if not swap.touched:
        return replace(swap, step=swaps.RELEASE, failure=reason, permission=permission)
    if swap.origin is None:
        nothing = "No release served before, so the swap cannot return"
        return replace(swap, step=swaps.STUCK, failure=f"{reason}. {nothing}")
    return replace(swap, step=swaps.DRAIN, returning=True, failure=reason)


def blind(swap: Swap, reason: str) -> Swap:
    """What follows if the node cannot read its settings of swaps. The way back works without gateways."""
    if swap.returning or swap.step in _BLIND:
        return swap
    following = failed(swap, reason)
    return following.swap if isinstance(following, Ended) else following


def restarted(swap: Swap) -> Swap:
    """The swap after a restart of the node: the engine has restarted, and must pass the probe again."""
    return replace(swap, step=swaps.START, tries=0) if swap.step in (swaps.ADMIT, swaps.WATCH) else swap
