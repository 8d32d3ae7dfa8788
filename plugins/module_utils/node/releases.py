# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The releases of the instances on this node. Private to the collection.

`stage` writes a release, `activate` installs its unit and environment, `commit` marks it as proven.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from ..paths import Paths
from ..release import SCHEMA, Release, Rendered
from . import files

RELEASE_FILE = "release.json"
ENV_FILE = "engine.env"


class ReleaseError(Exception):
    """A release that is not there or cannot be read; the message names the file."""


def names(paths: Paths) -> list[str]:
    """The instances that have a desired state or a release on this node."""
    desired = {path.stem for path in paths.instances.glob("*.json")}
    released = {path.name for path in (paths.state / "releases").glob("*") if path.is_dir()}
    return sorted(desired | released)


def numbers(paths: Paths, name: str) -> list[int]:
    """The numbers of the kept releases, oldest first."""
    return sorted(int(path.name) for path in paths.releases(name).glob("[0-9]*") if path.name.isdigit())


def load(paths: Paths, name: str, number: int) -> Release:
    """Read a release. Raises ReleaseError."""
    path = paths.release(name, number) / RELEASE_FILE
    try:
        return Release.from_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ReleaseError(f"{path}: {error}: stage the release again with site.yml") from error


def active_number(paths: Paths, name: str) -> int | None:
    """The release whose unit is installed; None before the first start."""
    return _linked(paths.releases(name) / "active")


def current_number(paths: Paths, name: str) -> int | None:
    """The release that last proved itself; None before the first answer."""
    return _linked(paths.releases(name) / "current")


def desired_number(paths: Paths, name: str) -> int | None:
    """The release that the inventory asks for; None for an instance that the inventory does not know."""
    value = files.read_json(paths.instance(name))
    return value.get("release") if isinstance(value, dict) else None


def _linked(path: Path) -> int | None:
    try:
        target = os.readlink(path)
    except OSError:
        return None
    return int(target) if target.isdigit() else None


def find(paths: Paths, name: str, identity: str) -> int | None:
    """The newest kept release of an id."""
    for number in reversed(numbers(paths, name)):
        if load(paths, name, number).id == identity:
            return number
    return None


def stage(paths: Paths, name: str, identity: str, render: Callable[[int], Rendered]) -> tuple[int, bool]:
    """Keep a release under the next number, unless one of its id is kept already.

    Returns the number and whether it was written now.
    """
    known = find(paths, name, identity)
    if known is not None:
        return known, False
    number = max(numbers(paths, name), default=0) + 1
    rendered = render(number)
    directory = paths.release(name, number)
    temporary = directory.with_name(f".{number}.new")
    shutil.rmtree(temporary, ignore_errors=True)
    files.write(temporary / RELEASE_FILE, rendered.release.to_json())
    files.write(temporary / rendered.release.unit, rendered.unit)
    files.write(temporary / ENV_FILE, rendered.environment, mode=0o600)
    os.replace(temporary, directory)
    return number, True


def activate(paths: Paths, name: str, number: int) -> bool:
    """Install a release's unit and environment. Returns whether a file changed (then systemd must reload)."""
    directory = paths.release(name, number)
    unit = (directory / paths.unit(name).name).read_text(encoding="utf-8")
    environment = (directory / ENV_FILE).read_text(encoding="utf-8")
    changed = files.write(paths.env(name), environment, mode=0o600)
    changed |= files.write(paths.unit(name), unit)
    files.link(paths.releases(name) / "active", str(number))
    return changed


def commit(paths: Paths, name: str, number: int) -> bool:
    """Mark a release as proven and remember the checksums of the files that it proved itself with."""
    changed = files.link(paths.releases(name) / "current", str(number))
    managed = [paths.unit(name), paths.env(name), paths.instance(name), paths.registry]
    checksums = {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in managed if path.is_file()}
    changed |= files.write_json(paths.known_good(name), {"schema": SCHEMA, "release": number, "files": checksums})
    return changed
