# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images, models and accounts that the engines of a snapshot need. Private to the collection.

A backup does not hold them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core import files
from ..core.paths import Paths
from ..engine import first_releases
from ..models.registry.adapters import KEY as ADAPTER
from ..models.registry.needed import needed
from ..models.registry.variants import lineage


@dataclass(frozen=True)
class Served:
    """An instance, with its active release, in a snapshot or on a node."""

    instance: str
    release: int
    model: str
    revision: str
    path: str
    image: str
    port: int
    accelerator: str
    user: tuple[int, int]
    """Numbers of user and group in the engine's container."""
    extra_paths: tuple[str, ...] = ()
    """The directories of its LoRA adapters and of its draft model."""

    def missing(self, live: Path) -> list[str]:
        """The directories of model, adapters and draft that are not on the node."""
        return [path for path in (self.path, *self.extra_paths) if not (live / path.lstrip("/")).is_dir()]


def served(saved: Path) -> list[Served]:
    """The active release of each instance below a root: of a snapshot or of a node.

    A damaged release is left out. Its files are saved and restored nevertheless, and its unit reports the damage.
    """
    found = []
    for active in sorted(Paths(saved).all_releases.glob("*/active")):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            found.append(_read(active / "release.json"))
    return found


def _read(path: Path) -> Served:
    release = files.read_json(path)
    settings = release["settings"] if "settings" in release else first_releases.data(release)["settings"]
    return Served(
        instance=str(release["instance"]),
        release=int(release["number"]),
        model=str(release["model"]),
        revision=str(release["revision"]),
        path=str(release["model_path"]),
        image=str(release["image"]),
        port=int(release["port"]),
        accelerator=str(release["accelerator"]),
        user=(int(settings["uid"]), int(settings["gid"])),
        extra_paths=tuple(map(str, filter(None, (*release.get("lora", {}).values(), release.get("draft"))))),
    )


def registry(saved: Path) -> dict[str, Any]:
    """The model registry in the snapshot: entries by name. Raises OSError, ValueError."""
    return dict((files.read_json(Paths(saved).registry) or {}).get("models", {}))


def absent(wanted: Sequence[Served], live: Path) -> list[Served]:
    """The instances whose model, draft or adapters are not all on the node."""
    return [one for one in wanted if one.missing(live)]


def entries(wanted: Sequence[Served], models: Mapping[str, Any]) -> dict[str, Any]:
    """The model registry's entries of the instances' models and of all that these need, by name."""
    names = needed(models, [one.model for one in wanted if one.model in models])
    return {name: models[name] for name in sorted(names)}


def problems(
    wanted: Sequence[Served], live: Path, models: Mapping[str, Any], here: Callable[[int, int], tuple[int, int]]
) -> list[str]:
    """Why engines of the snapshot could not run on this node: a message for each problem, with what to do.

    `here` translates the numbers of an account and a group from the snapshot to this node.
    """
    found = []
    for one in wanted:
        found += [_without(one, path, live, models) for path in one.missing(live)]
    for one in wanted:
        if here(*one.user) != one.user:
            uid, gid = here(*one.user)
            found.append(
                f"{one.instance} runs as {one.user[0]}:{one.user[1]}, but its account has the numbers {uid}:{gid} on"
                " this node. A release is never changed: give the account the old numbers (usermod, groupmod)"
            )
    return found


def _without(one: Served, path: str, live: Path, models: Mapping[str, Any]) -> str:
    """The message for a directory of an instance's model, adapter or draft that is not on the node."""
    store = live / path.lstrip("/")
    name, revision = (one.model, one.revision) if path == one.path else (store.parent.name, store.name)
    what = f"{one.instance} needs {path}, revision {revision} of {name}, which is not on this node"
    if name not in models:
        return (
            f"{what}. Neither the model registry in the snapshot nor the inventory has {name}: copy the"
            " files there, or add the model to the inventory"
        )
    others = ", ".join(sorted(each.name for each in store.parent.glob("[0-9a-f]*"))) or "none"
    return (
        f"{what} (the store has: {others}). The source {_source(models, name)} has another revision now:"
        f" copy the files of {revision} there"
    )


def _source(models: Mapping[str, Any], name: str) -> str:
    last = models[lineage(models, name)[-1]]
    return str(last.get("model") or last.get(ADAPTER) or "unknown")
