# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the swaps of an update went so far: whose turn it is, and the report. Private to the collection. Pure.

Nodes swap by themselves. The run starts swaps, waits for each, and keeps with each node how the node's swaps ended.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.records import known

DONE, RETURNED, REFUSED, STUCK = "done", "returned", "refused", "stuck"
"""How a swap ends: engine/state/swaps.py."""

PERMISSIONS = {
    "force": "-e update_force=true cuts requests that are still at work",
    "allow_downtime": "-e allow_downtime=true swaps anyway",
}
"""What to say where a term of engine/swap_terms.py was missing, in the words of the playbooks."""


@dataclass(frozen=True)
class Swapped:
    """The end of one swap, as the module engine_swap returns it."""

    name: str
    origin: int | None
    release: int | None
    """What the swap led to. Of one that was put back, the release before."""
    outcome: str
    line: str = ""
    """What was measured, for the report."""
    failure: str = ""
    """Why the update goes no further. Also of a swap that is done: a gateway may not have told that it knows."""
    permission: str = ""
    """The term that would have let a swap go on that was refused."""
    returns: bool = False
    """Whether the run has put back here what it had swapped before."""

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Swapped:
        return cls(**known(cls, value))


@dataclass(frozen=True)
class NodeOutcome:
    """A node's part in the run."""

    swaps: tuple[Swapped, ...] = ()
    problem: str = ""
    """Why the node takes no further part."""
    under_way: str = ""
    """The instance whose swap had begun, and was not seen to end."""
    lost: bool = False
    """Whether the controller has lost the node."""

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], *, lost: bool) -> NodeOutcome:
        swaps = tuple(map(Swapped.from_dict, value.get("swaps", ())))
        return cls(swaps, value.get("problem", ""), value.get("under_way", ""), lost)

    @property
    def failed(self) -> bool:
        """Whether the update must not go on. A node that was lost outside its turn does not stop the update."""
        return bool(self.problem or (self.lost and self.under_way) or any(swap.failure for swap in self.swaps))


@dataclass(frozen=True)
class Run:
    """The nodes of a run, by name, and what else the report must tell."""

    nodes: Mapping[str, NodeOutcome]
    playbook: str
    untold: Mapping[str, str] = field(default_factory=dict)
    """Gateways that could not be told what is served now, and why."""
    left_out: Collection[str] = ()
    """Nodes that could not be reached when the run began."""

    @property
    def failed(self) -> list[str]:
        return [host for host, node in self.nodes.items() if node.failed]

    @property
    def lost(self) -> list[str]:
        """Nodes that were lost on the way, and have not made the update fail."""
        return [host for host, node in self.nodes.items() if node.lost and not node.failed]


def turn(batch: Iterable[Mapping[str, Any]], host: str, run: Run) -> dict[str, Any]:
    """A node's turn in a batch; empty where the node has none, or something has failed."""
    own = [dict(item) for item in batch if item["host"] == host]
    return own[0] if own and not run.failed else {}


def way_back(batch: Iterable[Mapping[str, Any]], host: str, run: Run) -> dict[str, Any]:
    """What a node puts back of a batch that this run has swapped; empty where nothing.

    Where one could not be put back, the others stay with what serves.
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
    """What a node did in a run."""
    found = []
    for swap in run.nodes[host].swaps:
        if swap.outcome == DONE and not swap.returns:
            found.append(swap.line or f"{swap.name} on {host} serves release {swap.release}")
        elif swap.outcome == RETURNED or (swap.returns and swap.outcome == DONE):
            found.append(f"{swap.name} on {host} went back to the release that served before")
    return found


def failure(host: str, run: Run) -> str:
    """Why a run fails, in a node's words; empty where it does not."""
    if not run.failed and not run.untold:
        return ""
    node = run.nodes[host]
    if run.failed:
        found = [f"{run.playbook} stopped: it failed on {', '.join(run.failed)}."]
    else:
        found = [f"{run.playbook} has swapped what was due, but not everybody knows."]
    found += [f"{host}: {node.problem}"] if node.problem else []
    found += [f"{host}, {swap.name}: {words}" for swap in node.swaps if (words := _failure(swap))]
    found += [
        f"{other}, {lost.under_way}: the node was lost while it swaps. The swap ends by itself, forward or back:"
        f" inferctl status on {other} tells how"
        for other, lost in run.nodes.items()
        if lost.lost and lost.under_way
    ]
    found += [f"{name} goes by the models' names from before: {why}" for name, why in run.untold.items()]
    found += _absent(run)
    where = "What runs where stands above. " if run.failed else ""
    return "\n".join([*found, f"{where}When the cause is gone, run {run.playbook} again."])


def _failure(swap: Swapped) -> str:
    if not swap.failure:
        return ""
    if swap.returns:
        return f"was not put back, and serves on with its new release: {swap.failure}"
    ends = {
        RETURNED: " The release before serves again.",
        REFUSED: " Nothing was touched.",
        STUCK: " It could not be put back, and stays drained.",
    }
    nevertheless = PERMISSIONS.get(swap.permission, "")
    return swap.failure + (ends.get(swap.outcome) or "") + (f" {nevertheless}." if nevertheless else "")


def _absent(run: Run) -> list[str]:
    words = [(run.left_out, "could not be reached when the run began"), (run.lost, "was lost on the way")]
    return [
        f"{host} {why}, and took no part: run {run.playbook} again when it answers"
        for hosts, why in words
        for host in sorted(hosts)
    ]


def state(engines: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What runs where, a line for each instance. `engines`: what the module engine_facts has returned of each node."""
    found = []
    for host, told in engines.items():
        if "instances" not in told:
            found.append(f"{host}: what runs is unknown: {told.get('msg', '')}")
        for one in told.get("instances", ()):
            serves = "serves" if one["serving"] else "does not serve"
            drained = f", drained by {one['drained_by']}" if one["drained_by"] else ""
            release = "none" if one["release"] is None else one["release"]
            found.append(f"{host}: {one['name']}: release {release} ({one['model']}) {serves}{drained}")
    return found


def read(
    hosts: Sequence[str], playing: Collection[str], kept: Mapping[str, Mapping[str, Any]]
) -> dict[str, NodeOutcome]:
    """The nodes that a run began with. `playing`: those that Ansible still has; `kept`: what the run keeps of each."""
    return {host: NodeOutcome.from_dict(kept.get(host, {}), lost=host not in playing) for host in hosts}
