# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the store of a node with the declared models, and publishes the models. Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.problems import InputError, Problem
from ..core.sizes import human
from ..models.manifest import Manifest
from . import fetch
from .describe import build_manifests
from .sources.hub import Hub
from .sources.remote import HUB, Remote, fetched
from .sources.source import CONTROLLER, NODE, Source, load_sources
from .sources.transfer import TransferError
from .space import check_space
from .store import Plan, Store
from .stored import NOT_KNOWN


@dataclass(frozen=True)
class Rules:
    """What must exist when models are compared."""

    needs_manifests: bool
    """Whether the manifest of every model from the controller must be given."""
    needs_fetched: bool
    """Whether every remote model must be fetched already."""


class Publisher:
    """Compares and publishes the models of one node."""

    def __init__(
        self, store: Store, models: Mapping[str, Any], manifests: Mapping[str, Any], hub: Hub, rules: Rules
    ) -> None:
        self.store = store
        self._models = models
        self._manifests = manifests
        self._hub = hub
        self._rules = rules
        self.sources: dict[str, Source] = {}
        self.fetches: list[dict[str, Any]] = []
        """The models to fetch from the network: name, hub, source and summary of each."""
        self.remotes: dict[str, dict[str, str]] = {}
        """By the name of a remote model: the key of its content, and the published revision or an empty text."""

    def plan(self, reserve: int) -> tuple[list[Plan], list[Problem]]:
        """Compare the store with all models. Returns a plan for each model whose files are known, and all problems.

        `reserve` bytes must stay free.
        """
        self.sources, problems = load_sources(self._models)
        manifests: dict[str, Manifest] = {}
        local: dict[str, Source] = {}
        missing: dict[str, int] = {}
        there: list[Plan] = []
        for name, source in self.sources.items():
            if source.remote:
                manifest = fetched(self.store.root / name, source.remote)
                plan = self.store.plan(name, manifest) if manifest else None
                held = plan.manifest.revision if plan and plan.published else ""
                self.remotes[name] = {"key": source.remote.key, "revision": held}
                if plan and held:
                    there.append(plan)
                    continue
                try:
                    missing[name] = self._fetch(name, source.remote)
                except TransferError as error:
                    problems.append(Problem(f"models.{name}", str(error)))
            elif source.origin == NODE:
                misplaced = check_place(self.store.root, name, source.path)
                problems += misplaced
                if not misplaced:
                    local[name] = source
            elif name in self._manifests:
                try:
                    manifests[name] = Manifest.from_dict(self._manifests[name])
                except ValueError as error:
                    problems.append(Problem(f"manifests.{name}", str(error)))
            elif self._rules.needs_manifests:
                message = "is missing: describe the model on the controller first (state: described)"
                problems.append(Problem(f"manifests.{name}", message))
        found, more = build_manifests(local, self._models, self.store.cache)
        problems += more
        plans = [*there, *(self.store.plan(name, manifest) for name, manifest in {**manifests, **found}.items())]
        missing |= {plan.name: plan.missing_bytes for plan in plans}
        problems += check_space(self.store.root, missing, reserve)
        return plans, problems

    def _fetch(self, name: str, remote: Remote) -> int:
        """Add a model to `fetches`. Returns the bytes that the transfer needs. Raises TransferError."""
        if self._rules.needs_fetched:
            raise TransferError(f"{remote.location} was not fetched: run the role again")
        needed = fetch.needed(remote, fetch.workplace(self.store.root, name, remote), self._hub)
        summary = f"{name} from {remote.location}: {human(needed)} to fetch"
        self.fetches.append({"name": name, "hub": remote.kind == HUB, "source": remote.location, "summary": summary})
        return needed

    def publish(self, plans: Sequence[Plan]) -> None:
        """Publish the models of these plans. Raises InputError with the problems of all models."""
        problems: list[Problem] = []
        for plan in plans:
            source = self.sources[plan.name]
            try:
                self.store.publish(plan, source.path if source.origin == NODE else None)
            except InputError as error:
                problems += error.problems
        if problems:
            raise InputError(problems)

    def transfer(self, plan: Plan) -> dict[str, Any]:
        """The files to copy for one plan, as the role and its messages need them."""
        source = self.sources[plan.name]
        return {
            "name": plan.name,
            "origin": source.origin,
            "source": str(source.path),
            "incoming": str(plan.incoming),
            "files": len(plan.missing),
            "bytes": plan.missing_bytes,
            "rsync_opts": plan.filters() if source.origin == CONTROLLER else [],
            "summary": plan.summary,
            "damage": list(plan.damage),
        }

    def places(self, plans: Sequence[Plan]) -> dict[str, dict[str, Any]]:
        """The place of each model, now or after publication. The revision of an unfetched model is NOT_KNOWN."""
        unknown = {"revision": NOT_KNOWN, "weight_bytes": 0, "bytes": 0}
        names = [item["name"] for item in self.fetches]
        return {name: {"path": str(self.store.root / name / NOT_KNOWN), **unknown} for name in names} | {
            plan.name: {
                "path": str(plan.path),
                "revision": plan.manifest.revision,
                "weight_bytes": plan.manifest.weight_bytes,
                "bytes": plan.manifest.bytes,
            }
            for plan in plans
        }


def check_place(root: Path, name: str, source: Path) -> list[Problem]:
    """Refuse a source on this node that contains the store's directory of the model, or lies in it."""
    kept, real = (root / name).resolve(), source.resolve()
    if real == kept or real.is_relative_to(kept) or kept.is_relative_to(real):
        message = f"{source} overlaps the store's directory of this model ({kept}): put the source elsewhere"
        return [Problem(f"models.{name}", message)]
    return []
