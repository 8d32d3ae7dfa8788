# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the place of a model on a node without reading the model's source. Private to the collection."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..core import files as node_files
from ..models.manifest import INFO, MANIFEST, REVISION, base_of
from ..models.prompts.text import clean
from ..models.registry.entries import Entry
from .sources import remote as remote_source
from .stored_model import StoredModel
from .variant_files import PROMPT_FILE

NOT_KNOWN = "REVISION"
"""Stands in a path for a revision that is not known until `baremetal.inference.site` has read the model's source."""


@dataclass(frozen=True)
class Place:
    """Where a model lies or will lie in the store. `revision` is None if not known yet. `files` is the directory where
    the files can be read now, in the store or at a source on this node; None if nowhere."""

    path: Path
    revision: str | None
    files: Path | None

    @property
    def stored(self) -> StoredModel:
        """The place as the renderer of a release takes it."""
        return StoredModel(str(self.path), self.revision or NOT_KNOWN)


def find(store: Path, entry: Entry, in_use: str | None = None, coming: str | None = None) -> Place:
    """The pinned revision, else the revision in use, else the newest published one.

    Reads only names and times, so a changed source is not noticed: a comparison would read the whole source. A caller
    that has compared gives `coming`: the revision that is to be published, or NOT_KNOWN.
    """
    if entry.system_prompt is None:
        return _weights(store, entry, in_use, coming)
    variants = [
        path
        for path in _published(store / entry.name)
        if (base := base_of(path)) and coming in (None, base.name) and _is_variant_of(path, entry)
    ]
    path = next((path for path in variants if path.name == in_use), variants[-1] if variants else None)
    base = base_of(path) if path else None
    files = _weights(store, entry, base.name if base else None, coming).files
    return Place(path or store / entry.name / NOT_KNOWN, path.name if path else None, files)


def _weights(store: Path, entry: Entry, in_use: str | None, coming: str | None) -> Place:
    directory = store / entry.store_name
    source = Path(entry.model) if entry.model.startswith("/") else None
    if coming is not None:
        # Published files do not count: they are damaged, or another revision.
        files = source if source and source.is_dir() else None
        return Place(directory / coming, None if coming == NOT_KNOWN else coming, files)
    remote = _remote(entry)
    if remote:
        manifest = remote_source.fetched(directory, remote)
        path = directory / (manifest.revision if manifest else NOT_KNOWN)
        return Place(path, path.name if manifest else None, path if manifest else None)
    revisions = [path.name for path in _published(directory) if not base_of(path)]
    revision = entry.revision or (in_use if in_use in revisions else revisions[-1] if revisions else None)
    path = directory / (revision or NOT_KNOWN)
    places = (path if revision in revisions else None, source)
    return Place(path, revision, next((place for place in places if place and place.is_dir()), None))


def _remote(entry: Entry) -> remote_source.Remote | None:
    """The remote source of an entry; None without a valid one. The store reports mistakes."""
    try:
        return remote_source.parse({"model": entry.model, "revision": entry.revision, "checksum": entry.checksum})
    except ValueError:
        return None


def _published(directory: Path) -> list[Path]:
    """The revisions in a directory of the store, the newest last."""
    manifests = sorted(directory.glob(f"[0-9a-f]*/{MANIFEST}"), key=lambda path: path.stat().st_mtime)
    # An interrupted repair leaves a damaged revision under a longer name.
    return [path.parent for path in manifests if REVISION.match(path.parent.name)]


def _is_variant_of(path: Path, entry: Entry) -> bool:
    """Whether a published variant has the system prompt and the policy of an entry."""
    try:
        policy = node_files.read_json(path / INFO)["system_prompt_policy"]
        text = (path / PROMPT_FILE).read_text(encoding="utf-8")
        return policy == entry.system_prompt_policy and text == f"{clean(str(entry.system_prompt))}\n"
    except (OSError, ValueError, KeyError, TypeError):
        return False
