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
from dataclasses import replace
from pathlib import Path

from ...core import files
from ...core.paths import Paths
from ..release import SCHEMA, Release, Rendered
from ..unit_text import FIRST_TIMEOUT, with_timeout

RELEASE_FILE = "release.json"
ENV_FILE = "engine.env"


class ReleaseError(Exception):
    """A release is missing or damaged; the message names the file, and the playbook that repairs the release."""

    def __init__(self, path: Path, error: object) -> None:
        reason = getattr(error, "strerror", None) or error
        super().__init__(
            f"{path} cannot be used ({reason}): baremetal.inference.site stages anew what the inventory asks for"
        )


def names(paths: Paths) -> list[str]:
    """The instances that have a desired state or a release on this node."""
    desired = {path.stem for path in paths.instances.glob("*.json")}
    released = {path.name for path in paths.all_releases.glob("*") if path.is_dir()}
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
        raise ReleaseError(path, error) from error


def active_number(paths: Paths, name: str) -> int | None:
    """The release whose unit is installed; None before the first start."""
    return _linked(paths.active(name))


def current_number(paths: Paths, name: str) -> int | None:
    """The release that last proved itself; None before the first one."""
    return _linked(paths.current(name))


def desired_number(paths: Paths, name: str) -> int | None:
    """The release that the inventory asks for; None for an instance that the inventory does not declare.

    Raises OSError, and ValueError where the file is damaged.
    """
    value = files.read_json(paths.instance(name))
    number = value.get("release") if isinstance(value, dict) else None
    return number if isinstance(number, int) else None


def _linked(path: Path) -> int | None:
    try:
        target = os.readlink(path)
    except OSError:
        return None
    return int(target) if target.isdigit() else None


def find(paths: Paths, name: str, identity: str, warn: Callable[[str], None]) -> Release | None:
    """The newest release with an id. A damaged release has no id: `warn` gets its message."""
    for number in reversed(numbers(paths, name)):
        try:
            if (release := load(paths, name, number)).id == identity:
                return release
        except ReleaseError as error:
            warn(str(error))
    return None


def stage(
    paths: Paths,
    name: str,
    identity: str,
    render: Callable[[int], Rendered],
    warn: Callable[[str], None],
    *,
    check: bool = False,
) -> tuple[Rendered, bool]:
    """Write a release under the next number. Where a release with its id exists, repair its unit and environment.

    Whether the container is read-only may change in a release that exists: it is not part of the id.
    Returns the release, and whether something was written, or would be with `check`.
    """
    known = find(paths, name, identity, warn)
    number = known.number if known else max(numbers(paths, name), default=0) + 1
    rendered = render(number)
    directory = paths.release(name, number)
    content = {rendered.release.unit: (rendered.unit, 0o644), ENV_FILE: (rendered.environment, 0o600)}
    changed = known is None or not all(_keeps(directory / file, *wanted) for file, wanted in content.items())
    if known and known.read_only != rendered.release.read_only:
        record = replace(rendered.release, created=known.created)
        content[RELEASE_FILE] = (record.to_json(), 0o644)
        changed = True
    if not changed or check:
        return rendered, changed
    if known:
        for file, wanted in content.items():
            files.write(directory / file, *wanted)
        return rendered, True
    temporary = directory.with_name(f".{number}.new")
    shutil.rmtree(temporary, ignore_errors=True)
    for file, wanted in {RELEASE_FILE: (rendered.release.to_json(), 0o644), **content}.items():
        files.write(temporary / file, *wanted)
    os.replace(temporary, directory)
    return rendered, True


def _keeps(path: Path, text: str, mode: int) -> bool:
    """Whether a kept file is sound. The unit may still have the first timeout: renewal.py changes it, together with the
    known-good checksums."""
    return any(files.same(path, each, mode) for each in (text, with_timeout(text, FIRST_TIMEOUT)))


def remove(paths: Paths, name: str, number: int) -> None:
    """Remove a release. A removal that is cut off leaves no half of a release. Raises OSError."""
    going = paths.release(name, number).with_name(f".{number}.gone")
    shutil.rmtree(going, ignore_errors=True)
    os.replace(paths.release(name, number), going)
    shutil.rmtree(going)


def installed(paths: Paths, name: str, number: int) -> bool:
    """Whether a release's unit and environment are in place, so that activate() would change nothing.

    Raises ReleaseError where the release is damaged.
    """
    return active_number(paths, name) == number and all(
        files.same(path, *wanted) for path, wanted in _managed(paths, name, number).items()
    )


def verify(paths: Paths, name: str, number: int) -> None:
    """Check that a release can be installed. Raises ReleaseError where it is damaged."""
    load(paths, name, number)
    _managed(paths, name, number)


def activate(paths: Paths, name: str, number: int) -> bool:
    """Install a release's unit and environment. Returns whether a file changed (then systemd must reload).

    Raises ReleaseError where the release is damaged, before anything is written.
    """
    written = [files.write(path, *wanted) for path, wanted in _managed(paths, name, number).items()]
    linked = files.link(paths.active(name), str(number))
    return linked or any(written)


def text_of(paths: Paths, name: str, number: int) -> Rendered:
    """A release with its two files. Raises ReleaseError."""
    texts = _managed(paths, name, number)
    return Rendered(load(paths, name, number), texts[paths.unit(name)][0], texts[paths.env(name)][0])


def _managed(paths: Paths, name: str, number: int) -> dict[Path, tuple[str, int]]:
    """Text and mode of the files that a release installs. Raises ReleaseError."""
    directory = paths.release(name, number)
    return {
        paths.env(name): (_kept(directory / ENV_FILE), 0o600),
        paths.unit(name): (_kept(directory / paths.unit(name).name), 0o644),
    }


def _kept(path: Path) -> str:
    """The text of a release's file, which is never empty. Raises ReleaseError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ReleaseError(path, error) from error
    if not text:
        raise ReleaseError(path, "is empty")
    return text


def proven(paths: Paths, name: str, number: int) -> bool:
    """Whether a release is marked as the one that last proved itself, so that commit() would change nothing."""
    try:
        known = files.read_json(paths.known_good(name))
    except (OSError, ValueError):
        known = None
    return current_number(paths, name) == number and isinstance(known, dict) and known.get("release") == number


def commit(paths: Paths, name: str, number: int) -> bool:
    """Mark a release as proven, and record the checksums of its files.

    While a release stays the current one, a second call changes nothing: files that change later have proved nothing.
    Returns whether anything changed. Raises OSError.
    """
    if proven(paths, name, number):
        return False
    directory = paths.release(name, number)
    own = [directory / file for file in (RELEASE_FILE, paths.unit(name).name, ENV_FILE)]
    checksums = {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (paths.unit(name), paths.env(name), *own)
        if path.is_file()
    }
    files.write_json(paths.known_good(name), {"schema": SCHEMA, "release": number, "files": checksums})
    # The link comes last: readers of the link expect the checksums of its release.
    files.link(paths.current(name), str(number))
    return True
