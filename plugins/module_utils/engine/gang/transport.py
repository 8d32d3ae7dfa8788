# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the engines of a gang exchange data: the environment of NCCL and Gloo. Private to the collection.

The environment of a member needs the facts of all members. A run collects them. For members that a run leaves out, the
record of the instance has the facts of the last run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core import files
from ...core.paths import Paths
from ...core.problems import Findings
from ...hardware.rdma_settings import nccl
from . import site

RECORDED = "networks"
"""The key of an instance's record with the facts of the members."""


@dataclass(frozen=True)
class Transport:
    """What the nodes of a run have, and what the site wants of NCCL."""

    nodes: Mapping[str, nccl.Node] = field(default_factory=dict)
    """The nodes of this run that are members of a gang, by name."""
    options: nccl.Options = field(default_factory=nccl.Options)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Transport:
        """A transport from the option `network` of a module. Raises ValueError where the value is damaged."""
        options = nccl.Options(
            required=bool(value.get("required")),
            rails_connected=value.get("rails_connected"),
            overrides=dict(value.get("variables") or {}),
        )
        return cls({name: nccl.Node.from_dict(one) for name, one in (value.get("nodes") or {}).items()}, options)

    def members(self, paths: Paths, name: str, names: Sequence[str]) -> dict[str, nccl.Node]:
        """The facts of an instance's members by name, in the order of `names`: those of this run, or else those of the
        last run. Members without facts are left out."""
        recorded = _recorded(paths, name) if any(one not in self.nodes for one in names) else {}
        known = {**recorded, **self.nodes}
        return {one: known[one] for one in names if one in known}

    def variables(self, paths: Paths, name: str, names: Sequence[str], node: str) -> dict[str, str]:
        """The variables of a node for an instance. check() reports the mistakes."""
        found, _findings = nccl.environment(self.members(paths, name, names), self.options)
        return found.get(node, {})

    def record(self, paths: Paths, name: str, names: Sequence[str]) -> dict[str, Any]:
        """The facts of an instance's members for its record, in plain values."""
        return {one: node.to_dict() for one, node in self.members(paths, name, names).items()}


def _recorded(paths: Paths, name: str) -> dict[str, nccl.Node]:
    """The members in an instance's record; empty where the record is missing or damaged."""
    try:
        found = (files.read_json(paths.instance(name)) or {}).get(RECORDED) or {}
        return {node: nccl.Node.from_dict(value) for node, value in found.items()}
    except (OSError, ValueError, AttributeError):
        return {}


def check(
    instances: Sequence[Any],
    transport: Transport,
    paths: Paths,
    environment: Mapping[str, Any],
    secrets: Mapping[str, Any],
    *,
    starts: bool,
) -> Findings:
    """Every mistake and every warning about the networks of a node's gangs.

    `environment` has the site's variables of every engine, and `secrets` the secret variables of single instances, of
    which some must not be set. `starts`: the run starts engines, so the facts of all members must be known.
    """
    found = Findings()
    everywhere: dict[str, nccl.Node] = {}
    for raw in site.gangs_of(instances):
        name, names = str(raw.get("name")), list(dict.fromkeys(raw[site.NODES]))
        known = transport.members(paths, name, names)
        everywhere |= known
        where = f"instance {name}"
        missing = [node for node in names if node not in known]
        if missing and starts:
            advice = f"run baremetal.inference.site once with all members: -l {','.join(names)}"
            message = f"the network of {', '.join(missing)} is unknown: {advice}"
            found.problem(where, message, site.NODES)
        _variables, findings = nccl.environment(known, transport.options)
        found.problems += findings.problems
        found.warnings += findings.warnings
        for own in (raw.get("environment"), secrets.get(name)):
            _refuse(where, own if isinstance(own, Mapping) else {}, known, transport, found)
    if site.gangs_of(instances):
        _refuse("vllm_environment", environment, everywhere, transport, found)
    # Gangs of the same nodes have the same mistakes.
    return Findings(_once(found.problems), _once(found.warnings))


def _refuse(
    where: str, given: Mapping[str, Any], nodes: Mapping[str, nccl.Node], transport: Transport, found: Findings
) -> None:
    """Add the variables that must not be set. Their values may be secret."""
    for key, message in nccl.refusals(given, nodes, transport.options).items():
        found.problem(where, message, key)


def _once(problems: list[Any]) -> list[Any]:
    return list({str(problem): problem for problem in problems}.values())
