# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a site declares: the model registry and the instances that serve from it. Private to the collection.

This file is pure: it reads dictionaries, and returns values and problems.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..core.problems import InputError, Problem
from ..models.flags.catalogue import Catalogue
from ..models.flags.check import arguments
from ..models.registry import drafts, entries
from ..models.registry.entries import Entry, Registry
from ..models.registry.needed import needed
from .adapters.catalogues import choose
from .instance import Instance
from .instances import needed_entries, served_entries, sound_instances
from .inventory import present_instances


@dataclass(frozen=True)
class Declared:
    """The model registry and the instances, checked against the flags of one version of the engine."""

    catalogue: Catalogue
    """The flags of the engine's version."""
    entries: Mapping[str, Entry]
    """The model registry's entries by name, each with everything that it inherits from its bases."""
    served: tuple[Entry, ...]
    """The entries that present instances serve, each once, in the model registry's order."""
    instances: tuple[Instance, ...]
    """The present instances without a mistake, with their GPUs."""
    problems: tuple[Problem, ...]
    """Every mistake in model registry and instances."""
    warnings: tuple[str, ...]
    """Input that works, but perhaps not as its author expects, such as deprecated flags."""
    models: Mapping[str, Any]
    """The model registry as it was declared."""
    own_catalogues: Mapping[str, Catalogue] = field(default_factory=dict)
    """The flags of the engine in each image that an instance names itself, by image."""

    @classmethod
    def read(
        cls,
        models: Any,
        instances: Sequence[Any] = (),
        version: str = "",
        gpus: Sequence[Mapping[str, Any]] | None = None,
        own_versions: Mapping[str, str] | None = None,
    ) -> Declared:
        """Read a model registry and instances, and assign GPUs of the fact `gpus` to the instances.

        Without a version of the engine, the flags of the newest version count. `own_versions` has the engine's version
        in each image that an instance names itself: the entries of such an instance are checked against the flags of
        this version.
        Mistakes are collected, not raised: the module engine_plan reports them before anything changes, and `require`
        raises them.
        """
        catalogue = choose(version)
        own_catalogues = {image: choose(own) for image, own in (own_versions or {}).items()}
        registry = _checked(models, instances, entries.read(models, catalogue), own_catalogues)
        sound, problems = sound_instances(instances, models, registry, gpus)
        return cls(
            catalogue=catalogue,
            entries=registry.entries,
            served=tuple(served_entries(instances, registry.entries)),
            instances=tuple(sound),
            problems=tuple(problems),
            warnings=tuple(str(warning) for warning in (*filter(None, [catalogue.note]), *registry.warnings)),
            models=models if isinstance(models, Mapping) else {},
            own_catalogues=own_catalogues,
        )

    def require(self) -> None:
        """Raise InputError with every mistake, if there is any."""
        if self.problems:
            raise InputError(self.problems)

    def arguments(self, entry: Entry) -> list[str]:
        """The arguments that make the engine serve an entry, spelt for the engine's version."""
        return self.spelt(entry.flags)

    def spelt(self, flags: Mapping[str, Any], image: str = "") -> list[str]:
        """Flags as arguments, spelt for the engine's version; `image` is the one that the instance names itself."""
        return arguments(flags, self.own_catalogues.get(image, self.catalogue))

    def draft_of(self, entry: Entry) -> Entry | None:
        """The entry of the draft model that `entry` names, without a system prompt; None if there is no draft model."""
        draft = self.entries.get(drafts.named(entry.flags) or "")
        return replace(draft, system_prompt=None) if draft else None

    def adapters_of(self, name: str) -> tuple[Entry, ...]:
        """The adapters of an entry, sorted by name."""
        return entries.adapters_of(self.entries, name)

    @property
    def needed(self) -> dict[str, Any]:
        """The entries that the engines of the instances need, as they were declared."""
        return needed_entries(self.models, self.instances)


def _checked(
    models: Any, instances: Sequence[Any], registry: Registry, own_catalogues: Mapping[str, Catalogue]
) -> Registry:
    """The model registry. Each entry has the problems and warnings for the images of the instances that need it. The
    site's image counts for an entry that no instance needs."""
    if not own_catalogues or not isinstance(models, Mapping):
        return registry
    images: dict[str, set[str]] = {}
    for raw in present_instances(instances):
        if isinstance(raw, Mapping) and isinstance(raw.get("model"), str):
            for name in needed(models, [raw["model"]]):
                images.setdefault(name, set()).add(str(raw.get("image") or ""))
    problems = [one for one in registry.problems if "" in images.get(_entry(one), {""})]
    warnings = [one for one in registry.warnings if "" in images.get(_entry(one), {""})]
    for image, catalogue in own_catalogues.items():
        other = entries.read(models, catalogue)
        known = {str(one) for one in (*problems, *warnings)}
        problems += [one for one in other.problems if image in images.get(_entry(one), ()) and str(one) not in known]
        warnings += [one for one in other.warnings if image in images.get(_entry(one), ()) and str(one) not in known]
    return replace(registry, problems=problems, warnings=warnings)


def _entry(problem: Problem) -> str:
    """The entry that a problem is about."""
    return problem.where.removeprefix("models.")
