# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The safetensors files of a model: which ones there must be, and whether each is whole. Private to the collection.

Only headers are read, so that a model of 140 GB is checked in milliseconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import safetensors

INDEX = "model.safetensors.index.json"
SUFFIX = ".safetensors"

OTHER_WEIGHTS = (".bin", ".gguf", ".pt", ".pth")
"""Weights that are not served: pickles run code when they are loaded, the others have no header to check."""

CONSOLIDATED = "consolidated"
"""Mistral publishes the same weights twice; the engine leaves out the files that begin so (ignore_patterns in
vllm/model_executor/model_loader/default_loader.py)."""


@dataclass(frozen=True)
class FileProblem:
    """What is wrong with one file of a model; `file` is its path in the model, empty for the directory itself."""

    file: str
    message: str


@dataclass
class Shards:
    """The files that hold the weights the engine loads, and every problem found with them."""

    headers: dict[str, safetensors.Header] = field(default_factory=dict)
    """By file, those that could be read; with an index, also files that it does not name."""
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
        """The tensors of wanted files by name; one that two files hold counts once, as the engine keeps one."""
        return {name: tensor for header in self.loaded.values() for name, tensor in header.tensors.items()}


def read(files: Mapping[str, Path]) -> Shards:
    """Read the headers of a model's files, which are given by their path in the model.

    Raises nothing: a file that is missing, cut or damaged is a problem of the result.
    """
    shards = Shards()

    def wrong(name: str, message: str) -> None:
        shards.problems.append(FileProblem(name, message))

    for name, path in files.items():
        if name.endswith(SUFFIX):
            try:
                shards.headers[name] = safetensors.read(path)
            except safetensors.Truncated as error:
                shards.cut.append(name)
                wrong(name, str(error))
            except (OSError, safetensors.SafetensorsError) as error:
                wrong(name, str(error))
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
                wrong(shard, f"lacks {len(lacking)} tensors that {INDEX} says it holds, such as {lacking[0]}")
        shards.wanted = sorted(named)
    else:
        top = sorted(name for name in files if name.endswith(SUFFIX) and "/" not in name)
        shards.wanted = [name for name in top if not name.startswith(CONSOLIDATED)] or top
        if not top:
            wrong("", _no_weights(files))
    return shards


def read_json(path: Path) -> tuple[dict[str, Any], str]:
    """A file's dictionary, empty where there is none, and then what is wrong with the file."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        return {}, f"is not JSON: {error}"
    if not isinstance(value, dict):
        return {}, f"must be a dictionary, found {type(value).__name__}"
    return value, ""


def _by_shard(index: Mapping[str, Any]) -> dict[str, set[str]]:
    """The tensors of each shard, as the index says."""
    shards: dict[str, set[str]] = {}
    weight_map = index.get("weight_map")
    for tensor, shard in weight_map.items() if isinstance(weight_map, dict) else ():
        shards.setdefault(str(shard), set()).add(tensor)
    return shards


def _no_weights(files: Mapping[str, Path]) -> str:
    others = sorted(name for name in files if name.endswith(OTHER_WEIGHTS))
    found = f"found only {', '.join(others[:3])}, convert it" if others else "found none"
    return f"holds no weights: expected *{SUFFIX}, {found}"
