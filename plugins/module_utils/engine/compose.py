# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Composes the release of an instance from inventory, model registry and store. Private to the collection.

A plan and a staging compose the same release, so that a plan reports what a run would do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..core.problems import Problem
from ..models.registry import drafts
from ..models.registry.entries import Entry
from ..store.stored_model import StoredModel
from . import flag_paths, lora, own_settings
from .declared import Declared
from .flag_paths import Copied
from .gang import executors
from .gang.members import Gang
from .instance import Instance
from .lora import Lora
from .release import Beside, Rendered, Settings, engine_path, render

Ids = Callable[[str], tuple[int, int]]
"""The ids of a user and its group, by name, UID or UID:GID. Raises KeyError for a user that the node does not have."""


@dataclass(frozen=True)
class Common:
    """What all releases of a node have in common, and what instances have of their own."""

    declared: Declared
    image: str
    """The image of each engine whose instance names no image."""
    settings: Settings
    """The settings of all containers. An instance may set some of them for its own container."""
    ids: Ids
    secrets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    """Secret variables by instance."""
    copied: Mapping[str, Copied] = field(default_factory=dict)
    """The files of the controller that flags name."""
    gang_key: str = field(default="", repr=False)
    """The key of the channels of gangs."""

    def settings_of(self, instance: Instance) -> Settings:
        """The settings of an instance's container. Raises KeyError for a user that the node does not have."""
        ids = self.ids(instance.user) if instance.user else None
        return own_settings.of(instance, self.settings, self.secrets.get(instance.name) or {}, ids)


@dataclass(frozen=True)
class Composed:
    """A release without its number and time, its memory limit, and whether its container is read-only."""

    instance: Instance
    settings: Settings
    flags: Mapping[str, Any]
    """The flags of the entry, with those that serve adapters."""
    arguments: Sequence[str]
    image: str
    _model: StoredModel
    _beside: Beside
    _gang: Gang | None = None
    _network: Mapping[str, str] = field(default_factory=dict)
    _secret: str = field(default="", repr=False)

    def rendered(
        self, number: int = 0, created: str = "", memory_limit: str = "", *, read_only: bool = True
    ) -> Rendered:
        """Render the release. Raises InputError."""
        beside = replace(self._beside, memory_limit=memory_limit, read_only=read_only)
        return render(
            self.instance,
            self.arguments,
            self._model,
            self.image,
            self.settings,
            flags=self.flags,
            beside=beside,
            gang=self._gang,
            network=self._network,
            secret=self._secret,
            number=number,
            created=created,
        )


def compose(
    common: Common,
    instance: Instance,
    entry: Entry,
    model: StoredModel,
    loras: Sequence[Lora],
    draft: StoredModel | None,
    gang: Gang | None = None,
    network: Mapping[str, str] | None = None,
) -> Composed:
    """The release of an instance, from the places of its model, adapters and draft in the store.

    For a member of a gang, `network` has the variables of NCCL and Gloo. Raises KeyError for a user that the node does
    not have.
    """
    settings = common.settings_of(instance)
    flags, paths = lora.flags(entry, loras, settings), lora.paths(loras, settings)
    drafted = engine_path(draft.path, settings) if draft else ""
    placed, mounts = flag_paths.place(flags, engine_path(model.path, settings), common.copied, settings)
    image = instance.image or common.image
    arguments = common.declared.spelt(drafts.with_path(placed, drafted), instance.image)
    beside = Beside(paths, drafted, "", mounts, entry.warm_up)
    secret = executors.secret(common.gang_key, gang) if gang and gang.executor else ""
    return Composed(instance, settings, flags, arguments, image, model, beside, gang, network or {}, secret)


def user_problem(instance: Instance) -> Problem:
    """The mistake of an instance whose user is not on the node."""
    message = "is no user of this node: create the user first, or write UID or UID:GID"
    return Problem(f"instance {instance.name}", message, "user", instance.user)
