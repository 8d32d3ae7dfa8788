# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks whether a model has all its safetensors files, and whether each is complete. Private to the collection.

Of the shards, only headers are read, so the check of a model of 140 GB takes milliseconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.sizes import counted
from . import safetensors

INDEX = "model.safetensors.index.json"
SUFFIX = ".safetensors"

OTHER_WEIGHTS = (".bin", ".gguf", ".pt", ".pth")
"""Endings of weights that are not served: pickles, which run code when they are loaded, and GGUF, whose header this
collection does not read."""

CONSOLIDATED = "consolidated"
"""Prefix of files that the engine leaves out, because Mistral publishes the same weights twice (ignore_patterns in
vllm/model_executor/model_loader/default_loader.py)."""


@dataclass(frozen=True)
class FileProblem:
    """A problem of one file of a model; `file` is its path in the model, empty for the directory itself."""

    file: str
    message: str


@dataclass
class Shards:
    """The files with the weights that the engine loads, and all their problems."""

    headers: dict[str, safetensors.Header] = field(default_factory=dict)
    """Headers of all readable files, also of files that the index does not name."""
    wanted: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    problems: list[FileProblem] = field(default_factory=list)

    @property
    def loaded(self) -> dict[str, safetensors.Header]:
        """The headers of wanted files."""
        return {name: self.headers[name] for name in self.wanted if name in self.headers}

    @property
    def tensors(self) -> dict[str, safetensors.Tensor]:
        """The tensors of wanted files by name. A tensor in two files counts once, because the engine loads one."""
        return {name: tensor for header in self.loaded.values() for name, tensor in header.tensors.items()}


def read(files: Mapping[str, Path]) -> Shards:
    """Read the headers of a model's files, by path in the model.

    Raises nothing: missing, incomplete or damaged files are problems of the result.
    """
    shards = Shards()

    def wrong(name: str, message: str) -> None:
        shards.problems.append(FileProblem(name, message))

    for name, path in sorted(files.items()):
        if name.endswith(SUFFIX):
            try:
                shards.headers[name] = safetensors.read(path)
            except safetensors.Truncated as error:
                shards.cut.append(name)
                wrong(name, str(error))
            except safetensors.SafetensorsError as error:
                wrong(name, str(error))
            except OSError as error:
                wrong(name, unreadable(error))
    if INDEX in files:
        index, problem = read_json(files[INDEX])
        named = _by_shard(index)
        if problem:
            wrong(INDEX, problem)
        elif not named:
            wrong(INDEX, "names no shard: its weight_map is missing or empty")
        for shard, tensors in named.items():
            if shard not in files:
                shards.missing.append(shard)
                wrong(shard, f"is missing: {INDEX} names it; fetch it again")
            elif shard in shards.headers and (lacking := sorted(tensors - set(shards.headers[shard].tensors))):
                wrong(
                    shard,
                    f"lacks {counted(len(lacking), 'tensor')} that {INDEX} names, such as {lacking[0]}; fetch it again",
                )
        shards.wanted = sorted(named)
    else:
        top = sorted(name for name in files if name.endswith(SUFFIX) and "/" not in name)
        shards.wanted = [name for name in top if not name.startswith(CONSOLIDATED)] or top
        if not top:
            wrong("", _no_weights(files))
    return shards


def read_json(path: Path) -> tuple[dict[str, Any], str]:
    """A file's dictionary, and its problem. With a problem, the dictionary is empty."""
    try:
        value = json.loads(path.read_bytes())
    except OSError as error:
        return {}, unreadable(error)
    except (ValueError, RecursionError) as error:
        return {}, f"is not JSON: {error}"
    if not isinstance(value, dict):
        return {}, f"must be a dictionary, found {type(value).__name__}"
    return value, ""


def unreadable(error: OSError) -> str:
    """The problem of a file that cannot be read, without the file's name."""
    return f"cannot be read: {error.strerror or error}"


def _by_shard(index: Mapping[str, Any]) -> dict[str, set[str]]:
    """The tensors of each shard, by the index."""
    shards: dict[str, set[str]] = {}
    weight_map = index.get("weight_map")
    for tensor, shard in weight_map.items() if isinstance(weight_map, dict) else ():
        shards.setdefault(str(shard), set()).add(tensor)
    return shards


def _no_weights(files: Mapping[str, Path]) -> str:
    others = sorted(name for name in files if name.endswith(OTHER_WEIGHTS))
    found = f"found only {', '.join(others[:3])}, convert it" if others else "found none"
    return f"contains no weights: expected *{SUFFIX}, {found}"
