# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sources from which a node itself fetches models: an archive on a web server, a repository of a hub. Private to the
collection. Pure, except for the store's record of fetched revisions."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core import files as node_files
from ...models.manifest import MANIFEST, Manifest

ARCHIVE = "archive"
HUB = "hub"

SCHEMA = 1

NOTE = ".sources.json"
"""Record below STORE/NAME: the revision of each source. Hidden, because it belongs to no revision."""

_URL = re.compile(r"https?://[^\s/]+/\S+?\.tar(?:\.gz|\.bz2|\.xz)?(?:\?\S*)?")
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
"""The hub's rule for names (huggingface_hub, utils/_validators.py, validate_repo_id)."""

_COMMIT = re.compile(r"[0-9a-f]{40}")
_CHECKSUM = re.compile(r"sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class Remote:
    """A source: `location` is a URL or the model's name on a hub, `digest` the archive's SHA-256 or the commit."""

    kind: str
    location: str
    digest: str

    @property
    def identity(self) -> str:
        """A text that identifies the content. For an archive, the text is the same on every server."""
        return f"sha256:{self.digest}" if self.kind == ARCHIVE else f"{self.location}@{self.digest}"

    @property
    def key(self) -> str:
        """12 digits in the names of directories and containers of the transfer."""
        return hashlib.sha256(self.identity.encode()).hexdigest()[:12]


def parse(entry: Mapping[str, Any]) -> Remote | None:
    """The remote source of a model, None for a directory. Raises ValueError that says what is missing."""
    text = str(entry.get("model") or "")
    if text.startswith(("http://", "https://")):
        if not _URL.fullmatch(text):
            raise ValueError("must be the URL of an archive: .tar, .tar.gz, .tar.bz2 or .tar.xz")
        checksum = _CHECKSUM.fullmatch(str(entry.get("checksum") or ""))
        if not checksum:
            raise ValueError(
                "needs the key checksum, too: sha256: and the 64 digits that `sha256sum` prints for the archive"
            )
        return Remote(ARCHIVE, text, checksum[1])
    if _REPOSITORY.fullmatch(text):
        revision = str(entry.get("revision") or "")
        if not _COMMIT.fullmatch(revision):
            raise ValueError("needs the key revision, too: the commit's 40 digits, which the hub shows under its files")
        return Remote(HUB, text, revision)
    return None


def fetched(directory: Path, remote: Remote) -> Manifest | None:
    """The manifest of the revision that was fetched from a source into STORE/NAME; None if there is none."""
    try:
        revision = _note(directory).get(remote.identity)
        return Manifest.from_dict(node_files.read_json(directory / revision / MANIFEST)) if revision else None
    except ValueError:
        return None


def record_source(directory: Path, remote: Remote, revision: str) -> None:
    """Record the source of a revision."""
    node_files.write_json(
        directory / NOTE, {"schema": SCHEMA, "revisions": {**_note(directory), remote.identity: revision}}
    )


def _note(directory: Path) -> dict[str, str]:
    # Without a valid record, the model is fetched again.
    try:
        note = node_files.read_json(directory / NOTE)
        return {str(source): str(revision) for source, revision in note["revisions"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
