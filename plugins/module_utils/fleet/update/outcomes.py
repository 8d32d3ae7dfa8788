# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The results of an update's swaps, the next turn, and the report. Private to the collection. Pure.

Nodes swap by themselves. The run starts each swap, waits for its end, and records the outcome for the node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.records import known

DONE, RETURNED, REFUSED, STUCK = "done", "returned", "refused", "stuck"
"""Outcomes of a swap. engine/state/swaps.py explains them."""

PERMISSIONS = {
    "force": "-e update_force=true cuts requests that are still in flight",
    "allow_downtime": "-e allow_downtime=true swaps anyway",
}
"""Advice for a refused swap: the playbook variable for each term of engine/swap_terms.py."""


@dataclass(frozen=True)
class Swapped:
    """The end of one swap, as the run records it."""

    name: str
    origin: int | None
    release: int | None
    """The release to swap to. For a swap that reverses an earlier one, the earlier swap's `origin`."""
    outcome: str
    line: str = ""
    """The line for the report, with measured values."""
    failure: str = ""
    """Why the update stops. A swap that is done can have one, too: a gateway may not have confirmed it."""
    permission: str = ""
    """The term that would have allowed a refused swap."""
    returns: bool = False
    """Whether this swap reverses an earlier swap of the same run."""

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Swapped:
        return cls(**known(cls, value))


@dataclass(frozen=True)
class NodeOutcome:
    """A node's part in the run."""

    swaps: tuple[Swapped, ...] = ()
    problem: str = ""
    """Why the node is not updated further."""
    under_way: str = ""
    """The instance whose swap has begun, and whose end the run has not seen."""
    lost: bool = False
    """Whether the node became unreachable during the run."""

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], *, lost: bool) -> NodeOutcome:
        swaps = tuple(map(Swapped.from_dict, value.get("swaps", ())))
        return cls(swaps, value.get("problem", ""), value.get("under_way", ""), lost)

    @property
    def failed(self) -> bool:
        """Whether the update must stop. A node that becomes unreachable outside its turn does not stop the update."""
        return bool(self.problem or (self.lost and self.under_way) or any(swap.failure for swap in self.swaps))


@dataclass(frozen=True)
class Run:
    """The nodes of a run by name, and further facts for the report."""

    nodes: Mapping[str, NodeOutcome]
    playbook: str
    outdated_gateways: Mapping[str, str] = field(default_factory=dict)
    """Gateways that do not have the new model names, with the reason."""
    left_out: Collection[str] = ()
    """Nodes that could not be reached at the start of the run."""

    @property
    def failed(self) -> list[str]:
        return [host for host, node in self.nodes.items() if node.failed]

    @property
    def lost(self) -> list[str]:
        """Nodes that became unreachable during the run without making the update fail."""
        return [host for host, node in self.nodes.items() if node.lost and not node.failed]


def turn(batch: Iterable[Mapping[str, Any]], host: str, run: Run) -> dict[str, Any]:
    """A node's turn in a batch; empty if the node has no turn in it, or if the run has failed."""
    own = [dict(item) for item in batch if item["host"] == host]
    return own[0] if own and not run.failed else {}


def way_back(batch: Iterable[Mapping[str, Any]], host: str, run: Run) -> dict[str, Any]:
    """The turn that reverses a node's swap in a batch; empty if this run has not swapped the node in that batch.

    Also empty if a reversal has failed on any node: then the other instances keep serving their new releases.
    """
    if any(swap.returns and swap.outcome != DONE for node in run.nodes.values() for swap in node.swaps):
        return {}
    ends = {swap.name: swap for swap in run.nodes[host].swaps}
    for item in batch:
        end = ends.get(item["name"])
        changed = end is not None and end.outcome == DONE and not end.returns
        if item["host"] == host and changed and item["origin"] not in (None, item["release"]):
            return {**item, "release": item["origin"], "origin": item["release"]}
    return {}


