# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the controller's files whose paths are in flags of the model registry. Private to the collection.

A filter that several tasks use imports this file, so the file imports little.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..core.controller import ON_CONTROLLER
from ..models.registry.needed import needed
from .inventory import present_instances

NOT_FLAGS = frozenset({"model", "adapter", "description", "system-prompt", "golden-prompts", "warm-up-prompts"})
"""Keys of an entry whose texts are no paths of flags. The store fetches what `model` and `adapter` name."""

MOST_FILES, MOST_BYTES = 200, 128 << 20
"""The most files and bytes of a directory that are copied. The store is the place for more."""


def read(models: Mapping[str, Any], instances: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """The controller's files and directories in the entries that present instances need, by the value in the entry.

    Each has `name`, `source`, `digest` and `directory`, or `problem`: why it cannot be copied.
    """
    found: dict[str, dict[str, Any]] = {}
    served = [raw.get("model") for raw in present_instances(instances) if isinstance(raw, Mapping)]
    for name in sorted(needed(models, [name for name in served if isinstance(name, str)])):
        entry = models[name]
        if isinstance(entry, Mapping):
            for key, value in entry.items():
                for text in texts(value) if key not in NOT_FLAGS else ():
                    found.setdefault(text, _one(text.removeprefix(ON_CONTROLLER)))
    return found


def texts(value: Any) -> Iterator[str]:
    """The texts in a value that name a path of the controller. An object may also be a text with JSON."""
    if isinstance(value, str) and value.startswith(ON_CONTROLLER):
        yield value
    elif isinstance(value, str) and value.lstrip().startswith("{"):
        with suppress(ValueError, RecursionError):
            yield from texts(json.loads(value))
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)


def _one(place: str) -> dict[str, Any]:
    path = Path(place)
    try:
        if path.is_dir():
            return _directory(path)
        digest = hashlib.sha256(f"file\0{path.name}\0".encode() + path.read_bytes()).hexdigest()
    except OSError as error:
        return {"problem": f"cannot be read on the controller: {error.strerror or error}"}
    return {"name": path.name, "source": str(path), "digest": digest, "directory": False}


def _directory(path: Path) -> dict[str, Any]:
    """Raises OSError."""
    walk = os.walk(path, onerror=_fail, followlinks=True)
    files = sorted(Path(parent) / name for parent, _names, names in walk for name in names)
    size = sum(file.stat().st_size for file in files)
    if len(files) > MOST_FILES or size > MOST_BYTES:
        problem = (
            f"has {len(files)} files with {size >> 20} MiB in all, and at most {MOST_FILES} files with "
            f"{MOST_BYTES >> 20} MiB in all are copied: put them into the model's own directory, or make them an "
            "entry of the model registry"
        )
        return {"problem": problem}
    digest = hashlib.sha256(f"directory\0{path.name}\0".encode())
    for file in files:
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"{file.relative_to(path)}\0{content}\0".encode())
    return {"name": path.name, "source": f"{path}/", "digest": digest.hexdigest(), "directory": True}


def _fail(error: OSError) -> None:
    """Without this, os.walk leaves out a directory that it cannot read."""
    raise error
