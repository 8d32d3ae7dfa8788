# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Computes the bytes of a model's weights in the engine, and how they can be split. Private to the collection.

Tensors are distinguished by the names of transformers, which the engine also uses.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from ..safetensors import BITS, Tensor
from .config import MAX_LAYERS, Config

LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks|decoder_layers)\.(\d+)\.")

OTHER_PART = re.compile(
    r"(?:^|\.)(?:vision\w*|visual|audio\w*|image\w*|speech\w*|multi_modal_projector|mm_projector|vit|connector)\."
)
"""Parts for images and sound. Their layers do not count as layers of the language part."""

EMBEDDING = re.compile(r"(?:^|\.)(?:embed_tokens|wte|word_embeddings|tok_embeddings|embed_in)\.")
HEAD = re.compile(r"(?:^|\.)(?:lm_head|embed_out)\.")

PREDICTION = re.compile(r"(?:^|\.)mtp\.")
"""Layers that predict several tokens at once. The engine loads them only for speculative decoding."""

NOT_LOADED = re.compile(r"rotary_emb\.(?:inv_freq|cos_cached|sin_cached)$|\.attn\.(?:bias|masked_bias)$")
"""Buffers in old checkpoints that the engine computes itself (skipped in load_weights, vllm/model_executor/models)."""

EXPERT = re.compile(r"\.(?:experts|moe)\.")

KV_PROJECTION = re.compile(r"\.(?:k_proj|v_proj)\.")

REPLICATED = re.compile(
    r"norm|\.(?:gate|router|q_a_proj|kv_a_proj_with_mqa|shared_expert_gate)\.|\.g_idx$|rotary|\.indexer\."
)
"""Tensors of which every tensor-parallel rank has a full copy, such as norms, routers, and the first half of MLA's
projections (ReplicatedLinear in vllm/model_executor/models/deepseek_v2.py, qwen3_moe.py)."""

QUANTIZED = re.compile(r"\.(?:qweight|weight_packed)$|_blocks$")
"""Tensors of integers that contain several weights each."""

NO_PARAMETERS = re.compile(
    r"scale|\.(?:qzeros|scales|g_idx|zeros|weight_shape|weight_zero_point|weight_g_idx)$|_scales$"
)
"""Tensors that a quantization adds. They take memory, but are not parameters of the model."""


NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Parts:
    """Bytes of the weights by how they are split. `layers` has one value for each layer.

    `replicated`, `kv_projections` and `experts` are parts of all layers together: replicated on each tensor-parallel
    rank, split only by KV heads, and split by experts. `rest` is outside of the layers.
    """

    embedding: int = 0
    head: int = 0
    layers: tuple[int, ...] = ()
    replicated: int = 0
    kv_projections: int = 0
    experts: int = 0
    rest: int = 0

    @property
    def total(self) -> int:
        return self.embedding + self.head + sum(self.layers) + self.rest


@dataclass(frozen=True)
class Weights:
    """Bytes and parameters that the engine loads, also by dtype of the files.

    `unused_bytes` are in the files, but not loaded, such as a head that is tied to the embedding, and layers only for
    speculative decoding. `measured` is False if the sizes were computed from the configuration, without files.
    """

    bytes: int
    parameters: int
    by_dtype: Mapping[str, int] = field(default_factory=dict)
    unused_bytes: int = 0
    parts: Parts = field(default_factory=Parts)
    measured: bool = True


@dataclass(frozen=True)
class Place:
    """The place of a tensor: whether in a layer, and the field of Parts, empty for a tensor that is split over all
    ranks."""

    in_layer: bool
    part: str
    loaded: bool = True


@lru_cache(maxsize=10_000)
def _place(name: str) -> Place:
    """The place of a tensor. All numbers in `name` are replaced by 0, so that the cache has few entries for a hundred
    thousand tensors."""
    loaded = not (PREDICTION.search(name) or NOT_LOADED.search(name))
    if OTHER_PART.search(name):
        return Place(False, "rest", loaded)
    if not LAYER.search(name):
        return Place(False, "embedding" if EMBEDDING.search(name) else "head" if HEAD.search(name) else "rest", loaded)
    if REPLICATED.search(name):
        return Place(True, "replicated", loaded)
    if EXPERT.search(name):
        return Place(True, "experts", loaded)
    return Place(True, "kv_projections" if KV_PROJECTION.search(name) else "", loaded)


def weigh(tensors: Mapping[str, Tensor], config: Config) -> Weights | None:
    """The sum of a model's tensors; None without tensors."""
    if not tensors:
        return None
    places = {name: _place(NUMBER.sub("0", name)) for name in tensors}
    tied = config.tied_embeddings is True and any(place.part == "embedding" for place in places.values())
    limit = config.layers or MAX_LAYERS
    layers: dict[int, int] = {}
    sizes = dict.fromkeys(("embedding", "head", "replicated", "kv_projections", "experts", "rest"), 0)
    by_dtype: dict[str, int] = {}
    unused = parameters = 0
    for name, tensor in tensors.items():
        place, size = places[name], tensor.end - tensor.begin
        found = LAYER.search(name) if place.in_layer else None
        # int() raises ValueError for thousands of digits.
        layer = int(found[1][:12]) if found else None
        if not place.loaded or (tied and place.part == "head") or (layer is not None and layer >= limit):
            unused += size
            continue
        if layer is not None:
            layers[layer] = layers.get(layer, 0) + size
        if place.part:
            sizes[place.part] += size
        by_dtype[tensor.dtype] = by_dtype.get(tensor.dtype, 0) + size
        parameters += _parameters(name, tensor, config)
    count = config.layers or max(layers, default=-1) + 1
    return Weights(
        bytes=sum(by_dtype.values()),
        parameters=parameters,
        by_dtype=dict(sorted(by_dtype.items())),
        unused_bytes=unused,
        parts=Parts(layers=tuple(layers.get(layer, 0) for layer in range(count)), **sizes),
    )


def _parameters(name: str, tensor: Tensor, config: Config) -> int:
    """The number of the model's weights in a tensor."""
    if NO_PARAMETERS.search(name):
        return 0
    elements = math.prod(tensor.shape)
    bits = config.quantization.bits if config.quantization else None
    packed = QUANTIZED.search(name) or (tensor.dtype == "U8" and name.endswith("weight"))
    if bits and packed and tensor.dtype in BITS and tensor.dtype[0] in "IU":
        return elements * BITS[tensor.dtype] // bits
    return elements
