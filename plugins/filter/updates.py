# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters of playbooks for updates, maintenance and removals.

Each function imports what it needs itself, because Ansible's worker processes may load every file of filters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError


def update_plan(
    hosts: Mapping[str, Mapping[str, Any]],
    sizes: Sequence[str | int],
    instances: Sequence[str] = (),
    model: str = "",
    release: int = 0,
    allow_downtime: bool = False,
    left_out: Sequence[str] = (),
) -> dict[str, Any]:
    """The batches of an update, and every problem."""
    from ansible_collections.baremetal.inference.plugins.module_utils.fleet.update import plan

    read = {name: plan.Host.from_dict(host) for name, host in hosts.items()}
    choice = plan.Choice(tuple(instances), model, release)
    return plan.plan(read, sizes, choice, allow_downtime=allow_downtime, left_out=left_out).to_dict()


def fit_refusal(found: Mapping[str, Any], instances: Sequence[str] = (), model: str = "", swaps: bool = True) -> str:
    """The plans of a node that do not fit, as text; empty if all fit."""
    from ansible_collections.baremetal.inference.plugins.module_utils.engine.plan_text import refusal
    from ansible_collections.baremetal.inference.plugins.module_utils.fleet.update import plan
    from ansible_collections.baremetal.inference.plugins.module_utils.fleet.update.fitting import misfits

    chosen = misfits(found["plans"], plan.Choice(tuple(instances), model), swaps=swaps)
    return refusal(chosen, found["problems"])


def _run(run: Mapping[str, Any]) -> Any:
    """Read a run from the dictionary that roles/update/vars makes."""
    from ansible_collections.baremetal.inference.plugins.module_utils.fleet.update import outcomes

    nodes = outcomes.read(run["hosts"], run["playing"], run["kept"])
    return outcomes.Run(nodes, run["playbook"], run.get("outdated_gateways", {}), run.get("left_out", ()))


def update_turn(
    batch: Sequence[Mapping[str, Any]], host: str, run: Mapping[str, Any], back: bool = False
) -> dict[str, Any]:
    """A node's swap in a batch, or with `back` the reversal of that swap; empty if there is none."""
    from ansible_collections.baremetal.inference.plugins.module_utils.fleet.update import outcomes

    return (outcomes.way_back if back else outcomes.turn)(batch, host, _run(run))


def update_failed(run: Mapping[str, Any]) -> list[str]:
    """The nodes on which an update has failed."""
    return list(_run(run).failed)


def update_report(run: Mapping[str, Any], host: str, engines: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """A node's swaps; what all nodes run, if the run has failed; and the reason for the failure."""
    from ansible_collections.baremetal.inference.plugins.module_utils.fleet.update import outcomes

    read = _run(run)
    state = outcomes.state(engines) if read.failed else []
    return {"lines": outcomes.lines(host, read), "state": state, "failure": outcomes.failure(host, read)}


def renamed_variables(names: Sequence[str]) -> str:
    """A text that lists the renamed variables among `names`; empty if there are none."""
    from ansible_collections.baremetal.inference.plugins.module_utils.fleet.update import renamed

    return renamed.words(names)


def removal_plan(
    hosts: Mapping[str, Mapping[str, Any]],
    instance: str = "",
    model: str = "",
    everything: bool = False,
    orphans: bool = False,
    allow_downtime: bool = False,
) -> dict[str, Any]:
    """The instances to remove from each node, and every problem."""
    from ansible_collections.baremetal.inference.plugins.module_utils.fleet.update import removals

    read = {name: removals.Host.from_dict(host) for name, host in hosts.items()}
    wanted = removals.Selection(instance, model, everything, orphans)
    return removals.plan_removals(read, wanted, allow_downtime=allow_downtime).to_dict()


def set_models(given: object, rest: str = "") -> dict[str, str]:
    """The models of `-e set=…`, by instance. Raises AnsibleFilterError."""
    from ansible_collections.baremetal.inference.plugins.module_utils.engine.inventory import models_once

    try:
        return models_once(given, rest)
    except ValueError as error:
        raise AnsibleFilterError(str(error)) from error


def maintenance_plan(
    hosts: Mapping[str, Mapping[str, Any]],
    sizes: Sequence[str | int],
    seconds: int,
    allow_downtime: bool = False,
    left_out: Sequence[str] = (),
) -> dict[str, Any]:
    """The batches of nodes for maintenance, and every problem."""
    from ansible_collections.baremetal.inference.plugins.module_utils.fleet.update import maintenance

    read = {name: maintenance.Host.from_dict(host) for name, host in hosts.items()}
    terms = maintenance.Terms(sizes, seconds, allow_downtime)
    return maintenance.plan_maintenance(read, terms, left_out).to_dict()


def waiting_lines(
    stage: Mapping[str, Any],
    host: str,
    instances: Sequence[Any] = (),
    playing: Sequence[str] = (),
    updates: bool = False,
) -> list[str]:
    """What waits on a host for an update, a removal or other nodes; empty if nothing waits."""
    from ansible_collections.baremetal.inference.plugins.module_utils.fleet.update import waiting

    return waiting.lines(stage, host, instances, playing, updates=updates)


def maintenance_mistakes(settings: Mapping[str, Any], known: Sequence[str]) -> list[str]:
    """A text for each setting of a maintenance that is not allowed."""
    from ansible_collections.baremetal.inference.plugins.module_utils.fleet.update import maintenance_words

    return maintenance_words.mistakes(settings, known)


def maintenance_failure(failed: Sequence[str], host: str, state: str, left_out: Sequence[str] = ()) -> str:
    """Why a maintenance has stopped, and what became of a host."""
    from ansible_collections.baremetal.inference.plugins.module_utils.fleet.update import maintenance_words

    return maintenance_words.failure(host, failed, state, left_out)


def maintenance_unsound(facts: Mapping[str, Any]) -> str:
    """The certificates that expire soon and the damaged models of a node; empty if there are none."""
    from ansible_collections.baremetal.inference.plugins.module_utils.fleet.update import maintenance_words

    return maintenance_words.unsound(facts)


def with_models(instances: Sequence[Any], models: Mapping[str, str]) -> list[Any]:
    """All instances, with the new models of those that `models` names."""
    from ansible_collections.baremetal.inference.plugins.module_utils.engine.inventory import with_models as changed

    return changed(instances, models)


class FilterModule:
    """The filters of this file, in the form that Ansible needs."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "update_plan": update_plan,
            "update_turn": update_turn,
            "update_failed": update_failed,
            "update_report": update_report,
            "renamed_variables": renamed_variables,
            "fit_refusal": fit_refusal,
            "removal_plan": removal_plan,
            "maintenance_plan": maintenance_plan,
            "maintenance_mistakes": maintenance_mistakes,
            "maintenance_failure": maintenance_failure,
            "maintenance_unsound": maintenance_unsound,
            "set_models": set_models,
            "waiting_lines": waiting_lines,
            "with_models": with_models,
        }
