# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Known-good checksums of files that the collection itself changes in a release. Private to the collection."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from ..core import files


def digest(content: str | bytes) -> str:
    """The checksum of a file."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def recorded(path: Path) -> dict[str, str]:
    """The known-good checksums of an instance, by path. Empty if there are none, or if the file is damaged.

    Raises OSError.
    """
    try:
        known = files.read_json(path)
    except ValueError:
        return {}
    found = known.get("files") if isinstance(known, dict) else None
    return {name: str(each) for name, each in found.items()} if isinstance(found, dict) else {}


def replaced(path: Path, digests: Mapping[str, str]) -> str | None:
    """The text of known-good checksums, with new checksums in place of old ones; None if nothing changes.

    `digests` has the new checksum by the old one. A damaged file of checksums stays as it is. Raises OSError.
    """
    try:
        known = files.read_json(path)
    except ValueError:
        return None
    recorded = known.get("files") if isinstance(known, dict) else None
    if not isinstance(recorded, dict) or not any(old in digests for old in recorded.values() if isinstance(old, str)):
        return None
    return files.to_json({**known, "files": {name: digests.get(str(old), old) for name, old in recorded.items()}})
