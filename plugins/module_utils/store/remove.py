# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removes models from the store of a node that no longer serves them. Private to the collection.

Unlike the cleaning, a removal also removes the newest revision.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Sequence
from pathlib import Path

from ..core.paths import Paths, container_name
from ..debian.block_devices import read_mounts
from . import clean, references
from .clean import Cleaning
from .fast_copy import COPIES, FastStore
from .hashes import HashCache
from .references import Run
from .sources.remote import NOTE
from .store import INCOMING


class Removal:
    """The removal of models from the store, and of their fast copies if the node has a directory for them."""

    def __init__(self, store: Path, fast: Path | None, paths: Paths) -> None:
        self._store = store
        self._roots = [store, *([fast] if fast else [])]
        self._paths = paths
        self.cleaning = Cleaning(store, FastStore(fast, store, HashCache()) if fast else None)

    def plan(self, names: Collection[str] | None, leaving: Sequence[str], run: Run, docker: str | None) -> None:
        """Decide which revisions of these models are removed; None means all models.

        The needs of instances in `leaving` are ignored. Raises InputError, ValueError and OSError if a need is unclear.
        The caller must then remove nothing.
        """
        clean.check(self._store.resolve(), 1, read_mounts(self._paths.root / "proc"))
        text = without_containers(references.containers(run, docker), leaving)
        self.cleaning.plan(0, references.of_node(self._paths, text, leaving), text, names)

    def apply(self, *, everything: bool) -> None:
        """Remove the revisions. With `everything`, also remove the store's directories if no revision stays.

        Raises OSError.
        """
        self.cleaning.apply()
        for root in self._roots:
            _tidy(root, everything=everything and not self.cleaning.kept)


def without_containers(text: str, instances: Collection[str]) -> str:
    """The output of `docker inspect` without the containers of some instances. Raises ValueError."""
    gone = {f"/{container_name(name)}" for name in instances}
    found = json.loads(text) if text and gone else []
    return json.dumps([each for each in found if each.get("Name") not in gone]) if found else text


def _tidy(root: Path, *, everything: bool) -> None:
    """Remove directories of models without a revision. With `everything`, also remove the store's own directories and
    the root."""
    if everything:
        for own in (root / INCOMING, root / COPIES):
            shutil.rmtree(own, ignore_errors=True)
    for path in root.iterdir() if root.is_dir() else ():
        if path.is_dir() and not path.is_symlink() and [each.name for each in path.iterdir()] == [NOTE]:
            # The record of the sources of revisions, of which none is left.
            (path / NOTE).unlink()
        if _empty(path):
            path.rmdir()
    if everything and _empty(root) and not root.is_mount():
        root.rmdir()


def _empty(path: Path) -> bool:
    """Whether the path is an empty directory."""
    return path.is_dir() and not path.is_symlink() and not any(path.iterdir())
