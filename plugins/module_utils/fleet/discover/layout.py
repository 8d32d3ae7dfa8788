# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proposes models and instances for machines: where the wanted model fits. Private to the collection. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...core.controller import ON_CONTROLLER
from ...core.sizes import counted
from ...engine.image_cuda import lowest
from ...models.config.computed import compute
from ...models.config.facts import ModelFacts
from ...models.fit.devices import from_facts
from ...models.fit.fit import fit
from ...models.fit.flags import world_size
from ...models.fit.misfit import in_words
from ...models.fit.proposal import propose as divide
from .finding import Proposal
from .machine import Machine, cards
from .names import DECIDE

NAME = "main"
"""The name that clients ask for. It stays when the model changes."""

PORT = 5005
"""The port of the first engine."""

REVISION = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class Wanted:
    """The model that the operator wants to serve."""

    model: str
    revision: str = ""
    facts: Mapping[str, Any] | None = None
    """The facts of the model, from the module model_facts; None if the model could not be read."""
    error: str = ""
    """Why the model could not be read."""
    cuda: str = ""
    """The CUDA version of the engines' image; empty if unknown."""

    @property
    def entry_name(self) -> str:
        """The name of the model's entry in the model registry."""
        return re.sub(r"[^a-z0-9.]+", "-", self.model.rstrip("/").rpartition("/")[2].lower()).strip("-.") or "model"


@dataclass
class Layout:
    """The model registry, and the instances of each machine."""

    models: dict[str, dict[str, Any]] = field(default_factory=dict)
    instances: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    """Why each machine has its instances, or none."""
    proposal: Proposal = field(default_factory=Proposal)


def plan(machines: Mapping[str, Machine], wanted: Wanted | None) -> Layout:
    """Plan an instance of the wanted model on each machine where it fits, with the same division on all of them."""
    layout = Layout()
    if wanted is None:
        layout.proposal.ask(
            "models",
            DECIDE,
            "which model? Write models and instances, or delete the inventory and run discover again with "
            "-e serve=ORGANISATION/NAME, which plans the model on these machines",
        )
        return layout
    entry: dict[str, Any] = {"model": wanted.model}
    archive = wanted.model.startswith(("https://", "http://"))
    remote = not archive and not wanted.model.startswith(("/", ON_CONTROLLER))
    if archive:
        layout.proposal.ask(
            "models", "group_vars/all/models.yml", f"which checksum has {wanted.model}? Add the key checksum: sha256:…"
        )
    elif remote and REVISION.fullmatch(wanted.revision):
        entry["revision"] = wanted.revision
    elif remote:
        layout.proposal.ask(
            "models",
            "group_vars/all/models.yml",
            f"which commit of {wanted.model}? Add the key revision, with the 40 "
            "digits that the hub shows under its files",
        )
    facts = _facts(wanted)
    if facts is None:
        silent = (
            "discover does not read models on the nodes"
            if wanted.model.startswith("/")
            else "discover does not read archives"
            if archive
            else "its configuration does not show the size of its weights"
        )
        reason = wanted.error or silent
        layout.proposal.findings.append(f"{wanted.model} is not planned: {reason}")
        layout.proposal.ask(
            "instances", DECIDE, f"on which GPUs does {wanted.model} run? It cannot be planned ({reason})"
        )
        layout.models[wanted.entry_name] = entry
        return layout
    division = _division(facts, machines, wanted)
    layout.models[wanted.entry_name] = {**entry, **division}
    for name, machine in machines.items():
        _place(layout, name, machine, facts, division, wanted)
    if machines and not any(layout.instances.values()):
        layout.proposal.ask(
            "models",
            DECIDE,
            f"{wanted.model} fits none of these machines: choose another model, or set in the entry of models what the "
            "report says would fit, and declare instances",
        )
    return layout


def _facts(wanted: Wanted) -> ModelFacts | None:
    """The facts with the size of the weights; None if the size is unknown."""
    if wanted.facts is None:
        return None
    facts = ModelFacts.from_dict(wanted.facts)
    if facts.weights is not None:
        return facts
    computed = compute(facts.config)
    return replace(facts, weights=computed, problems=()) if computed else None


def _division(facts: ModelFacts, machines: Mapping[str, Machine], wanted: Wanted) -> dict[str, int]:
    """The division by which the model fits the most machines; of several such divisions, that over the fewest GPUs."""
    votes: Counter[tuple[tuple[str, int], ...]] = Counter()
    for machine in machines.values():
        devices = from_facts(machine.usable_gpus)
        flags = divide(facts, {}, devices, lowest_capability=lowest(wanted.cuda))
        if devices and fit(facts, flags, devices[: world_size(flags)], lowest_capability=lowest(wanted.cuda)).ok:
            votes[tuple(flags.items())] += 1
    best = min(votes, key=lambda flags: (-votes[flags], world_size(dict(flags))), default=())
    return dict(best)


def _place(
    layout: Layout, name: str, machine: Machine, facts: ModelFacts, division: Mapping[str, int], wanted: Wanted
) -> None:
    """Add the instance of one machine, or the reason why the machine gets none."""
    gpus, count = machine.usable_gpus, world_size(division)
    layout.instances[name] = []
    if len(gpus) < count:
        layout.reasons[name] = f"{wanted.model} needs {counted(count, 'GPU')}, and {name} has {cards(gpus) or 'no GPU'}"
        layout.proposal.findings.append(f"{name}: serves nothing: {layout.reasons[name]}")
        return
    devices = from_facts(gpus)[:count]
    answer = fit(facts, division, devices, lowest_capability=lowest(wanted.cuda), node_gpus=len(gpus))
    if answer.misfits:
        fits = list(dict.fromkeys(in_words(one.fits) for one in answer.misfits if one.fits))
        layout.reasons[name] = f"{wanted.model} does not fit {cards(gpus)}: {'; '.join(map(str, answer.misfits))}" + (
            f". Would fit: {'; and '.join(fits)}" if fits else ""
        )
        layout.proposal.findings.append(f"{name}: serves nothing: {layout.reasons[name]}")
        return
    layout.instances[name] = [{"name": NAME, "model": wanted.entry_name, "port": PORT, "gpus": count}]
    free = len(gpus) - count
    layout.reasons[name] = f"{wanted.model} fits {count} of {cards(gpus)}" + (
        f"; {counted(free, 'GPU')} {'stays' if free == 1 else 'stay'} free" if free else ""
    )
    layout.proposal.findings += [f"{name}: is not checked for {wanted.model}: {reason}" for reason in answer.unknown]
    if free:
        layout.proposal.findings.append(f"{name}: {layout.reasons[name]}, for further instances")
