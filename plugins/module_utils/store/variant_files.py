# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The directory of a variant with a system prompt: its own few files, and links to its base. Private to the collection.

Pure: computes files and links, writes nothing. The directory is STORE/NAME/REVISION, like that of every model.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass

from ..core import files as node_files
from ..models.manifest import INFO, File, Manifest
from ..models.prompts.text import clean

SCHEMA = 1

PROMPT_FILE = "system_prompt.txt"


@dataclass(frozen=True)
class Base:
    """The published model whose weights a variant shares."""

    name: str
    manifest: Manifest


@dataclass(frozen=True)
class Variant:
    """The content of a variant's directory. `links`: path and target, relative to the link's directory."""

    name: str
    base: Base
    files: Mapping[str, str]
    links: Mapping[str, str]
    manifest: Manifest

    @property
    def revision(self) -> str:
        return self.manifest.revision


def plan(name: str, base: Base, prompt: str, policy: str, templates: Mapping[str, str]) -> Variant:
    """The variant of a model; `templates` are the texts of the files with its changed chat templates, by path.

    An engine loads this directory instead of the base's: it has templates, tokenizer and weights under the same names.
    Links are relative and lead to the base's revision in the same store, so they also work in containers. The same
    input gives the same bytes, and so the same revision, on every node.
    """
    info = {
        "schema": SCHEMA,
        "name": name,
        "base": {"name": base.name, "revision": base.manifest.revision},
        "system_prompt_policy": policy,
        "templates": sorted(templates),
    }
    files = {**templates, PROMPT_FILE: f"{clean(prompt)}\n", INFO: node_files.to_json(info)}
    manifest = Manifest(
        {**base.manifest.files, **{path: _file(text) for path, text in files.items()}}, base.manifest.weight_bytes
    )
    shared = [path for path in base.manifest.files if path not in files]
    links = {
        path: _link(f"{name}/{manifest.revision}", f"{base.name}/{base.manifest.revision}", path) for path in shared
    }
    return Variant(name, base, files, links, manifest)


def _file(text: str) -> File:
    content = text.encode()
    return File(len(content), hashlib.sha256(content).hexdigest())


def _link(directory: str, target: str, path: str) -> str:
    return posixpath.relpath(f"{target}/{path}", posixpath.dirname(f"{directory}/{path}"))
