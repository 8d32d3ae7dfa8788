# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks the sizes of the files of a model, its adapters and its draft, and leads the engine from a damaged fast copy
back to the store. Private to the collection.

Does not read the contents: 140 GB take minutes, and meanwhile the engine is down.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...core import files
from ...engine.release import Release
from ...models.manifest import MANIFEST, Manifest, base_of
from ...store.fast_copy import copy_target


@dataclass(frozen=True)
class Fallback:
    """A link of the fast path that leads to a damaged copy, and the intact revision in the store."""

    link: Path
    store: Path


@dataclass(frozen=True)
class Damage:
    """A damaged file of a model, an adapter or a draft.

    `fallback` is the way to an intact file; None if there is none.
    """

    path: Path
    why: str
    fallback: Fallback | None = None

    def __str__(self) -> str:
        return f"{self.path} {self.why}"


def find_damage(release: Release) -> list[Damage]:
    """The damage to the files of a release's model, its LoRA adapters and its draft model. A directory
    that the store did not publish has no manifest, and must only exist."""
    found = []
    for root in map(Path, filter(None, (release.model_path, *release.lora.values(), release.draft))):
        damaged = _compare(root)
        try:
            fallbacks = list(_fallbacks(release, root)) if damaged else []
        except OSError:
            # The link or the original cannot be read either.
            fallbacks = []
        found += [replace(one, fallback=_fallback_for(one, fallbacks)) for one in damaged]
    return found


def link_to_store(damaged: Sequence[Damage]) -> list[str]:
    """Lead the links of damaged copies to the store. The copies stay: baremetal.inference.site repairs them. Returns
    what was done. Raises OSError."""
    done = []
    for fallback in dict.fromkeys(one.fallback for one in damaged if one.fallback):
        what = "; ".join(str(one) for one in damaged if one.fallback == fallback)
        files.link(fallback.link, str(fallback.store))
        done.append(
            f"the fast copy is damaged ({what}): {fallback.link} leads to {fallback.store}"
            " until baremetal.inference.site repairs the copy"
        )
    return done


def _compare(root: Path) -> list[Damage]:
    """The damage to a revision."""
    record = root / MANIFEST
    try:
        if not root.is_dir():
            return [Damage(root, "is missing: is its disk mounted?")]
        if not record.exists():
            return []
    except OSError as error:
        return [Damage(root, f"cannot be read: {error.strerror}")]
    try:
        manifest = Manifest.from_dict(files.read_json(record))
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


def _fallbacks(release: Release, root: Path) -> Iterator[Fallback]:
    """The intact originals in the store of a model's fast copies: its own, and that of its base if it is a variant.

    Raises OSError.
    """
    roots = [Path(root) for root in (release.settings.store_path, release.settings.fast_path) if root]
    for link in (root, base_of(root)):
        if link is None or not link.is_symlink():
            continue
        revision = (link.parent.name, link.name)
        if os.readlink(link) != copy_target(revision):
            continue
        originals = (place.joinpath(*revision) for place in roots if place != link.parent.parent)
        yield from (Fallback(link, each) for each in originals if (each / MANIFEST).exists() and not _compare(each))


def _fallback_for(one: Damage, fallbacks: Iterable[Fallback]) -> Fallback | None:
    """The fallback for a damaged file: that of the link through which the engine reads the file."""
    real = Path(os.path.realpath(one.path))
    return next((fallback for fallback in fallbacks if real.is_relative_to(os.path.realpath(fallback.link))), None)
