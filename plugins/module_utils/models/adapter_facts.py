# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts of a LoRA adapter: configuration and the shapes of its weights. Private to the collection.

Sources: PEFTHelper in vllm/lora/peft_helper.py and LoRAModel in vllm/lora/lora_model.py of vLLM 0.32.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.problems import Problem, is_integer
from . import manifest, safetensors, shards
from .file_names import ADAPTER_CONFIG
from .shards import FileProblem

WEIGHTS = "adapter_model.safetensors"

METHOD = "LORA"
"""The only value of `peft_type` that the engine serves."""

UNSUPPORTED = ("use_dora", "lora_bias", "alora_invocation_tokens", "layer_replication", "use_bdlora", "use_qalora")
"""Keys of the configuration that must be missing, false or empty."""

INITIALISATIONS = frozenset({"gaussian", "eva", "orthogonal", "mica"})
"""Texts in `init_lora_weights` that leave the weights of the base as they are (reset_lora_parameters and *_init in
peft/tuners/lora/layer.py of PEFT 0.21)."""

SAVED = frozenset({"classifier", "score"})
"""Modules that an adapter may bring as a whole."""

TOWER = re.compile(r"vis|audio|tower|image|speech", re.IGNORECASE)
"""Words in the names of modules that belong to a part for images or sound. Such a part has layers and sizes of its
own."""

_TENSOR = re.compile(r"(?P<module>.+)\.lora_(?P<side>[AB])(?:\.[^.]+)?\.weight")
_LAYER = re.compile(r"\.layers\.(\d+)\.")


