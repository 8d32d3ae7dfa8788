# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the revisions of models that a node still needs. Private to the collection.

Every kept release, installed unit and container needs the revisions that its text names; a rollback may start any kept
release. The texts are searched, not parsed. So damaged files, and files of another version of this collection, count,
too.
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
"""`docker inspect` fails if a container is removed between `docker ps` and `docker inspect`."""

_REVISION = re.compile(rf"/([A-Za-z0-9][A-Za-z0-9._-]*)/([0-9a-f]{{{REVISION_DIGITS}}})(?![0-9a-f])")
"""Matches /NAME/REVISION below any path of the store. A false match only keeps more revisions."""


def named(text: str) -> set[Revision]:
    """The revisions that a text names by their paths."""
    return set(_REVISION.findall(text))


def of_node(
    paths: Paths,
    containers_text: str,
    without: Collection[str] = (),
    superseded: Collection[tuple[str, int]] = (),
) -> dict[Revision, str]:
    """Each needed revision, with the thing that needs it as a phrase for a message.

    Instances in `without`, and releases in `superseded` (instance and number), are ignored.

    Raises InputError if a release names no model, and OSError if a file cannot be read. Then nothing may be deleted.
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
    """The needed revisions, and the base of each variant among them: a variant consists of links to its base."""
    found = dict(needed)
    for revision in needed:
        base = base_of(store.joinpath(*revision))
        if base:
            found.setdefault((base.parent.name, base.name), f"the base of {'/'.join(revision)}")
    return found


def _releases(
    paths: Paths, without: Collection[str], superseded: Collection[tuple[str, int]]
) -> Iterator[tuple[str, Iterable[str]]]:
    """Each kept release with its texts. Its environment is left out, because it is secret."""
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
            message = "names no model: remove this directory if no rollback needs its release"
            raise InputError([Problem(str(directory), message)])
        yield why, texts


def _units(paths: Paths, without: Collection[str]) -> Iterator[tuple[str, Iterable[str]]]:
    gone = {unit_name(name) for name in without}
    for file in sorted(paths.units.glob("vllm@*.service")):
        if file.name in gone:
            continue
        yield f"the unit {file.name}", [file.read_text(encoding="utf-8", errors="replace")]


def containers(run: Run, docker: str | None) -> str:
    """The output of `docker inspect` for all containers, also stopped ones; empty if the node has none.

    Raises InputError if Docker does not answer.
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
    message = (
        f"does not list the containers, which may need models: {reason}; see `systemctl status docker`, then run again"
    )
    raise InputError([Problem("docker", message)])
