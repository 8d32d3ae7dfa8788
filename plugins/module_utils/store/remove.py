# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removes models from the store of a node that no longer serves them. Private to the collection.

Other than the clean-up, a removal lets the newest revision go as well.
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
from .store import INCOMING


class Removal:
    """Models that leave the store, and their fast copies where the node has a root for them."""

    def __init__(self, store: Path, fast: Path | None, paths: Paths) -> None:
        self._store = store
        self._roots = [store, *([fast] if fast else [])]
        self._paths = paths
        self.cleaning = Cleaning(store, FastStore(fast, store, HashCache()) if fast else None)

    def plan(self, names: Collection[str] | None, leaving: Sequence[str], run: Run, docker: str | None) -> None:
        """Decide which revisions of these models go, None for all models; instances in `leaving` need none.

        Raises InputError, ValueError and OSError where it cannot be told what is needed: then nothing may go.
        """
        clean.check(self._store.resolve(), 1, read_mounts(self._paths.root / "proc"))
        text = without_containers(references.containers(run, docker), leaving)
        self.cleaning.plan(0, references.of_node(self._paths, text, leaving), text, names)

    def apply(self, *, everything: bool) -> None:
        """Remove them; with `everything` also the store's directories, unless a revision stays. Raises OSError."""
        self.cleaning.apply()
        for root in self._roots:
            _tidy(root, everything=everything and not self.cleaning.kept)


def without_containers(text: str, instances: Collection[str]) -> str:
    """What Docker says of all containers but those of some instances. Raises ValueError."""
    gone = {f"/{container_name(name)}" for name in instances}
    found = json.loads(text) if text and gone else []
    return json.dumps([each for each in found if each.get("Name") not in gone]) if found else text


def _tidy(root: Path, *, everything: bool) -> None:
    """Remove the directories of models that have no revision any more, and all of ours if nothing else is left."""
    if everything:
        for own in (root / INCOMING, root / COPIES):
            shutil.rmtree(own, ignore_errors=True)
    for path in root.iterdir() if root.is_dir() else ():
        if _empty(path):
            path.rmdir()
    if everything and _empty(root) and not root.is_mount():
        root.rmdir()


def _empty(path: Path) -> bool:
    """Whether a directory is there that holds nothing."""
    return path.is_dir() and not path.is_symlink() and not any(path.iterdir())
