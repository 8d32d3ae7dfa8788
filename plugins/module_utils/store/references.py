# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which revisions of models a node still needs. Private to the collection.

Whatever names a revision needs it: every kept release, for a rollback may lead there; every installed unit; every
container. Their texts are searched, and not understood, so that one which another version wrote, or which is damaged,
counts as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

from ..core.paths import Paths, unit_name
from ..core.problems import InputError, Problem
from ..models.manifest import REVISION_DIGITS, base_of

Revision = tuple[str, str]
"""A model's name in the store, and the revision."""

Run = Callable[[list[str]], tuple[int, str, str]]
"""Runs a command: exit code, output, errors."""

TRIES = 3
"""A container that ends while it is looked at makes `docker inspect` fail."""

_REVISION = re.compile(rf"/([A-Za-z0-9][A-Za-z0-9._-]*)/([0-9a-f]{{{REVISION_DIGITS}}})(?![0-9a-f])")
"""Wherever the store is mounted: what looks like a revision and is none does no harm here."""


def named(text: str) -> set[Revision]:
    """The revisions that a text names by their paths."""
    return set(_REVISION.findall(text))


def of_node(
    paths: Paths,
    containers_text: str,
    without: Collection[str] = (),
    superseded: Collection[tuple[str, int]] = (),
) -> dict[Revision, str]:
    """What needs each revision, as a phrase for people.

    The instances in `without` need nothing any more, nor do the releases in `superseded`, by instance and number.

    Raises InputError where that cannot be told for sure, and OSError: then nothing may be deleted.
    """
    needed: dict[Revision, str] = {}
    for why, texts in [
        *_releases(paths, without, superseded),
        *_units(paths, without),
        ("a container", [containers_text]),
    ]:
        for revision in sorted(set().union(*map(named, texts))):
            needed.setdefault(revision, why)
    return needed


def with_bases(needed: Mapping[Revision, str], store: Path) -> dict[Revision, str]:
    """The same, and the bases of those that are variants: links into them."""
    found = dict(needed)
    for revision in needed:
        base = base_of(store.joinpath(*revision))
        if base:
            found.setdefault((base.parent.name, base.name), f"the base of {'/'.join(revision)}")
    return found


def _releases(
    paths: Paths, without: Collection[str], superseded: Collection[tuple[str, int]]
) -> Iterator[tuple[str, Iterable[str]]]:
    """Each kept release with its texts; that with its environment is left out, for it is secret."""
    for directory in sorted(paths.all_releases.glob("*/[0-9]*")):
        name, number = directory.parent.name, directory.name
        if name in without or (number.isdigit() and (name, int(number)) in superseded):
            continue
        why = f"release {number} of {name}"
        texts = [
            file.read_text(encoding="utf-8", errors="replace")
            for file in sorted(directory.iterdir())
            if file.suffix in (".json", ".service")
        ]
        if not any(map(named, texts)):
            message = "does not tell which model it needs: remove the directory if no rollback needs that release"
            raise InputError([Problem(str(directory), message)])
        yield why, texts


def _units(paths: Paths, without: Collection[str]) -> Iterator[tuple[str, Iterable[str]]]:
    gone = {unit_name(name) for name in without}
    for file in sorted(paths.units.glob("vllm@*.service")):
        if file.name in gone:
            continue
        yield f"the unit {file.name}", [file.read_text(encoding="utf-8", errors="replace")]


def containers(run: Run, docker: str | None) -> str:
    """What Docker tells of all containers, also those that do not run; empty where the node has none.

    Raises InputError where Docker does not answer.
    """
    reason = ""
    for _attempt in range(TRIES if docker else 0):
        code, ids, errors = run([str(docker), "ps", "--all", "--quiet", "--no-trunc"])
        if code == 0 and not ids.split():
            return ""
        if code == 0:
            code, text, errors = run([str(docker), "inspect", *ids.split()])
            if code == 0:
                return text
        reason = errors.strip()
    if docker is None:
        return ""
    message = f"cannot tell what the containers need: {reason}; systemctl status docker"
    raise InputError([Problem("docker", message)])
