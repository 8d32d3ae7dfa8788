# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variants with a system prompt in the store of a node. Private to the collection.

A variant lies in STORE/NAME/REVISION, like every model: named by its content, complete before it has its name, never
modified. Its weights are links to the base's revision, whose checksums the store has.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from ..core import files as node_files
from ..core.problems import InputError, Problem
from ..models import shards
from ..models.manifest import CONFIG, MANIFEST, Manifest, find_files
from ..models.prompts import refusals
from ..models.prompts.templates import rewrite, template_files
from ..models.registry.entries import Entry
from .store import INCOMING, make_directory, put_in_place, sync, walk
from .variant_files import Base, Variant


def check_model(entry: Entry, root: Path) -> list[Problem]:
    """Problems of a model's directory with the system prompt of its entry, as far as they show without rendering."""
    files, _problems = find_files(root, "")
    config, _problem = shards.read_json(files[CONFIG]) if CONFIG in files else ({}, "")
    architectures = config.get("architectures")
    named = architectures if isinstance(architectures, list) else []
    problems = refusals.check_model(entry, config.get("model_type"), map(str, named), files)
    if problems:
        return problems
    try:
        rewrite(read_templates(files), str, f"models.{entry.name}")
    except InputError as error:
        return error.problems
    return []


def read_templates(files: Mapping[str, Path]) -> dict[str, str]:
    """The texts of a model's files with chat templates. Raises OSError."""
    # Invalid UTF-8 changes the template. If a template fails for this, its rendering with the prompt reports it.
    return {name: files[name].read_text(encoding="utf-8", errors="replace") for name in template_files(files)}


def read_base(entry: Entry, root: Path) -> Base:
    """The published base of a variant. Raises InputError if its manifest is missing or damaged."""
    try:
        return Base(entry.store_name, Manifest.from_dict(node_files.read_json(root / MANIFEST)))
    except ValueError as error:
        message = f"{root / MANIFEST} cannot be used: {error}; run baremetal.inference.site, which repairs the store"
        raise InputError([Problem(f"models.{entry.name}", message)]) from None


def damage(path: Path, variant: Variant) -> list[str]:
    """The damage of a published variant. Files of its base are checked with the base."""
    if not path.is_dir():
        return []
    found = []
    for relative, target in variant.links.items():
        link = path / relative
        if not link.is_symlink() or os.readlink(link) != target:
            found.append(f"{link} is not a link to {target}")
    own = {**variant.files, MANIFEST: node_files.to_json(variant.manifest.to_dict())}
    for relative, text in own.items():
        file = path / relative
        if file.is_symlink() or not node_files.same(file, text):
            found.append(f"{file} was altered")
    strays = set(walk(path)) - set(variant.links) - set(own)
    return [*found, *(f"{path / stray} does not belong there" for stray in sorted(strays))]


def publish(store: Path, variant: Variant) -> None:
    """Write a variant and give it its name. A damaged directory of this name is replaced as a whole."""
    incoming = store / INCOMING / f"{variant.name}-{variant.revision}"
    shutil.rmtree(incoming, ignore_errors=True)
    for relative in (*variant.links, *variant.files):
        make_directory((incoming / relative).parent)
    for relative, target in variant.links.items():
        (incoming / relative).symlink_to(target)
    for relative, text in variant.files.items():
        node_files.write(incoming / relative, text)
    node_files.write_json(incoming / MANIFEST, variant.manifest.to_dict())
    sync(incoming)
    put_in_place(incoming, store / variant.name / variant.revision)
