# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds what Docker's disk no longer needs, and removes it. Private to the collection.

An image is needed by every kept release that names it, since a rollback may start that release. It is also needed by
every container that stays, even a stopped one. An image of a repository that neither a release nor the inventory uses
belongs to others, and stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..core import systemd
from ..core.docker_api import Docker
from ..core.paths import Paths, container_name, unit_name
from ..core.sizes import counted
from ..engine.state import releases

PREFIX = container_name("")


@dataclass(frozen=True)
class Item:
    """Something to remove. `kind` is image, container or cache; `bytes` are those that nothing else shares."""

    kind: str
    name: str
    bytes: int


def repository(reference: str) -> str:
    """The repository of an image reference, without digest and tag."""
    name = reference.partition("@")[0]
    head, _slash, last = name.rpartition("/")
    return f"{head}/{last.partition(':')[0]}" if head else last.partition(":")[0]


def kept_images(paths: Paths, without: Collection[tuple[str, int]] = ()) -> set[str]:
    """The images of all kept releases, except releases in `without`, by instance and number.

    Raises ReleaseError if a release cannot be read, since its image is then unknown.
    """
    return {
        releases.load(paths, name, number).image
        for name in releases.names(paths)
        for number in releases.numbers(paths, name)
        if (name, number) not in without
    }


def containers(found: Iterable[Mapping[str, Any]], paths: Paths) -> list[Item]:
    """The stopped containers of engines whose units do not run. A killed supervisor leaves such a container.

    `found` is Docker's list of all containers. Raises SystemdError.
    """
    items = []
    for one in found:
        name = next((each.lstrip("/") for each in one.get("Names") or ()), "")
        ours = name.startswith(PREFIX) and one.get("State") in ("exited", "dead", "created")
        unit = unit_name(name.removeprefix(PREFIX))
        if ours and systemd.active_state(unit) not in systemd.RUNNING:
            items.append(Item("container", name, int(one.get("SizeRw") or 0)))
    return items


def images(
    found: Iterable[Mapping[str, Any]],
    used: Collection[str],
    kept: Collection[str],
    repositories: Collection[str],
) -> list[tuple[Item, list[str]]]:
    """The images that are not needed, each with all its references in Docker.

    `found` is Docker's list. `used` has the ids of the containers' images, `kept` the references that are needed. An
    image without any name, as a build or a pull leaves it, is needed only by a container.
    """
    going = []
    for one in found:
        listed = [*(one.get("RepoDigests") or ()), *(one.get("RepoTags") or ())]
        names = [name for name in listed if "<none>" not in name]
        ours = not names or any(repository(name) in repositories for name in names)
        foreign = any(repository(name) not in repositories for name in names)
        if one["Id"] in used or one["Id"] in kept or not ours or foreign or any(name in kept for name in names):
            continue
        shared = max(int(one.get("SharedSize") or 0), 0)
        going.append((Item("image", names[0] if names else one["Id"], int(one["Size"]) - shared), names or [one["Id"]]))
    return going


def build_cache(found: Iterable[Mapping[str, Any]]) -> list[Item]:
    """The build cache that no build uses now. `found` is Docker's list."""
    idle = [one for one in found if not one.get("InUse")]
    size = sum(int(one.get("Size") or 0) for one in idle if not one.get("Shared"))
    return [Item("cache", f"{counted(len(idle), 'part')} of the build cache", size)] if idle else []


@dataclass
class Disk:
    """Docker's disk, and the releases and images that it must keep."""

    docker: Docker
    paths: Paths
    repositories: frozenset[str] = frozenset()
    """The repositories of the images that the inventory names now, in addition to those of releases."""
    keep: frozenset[str] = frozenset()
    """Images to keep in addition to those of releases."""
    without: frozenset[tuple[str, int]] = frozenset()
    """Releases that no longer need their images, by instance and number."""

    def clean(self, *, caches: bool, check: bool) -> list[Item]:
        """Remove what is not needed, except with `check`, and return it.

        Raises ReleaseError, SystemdError, DockerUnavailable, DockerError.
        """
        kept = kept_images(self.paths, self.without) | self.keep
        disk = self.docker.disk_usage()
        stale = containers(disk.get("Containers") or (), self.paths)
        gone = {item.name for item in stale}
        going = self._images(disk, kept, gone)
        cache = build_cache(disk.get("BuildCache") or ()) if caches else []
        if not check:
            for item in stale:
                self.docker.remove(item.name)
            for _item, names in going:
                self._remove(names)
            if cache:
                self.docker.prune_builds()
        return [*stale, *(item for item, _names in going), *cache]

    def forget(self, images_before: Collection[str]) -> list[Item]:
        """Remove and return the images that only removed releases needed. Raises the same exceptions as clean()."""
        kept = kept_images(self.paths)
        gone = set(images_before) - kept
        disk = self.docker.disk_usage() if gone else {}
        used = {one["ImageID"] for one in disk.get("Containers") or ()}
        all_images = [one for one in disk.get("Images") or () if gone & set(one.get("RepoDigests") or ())]
        going = images(all_images, used, kept, {repository(name) for name in gone})
        for _item, names in going:
            self._remove(names)
        return [item for item, _names in going]

    def _images(
        self, disk: Mapping[str, Any], kept: Collection[str], gone: Collection[str]
    ) -> list[tuple[Item, list[str]]]:
        used = {
            one["ImageID"]
            for one in disk.get("Containers") or ()
            if not set(gone) & {name.lstrip("/") for name in one.get("Names") or ()}
        }
        ours = {repository(name) for name in kept} | self.repositories
        return images(disk.get("Images") or (), used, kept, ours)

    def _remove(self, names: Iterable[str]) -> None:
        """Remove an image by each of its names. Docker deletes the image with its last name."""
        for name in names:
            self.docker.remove_image(name)
