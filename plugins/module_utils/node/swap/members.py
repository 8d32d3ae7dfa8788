# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The followers in the swap of a gang. Private to the collection.

The leader swaps for the whole gang. Followers report which releases they keep, and move to the leader's release when
its supervisor starts with another one (node/gang). So the leader alone decides, and a follower that was off meanwhile
moves as soon as it is back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...engine.gang.members import DIGEST_DIGITS, Gang
from ...engine.release import Release
from ...engine.state import gangs, releases
from ...engine.state.gangs import GangState, MemberState
from ...engine.state.swaps import Move, Swap
from .node import POLL_SECONDS, Node, StepFailed

STAGE_SECONDS = 30.0
"""How long members may be missing before a swap. A gang whose engine ends again and again has all members only
for moments."""

PROVE_SECONDS = 30.0
"""How long followers may take to mark a release as proven."""

MOVE_SECONDS = 180.0
"""How long members may be missing after the start of a new release. On the way back there is no limit: without all
members, no release can serve."""


def unlike(origin: Release | None, target: Release) -> str:
    """Why a swap cannot lead from one release to the other: the members would not find each other. Empty if it can."""
    if origin is None or seats(origin.gang) == seats(target.gang):
        return ""
    return (
        f"release {target.number} of {target.instance} has other nodes, addresses or ports of its gang than release"
        f" {origin.number}: drain the instance, stop its unit on all members, and run baremetal.inference.site"
    )


def seats(gang: Gang | None) -> tuple[Any, ...]:
    """What members need to reach each other while they move: it must not change."""
    return () if gang is None else (gang.members, gang.gang_port)


def kept(member: MemberState) -> dict[int, str]:
    """The first digits of the gang digest of each release that a member keeps, by the member's own number of it."""
    pairs = (item.partition(":") for item in member.releases.split())
    return {int(number): digest for number, _colon, digest in pairs if number.isdecimal()}


def choose(member: MemberState, digest: str) -> int | None:
    """The release of a member that belongs to a gang digest; None without one.

    The release that the inventory asks for goes first, then the active one: both may differ in what the digest does
    not cover, such as the GPUs.
    """
    matching = [number for number, own in kept(member).items() if own == digest[:DIGEST_DIGITS]]
    for number in (member.desired, member.active):
        if number in matching:
            return number
    return max(matching, default=None)


def moves(gang: Gang, state: GangState | None) -> tuple[dict[str, Move], list[str]]:
    """The moves of all followers to a release's gang, and why some cannot move."""
    found: dict[str, Move] = {}
    problems: list[str] = []
    if state is None or state.state not in gangs.PRESENT:
        stopped = f"{gang.name} does not run on {gang.me.node}, so its other members cannot be asked"
        return {}, [f"{stopped}: systemctl start vllm@{gang.name}"]
    known = {member.node: member for member in state.members}
    for follower in gang.followers:
        member = known.get(follower.node)
        if member is None or member.state not in gangs.PRESENT or not member.releases:
            why = member.detail or member.state if member else "unknown"
            problems.append(f"{follower.node} does not take part ({why}): start vllm@{gang.name} there")
            continue
        number = choose(member, gang.digest)
        if number is None:
            problems.append(
                f"{follower.node} has no release of {gang.name} with the gang digest {gang.digest[:DIGEST_DIGITS]}:"
                " baremetal.inference.update_model stages the release on all members"
            )
        else:
            found[follower.node] = Move(member.active, number)
    return found, problems


def due(gang: Gang, state: GangState | None) -> bool:
    """Whether a follower has to move, or has not marked its release as proven. False where that is unknown."""
    found, _problems = moves(gang, state)
    return any(move.origin != move.target for move in found.values()) or bool(unmarked(gang, state))


def unmarked(gang: Gang, state: GangState | None) -> list[str]:
    """The followers that take part and have not marked their release of a gang digest as proven, in words."""
    found, _problems = moves(gang, state)
    current = {member.node: member.current for member in state.members} if state else {}
    return [
        f"{node} has not marked release {move.target}" for node, move in found.items() if current[node] != move.target
    ]


def behind(swap: Swap, number: int, state: GangState | None) -> list[str]:
    """The followers that have not marked the leader's release `number` as proven, with the reason."""
    known: Mapping[str, MemberState] = {member.node: member for member in state.members} if state else {}
    words = []
    for node in swap.moves:
        member = known.get(node)
        wanted = swap.release_of(node, number)
        if member is None or member.state not in gangs.PRESENT:
            words.append(f"{node} does not take part")
        elif wanted and member.current != wanted:
            words.append(f"{node} has not marked release {wanted}")
    return words


def absent(node: Node) -> list[str]:
    """The members for which a gang waits; empty if none is missing, or the instance is no gang."""
    state = gangs.read(node.paths, node.name)
    if state is None or state.state != gangs.WAITING:
        return []
    return [f"{member.node} ({member.detail or member.state})" for member in state.absent if member.rank]


# The steps that only a gang takes.


def staged(node: Node, swap: Swap) -> dict[str, Any]:
    """Read from all followers that they keep the target, and record their numbers of both releases."""
    gang = releases.load(node.paths, node.name, swap.target).gang
    if gang is None:
        return {"gang": False}
    deadline = node.traffic.clock() + STAGE_SECONDS
    while True:
        found, problems = moves(gang, gangs.read(node.paths, node.name))
        if not problems or swap.touched:
            break
        if node.traffic.clock() >= deadline:
            raise StepFailed("; ".join(problems))
        node.traffic.sleep(POLL_SECONDS)
    # After a stuck swap, the leader's supervisor may not run. Then the gang digest alone selects a follower's release.
    return {"moves": {**found, **swap.moves}}


def prove(node: Node, swap: Swap) -> dict[str, Any]:
    """Wait until all followers have marked the release as proven. The leader's supervisor asks them."""
    number = swap.release
    deadline = node.traffic.clock() + PROVE_SECONDS
    while number is not None and (words := behind(swap, number, gangs.read(node.paths, node.name))):
        if node.traffic.clock() >= deadline:
            raise StepFailed("; ".join(words))
        node.traffic.sleep(POLL_SECONDS)
    return {}
