# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks and hashes models in directories of this machine, and builds their manifests. Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core.problems import Problem
from ..models import adapter_facts
from ..models.manifest import File, Manifest, check, find_files, reason
from ..models.registry.adapters import is_adapter
from .hashes import HashCache
from .sources.source import Source


def build_manifests(
    sources: Mapping[str, Source], models: Mapping[str, Any], cache: HashCache, verify: bool = False
) -> tuple[dict[str, Manifest], list[Problem]]:
    """Check and hash the models of this machine. A `revision` in an entry must be the revision that is found."""
    manifests: dict[str, Manifest] = {}
    problems: list[Problem] = []
    for name, source in sources.items():
        where = f"models.{name}"
        adapter = is_adapter(models[name])
        manifest, found = build(source.path, f"{where} ({source.origin})", cache, verify, adapter=adapter)
        problems += found
        if manifest is None:
            continue
        pinned = models[name].get("revision", manifest.revision)
        if pinned == manifest.revision:
            manifests[name] = manifest
        else:
            message = (
                f"{source.path} has revision {manifest.revision}: put the pinned revision there, or correct `revision`"
            )
            problems.append(Problem(where, message, "revision", pinned))
    return manifests, problems


def build(
    root: Path, where: str, cache: HashCache, verify: bool = False, *, adapter: bool = False
) -> tuple[Manifest | None, list[Problem]]:
    """Check a model's directory, or that of an adapter, and hash its files.

    Returns the manifest, or None and all problems. A model with problems is not hashed.
    """
    if not root.is_dir():
        problem = "is not a directory" if root.exists() else "does not exist"
        return None, [Problem(where, f"{root} {problem}: put the model there, or correct the path")]
    files, problems = find_files(root, where)
    weight_bytes, more = (adapter_facts.check if adapter else check)(root, files, where)
    problems += more
    if problems:
        return None, problems
    try:
        hashes = cache.hashes(files.values(), verify)
        described = {name: File(path.stat().st_size, hashes[path]) for name, path in files.items()}
    except OSError as error:
        return None, [Problem(where, reason(error))]
    return Manifest(described, weight_bytes), []
