# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The paths in an entry's flags, and how each reaches the engine's container. Private to the collection.

A path without a slash in front is in the model's own directory. A path of the node is mounted at the same path.
A path after ``controller:`` is copied from the controller to the node, into a directory that is named by the content's
digest. So other content makes another release, and each release keeps its own content.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from ..core.controller import ON_CONTROLLER
from ..core.defaults import DOCKER_DATA_ROOT
from ..core.paths import Paths
from ..core.problems import Problem
from . import adapters
from .adapters.contract import DIRECTORY, FILE, WRITTEN, PathFlag
from .controller_files import texts
from .release import Settings

_WAYS = (
    "put it into the model's own directory and name it without a slash in front, or write controller:/PATH of the "
    "machine that runs Ansible"
)

_PRIVATE = (
    *("/", "/boot", "/dev", "/etc", "/home", "/proc", "/root", "/run", "/sys"),
    *(DOCKER_DATA_ROOT, str(Paths().state)),
)
"""No engine gets one of these directories, or, except for `/`, a path in one. The store and copied files are exempt."""


@dataclass(frozen=True)
class Copied:
    """A file or directory of the controller, as the filter controller_files has read it."""

    name: str = ""
    """The last part of its path."""
    digest: str = ""
    directory: bool = False
    problem: str = ""
    """Why it cannot be copied; empty where it can."""

    @property
    def path(self) -> str:
        """Its path on the node and in the container."""
        return str(Paths().flag_file(self.digest) / self.name)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Copied:
        return cls(
            str(value.get("name", "")),
            str(value.get("digest", "")),
            bool(value.get("directory")),
            str(value.get("problem", "")),
        )


@dataclass(frozen=True)
class Named:
    """A path in flags. `key` is empty for a flag that has the path as its value."""

    flag: str
    key: str
    value: str
    takes: PathFlag

    @property
    def place(self) -> str:
        """The flag, with the key, in messages."""
        return f"{self.flag}: {self.key}" if self.key else self.flag


def named(flags: Mapping[str, Any]) -> Iterator[Named]:
    """All paths in an entry's flags."""
    for place, takes in adapters.get().path_flags.items():
        flag, _dot, key = place.partition(".")
        value = flags.get(flag)
        found = {"": value} if not key else _object(value)
        for name, path in found.items():
            if key in ("", "*", name) and isinstance(path, str) and _is_path(path, takes):
                yield Named(flag, name, path, takes)


def _object(value: Any) -> Mapping[str, Any]:
    """A flag with JSON as a dictionary; empty for another value."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, Mapping) else {}


def _is_path(value: str, takes: PathFlag) -> bool:
    return bool(value) and value not in takes.words and not any(character in value for character in takes.inline)


def place(
    flags: Mapping[str, Any], model_path: str, copied: Mapping[str, Copied], settings: Settings
) -> tuple[dict[str, Any], list[str]]:
    """The flags with paths of the container, and the paths to mount in addition to store and fast copies."""
    placed, mounts = dict(flags), []
    for item in named(flags):
        path = item.value
        if path.startswith(ON_CONTROLLER):
            path = copied[path].path if path in copied else path
            mounts.append(str(PurePosixPath(path).parent))
        elif not path.startswith("/"):
            path = f"{model_path}/{path}"
        elif item.takes.kind != WRITTEN and not _stored(path, settings):
            mounts.append(path)
        placed[item.flag] = {**_object(placed[item.flag]), item.key: path} if item.key else path
    return placed, sorted(set(mounts))


def _stored(path: str, settings: Settings) -> bool:
    """Whether a container has a path without a further mount."""
    roots = filter(None, (settings.store_path, settings.fast_path))
    return any(path == root or path.startswith(f"{root}/") for root in roots)


def problems(
    where: str,
    flags: Mapping[str, Any],
    copied: Mapping[str, Copied],
    settings: Settings,
    model_files: Path | None = None,
    on_node: bool = False,
) -> list[Problem]:
    """The paths in the flags of an entry that would not reach its engine.

    `model_files` is the model's directory, None where the model is not on the node yet. `on_node`: whether to check
    that paths of the node exist.
    """
    found, items = [], list(named(flags))
    for item in items:
        if mistake := _mistake(item, copied, settings, model_files, on_node):
            found.append(Problem(where, mistake, item.place, item.value))
    placed = {(item.flag, item.value) for item in items}
    for flag, value in flags.items():
        left = dict.fromkeys(text for text in texts(_object(value) or value) if (flag, text) not in placed)
        found += [Problem(where, _no_path(), flag, text) for text in left]
    return found


def _no_path() -> str:
    takes = (place.removesuffix(".*") for place, takes in adapters.get().path_flags.items() if takes.kind != WRITTEN)
    return f"is copied from the controller only for flags and keys that take a path: {', '.join(takes)}"


def _mistake(
    item: Named, copied: Mapping[str, Copied], settings: Settings, model_files: Path | None, on_node: bool
) -> str:
    value, kind = item.value, item.takes.kind
    if "," in value or "\n" in value or ".." in PurePosixPath(value).parts:
        return "must be a path without a comma, a line break and the part .."
    if kind == WRITTEN:
        return _not_writable(value, settings)
    if value.startswith(ON_CONTROLLER):
        return _not_copied(value, kind, copied)
    if value.startswith("/"):
        return _not_on_node(value, kind, settings, on_node)
    if model_files is None:
        return ""
    there = model_files / value
    if _is(there, kind):
        return ""
    hub = "; engines are offline, so a hub's name does not work" if item.takes.hub else ""
    return f"is not {kind} in the model's own directory ({model_files}){hub}: {_WAYS}"


def _not_writable(value: str, settings: Settings) -> str:
    if value.startswith(("/tmp/", f"{settings.cache_path}/")):
        return ""
    return (
        "is written by the engine, which can write only below its compile cache and /tmp: "
        f"{settings.cache_path}/INSTANCE/… or /tmp/…"
    )


def _not_copied(value: str, kind: str, copied: Mapping[str, Copied]) -> str:
    if not value.removeprefix(ON_CONTROLLER).startswith("/"):
        return "must have an absolute path of the controller after controller:"
    source = copied.get(value)
    if source is None:
        return "was not read on the controller: run baremetal.inference.site or baremetal.inference.update_model"
    if source.problem:
        return source.problem
    wrong = (kind == FILE and source.directory) or (kind == DIRECTORY and not source.directory)
    return f"must be {kind}" if wrong else ""


def _not_on_node(value: str, kind: str, settings: Settings, on_node: bool) -> str:
    path = PurePosixPath(value)
    if not _stored(value, settings):
        # Links count: /var/run is /run.
        for place in dict.fromkeys((path, PurePosixPath(Path(value).resolve()) if on_node else path)):
            around = {str(place), *map(str, place.parents)} - ({"/"} if str(place) != "/" else set())
            if inside := [each for each in _PRIVATE if each in around]:
                return f"is in {inside[0]}, which no engine gets: {_WAYS}"
            if held := [each for each in _PRIVATE if place in PurePosixPath(each).parents]:
                return f"has {held[0]} in it, which no engine gets: {_WAYS}"
    if not on_node or _is(Path(value), kind):
        return ""
    return f"is not {kind} on this node, and a path in the image does not count: {_WAYS}"


def _is(path: Path, kind: str) -> bool:
    return path.is_file() if kind == FILE else path.is_dir() if kind == DIRECTORY else path.exists()