def lines(host: str, run: Run) -> list[str]:
    """The report's lines on a node's swaps."""
    found = []
    for swap in run.nodes[host].swaps:
        if swap.outcome == DONE and not swap.returns:
            found.append(swap.line or f"{swap.name} on {host} serves release {swap.release}")
        elif swap.outcome == (DONE if swap.returns else RETURNED):
            found.append(f"{swap.name} on {host} went back to the release that served before")
    return found


def failure(host: str, run: Run) -> str:
    """The message with which a run fails, for one node; empty if the run does not fail."""
    if not run.failed and not run.outdated_gateways:
        return ""
    node = run.nodes[host]
    if run.failed:
        found = [f"{run.playbook} stopped: it failed on {', '.join(run.failed)}."]
    else:
        found = [f"{run.playbook} has swapped all due instances, but some gateways do not have the new model names."]
    found += [f"{host}: {node.problem}"] if node.problem else []
    found += [f"{host}, {swap.name}: {words}" for swap in node.swaps if (words := _failure(swap))]
    found += [
        f"{other}, {lost.under_way}: the node became unreachable during the swap. It ends the swap by itself, with the"
        f" new or the old release: inferctl status on {other} shows which"
        for other, lost in run.nodes.items()
        if lost.lost and lost.under_way
    ]
    outdated = run.outdated_gateways
    found += [f"{name} still has the model names from before the run: {why}" for name, why in outdated.items()]
    found += _absent(run)
    where = "The lines above list what runs on each node. " if run.failed else ""
    return "\n".join([*found, f"{where}When the cause is removed, run {run.playbook} again."])


_STAYS = "could not return to the old release, and still serves the new one: "
_RETURNS = {
    DONE: "",
    RETURNED: _STAYS,
    REFUSED: _STAYS,
    STUCK: "could not return to the old release, and the new one does not serve either: the instance stays drained: ",
}
"""The words before the failure of a swap that reverses an earlier one, by its outcome."""


def _failure(swap: Swapped) -> str:
    if not swap.failure:
        return ""
    if swap.returns:
        return _RETURNS.get(swap.outcome, "the run has not seen the old release serve again: ") + swap.failure
    ends = {
        RETURNED: " The old release serves again.",
        REFUSED: " The instance was not changed.",
        STUCK: " The return to the old release failed, too: the instance stays drained.",
    }
    nevertheless = PERMISSIONS.get(swap.permission, "")
    return swap.failure + (ends.get(swap.outcome) or "") + (f" {nevertheless}." if nevertheless else "")


def _absent(run: Run) -> list[str]:
    """The nodes that did not take part until the end, and what the run has done there."""
    words = dict.fromkeys(sorted(run.left_out), "could not be reached at the start of the run, and was not updated")
    for host in sorted(run.lost):
        swapped = ", ".join(dict.fromkeys(swap.name for swap in run.nodes[host].swaps))
        done = f"after the swap of {swapped}" if swapped else "and was not updated"
        words[host] = f"became unreachable during the run, {done}"
    return [f"{host} {why}: run {run.playbook} again when the node answers" for host, why in words.items()]


def state(engines: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A line for each instance: its release, and whether it serves. `engines`: results of the module engine_facts."""
    found = []
    for host, result in engines.items():
        if "instances" not in result:
            found.append(f"{host}: its instances are unknown: {result.get('msg', '')}")
        for one in result.get("instances", ()):
            serves = "serves" if one["serving"] else "does not serve"
            drained = f", drained by {one['drained_by']}" if one["drained_by"] else ""
            release = "none" if one["release"] is None else one["release"]
            found.append(f"{host}: {one['name']}: release {release} ({one['model']}) {serves}{drained}")
    return found


def read(
    hosts: Sequence[str], playing: Collection[str], kept: Mapping[str, Mapping[str, Any]]
) -> dict[str, NodeOutcome]:
    """The outcomes of `hosts`, the nodes at the start of the run. `playing`: the nodes that are still in the play.
    `kept`: the recorded outcome of each node."""
    return {host: NodeOutcome.from_dict(kept.get(host, {}), lost=host not in playing) for host in hosts}