@dataclass(frozen=True)
class AdapterFacts:
    """The facts of an adapter. None and empty if unknown."""

    rank: int | None = None
    """The highest rank in its configuration and its matrices."""
    base: str = ""
    """The model that the adapter was trained on, as its trainer named the model."""
    layers: int = 0
    """The highest number of a layer of the language part that the adapter changes, plus 1."""
    shapes: tuple[tuple[str, int, int], ...] = ()
    """The modules of the layers, except experts, each with its inputs and outputs, without the layer's number; each
    combination once. Parts for images and sound have layers, too."""
    problems: tuple[FileProblem, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "rank": self.rank,
            "base": self.base,
            "layers": self.layers,
            "shapes": [list(shape) for shape in self.shapes],
            "problems": [{"file": one.file, "message": one.message} for one in self.problems],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> AdapterFacts:
        """The facts from the form of to_dict()."""
        return cls(
            rank=data.get("rank"),
            base=str(data.get("base") or ""),
            layers=int(data.get("layers") or 0),
            shapes=tuple((str(module), int(size), int(out)) for module, size, out in data.get("shapes") or ()),
            problems=tuple(FileProblem(str(one["file"]), str(one["message"])) for one in data.get("problems") or ()),
        )


def gather(root: Path) -> AdapterFacts:
    """Read an adapter's directory. Raises nothing: mistakes are in the facts."""
    try:
        if not root.is_dir():
            return AdapterFacts(problems=(FileProblem("", "is missing, or is not a directory"),))
        files, found = manifest.find_files(root, "")
    except OSError as error:
        return AdapterFacts(problems=(FileProblem("", f"cannot be read: {error.strerror}"),))
    facts = read(files)[0]
    outside = tuple(FileProblem("", one.message.replace(f"{root}/", "")) for one in found)
    return AdapterFacts(facts.rank, facts.base, facts.layers, facts.shapes, (*outside, *facts.problems))


def check(root: Path, files: Mapping[str, Path], where: str) -> tuple[int, list[Problem]]:
    """The bytes of an adapter's weights, and every problem with its files. Of the weights, only the header is read."""
    facts, weight_bytes = read(files)
    return weight_bytes, [Problem(where, f"{root / one.file} {one.message}") for one in facts.problems]


def read(files: Mapping[str, Path]) -> tuple[AdapterFacts, int]:
    """The facts of an adapter with these files, by their path in its directory, and the bytes of its weights."""
    problems: list[FileProblem] = []
    config: dict[str, Any] = {}
    if ADAPTER_CONFIG in files:
        config, mistake = shards.read_json(files[ADAPTER_CONFIG])
        found = [mistake] if mistake else list(_mistakes(config))
        problems += [FileProblem(ADAPTER_CONFIG, message) for message in found]
    else:
        problems.append(
            FileProblem(ADAPTER_CONFIG, "is missing: an adapter needs its configuration, as PEFT writes it")
        )
    tensors: Mapping[str, safetensors.Tensor] = {}
    weight_bytes = 0
    if WEIGHTS in files:
        try:
            header = safetensors.read(files[WEIGHTS])
            tensors, weight_bytes = header.tensors, header.weight_bytes
            if not any(_TENSOR.fullmatch(name) for name in tensors):
                problems.append(FileProblem(WEIGHTS, "has no weights of LoRA, which end in lora_A.weight"))
        except safetensors.SafetensorsError as error:
            problems.append(FileProblem(WEIGHTS, str(error)))
        except OSError as error:
            problems.append(FileProblem(WEIGHTS, shards.unreadable(error)))
    else:
        message = "is missing: an adapter needs its weights as safetensors"
        problems.append(FileProblem(WEIGHTS, message))
    ranks = [*_ranks(config), *(one.shape[0] for name, one in tensors.items() if _side(name) == "A" and one.shape)]
    # int() raises ValueError for thousands of digits.
    numbers = [int(layer[1][:12]) for name in tensors if not TOWER.search(name) and (layer := _LAYER.search(name))]
    facts = AdapterFacts(
        rank=max(ranks, default=None),
        base=str(config.get("base_model_name_or_path") or ""),
        layers=max(numbers, default=-1) + 1,
        shapes=_shapes(tensors),
        problems=tuple(problems),
    )
    return facts, weight_bytes


def _mistakes(config: Mapping[str, Any]) -> Iterator[str]:
    """The parts of a configuration that the engine cannot serve."""
    if config.get("peft_type", METHOD) != METHOD:
        yield f"has peft_type {config['peft_type']!r}: the engine serves only {METHOD}"
    if not _ranks(config):
        yield f"has r {config.get('r')!r}: the rank must be a whole number from 1"
    for key in ("lora_alpha", "target_modules"):
        if not config.get(key):
            yield f"has no {key}"
    if config.get("bias", "none") != "none":
        yield f"has bias {config['bias']!r}: the engine serves adapters without bias"
    for key in UNSUPPORTED:
        if config.get(key):
            yield f"has {key}, which the engine does not serve: merge the adapter into the weights of the base"
    saved = config.get("modules_to_save")
    if saved and not (isinstance(saved, list) and SAVED.issuperset(map(str, saved))):
        yield f"has modules_to_save {saved!r}: the engine takes only {', '.join(sorted(SAVED))}"
    start = config.get("init_lora_weights")
    if isinstance(start, str) and start.lower() not in INITIALISATIONS:
        yield (
            f"has init_lora_weights {start!r}, which changes the base: convert the adapter with PEFT's "
            "path_initial_model_for_weight_conversion"
        )


def _ranks(config: Mapping[str, Any]) -> list[int]:
    pattern = config.get("rank_pattern")
    values = [config.get("r"), *(pattern.values() if isinstance(pattern, dict) else ())]
    return [value for value in values if is_integer(value) and value > 0]


def _side(name: str) -> str:
    found = _TENSOR.fullmatch(name)
    return found["side"] if found else ""


def _shapes(tensors: Mapping[str, safetensors.Tensor]) -> tuple[tuple[str, int, int], ...]:
    """Modules with both of their matrices. Experts have other forms, and are left out."""
    sizes: dict[str, dict[str, int]] = {}
    for name, tensor in tensors.items():
        found = _TENSOR.fullmatch(name)
        if found and len(tensor.shape) == 2 and _LAYER.search(name) and ".experts" not in name:
            # A has rank x inputs, B has outputs x rank.
            sizes.setdefault(found["module"], {})[found["side"]] = tensor.shape[1 if found["side"] == "A" else 0]
    return tuple(
        sorted({(_path(module), both["A"], both["B"]) for module, both in sizes.items() if both.keys() == {"A", "B"}})
    )


def _path(module: str) -> str:
    """The full path of a module, such as `model.layers.mlp.up_proj`: without the layer's number and PEFT's prefix."""
    return re.sub(r"\.layers\.\d+\.", ".layers.", module.removeprefix("base_model.model."))
