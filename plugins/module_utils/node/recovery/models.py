# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the files of a model are as long as they were published. Private to the collection.

Contents are not read: 140 GB take minutes that an engine which is down does not have.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from ...manifest import MANIFEST, Manifest
from ...release import Release


@dataclass(frozen=True)
class Damage:
    """A file of a model that an engine would stumble over."""

    path: Path
    why: str

    def __str__(self) -> str:
        return f"{self.path} {self.why}"


def damage(release: Release) -> list[Damage]:
    """What is wrong with the files of a release's model. A model that the store did not publish has no manifest:
    then only its directory is looked for."""
    root = Path(release.model_path)
    if not root.is_dir():
        return [Damage(root, "is not there: is its disk mounted?")]
    record = root / MANIFEST
    if not record.exists():
        return []
    try:
        manifest = Manifest.from_dict(json.loads(record.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        return [Damage(record, f"cannot be used: {error}")]
    found = []
    for name, file in sorted(manifest.files.items()):
        try:
            size = (root / name).stat().st_size
        except OSError as error:
            found.append(Damage(root / name, f"cannot be read: {error.strerror}"))
            continue
        if size != file.size:
            found.append(Damage(root / name, f"has {size} bytes instead of {file.size}"))
    return found
