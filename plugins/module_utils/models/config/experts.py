# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the experts of a model. Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .values import Reader, as_dict, as_list, positive


@dataclass(frozen=True)
class Experts:
    """Mixture of experts. `layers` is the number of layers with experts, None if unknown.

    If the configuration lists the kinds of layers (`block_configs`, `hybrid_override_pattern`), all layers count. Then
    no check needs the size of dense feed-forwards, which such a model may lack.
    """

    count: int
    per_token: int | None = None
    intermediate_size: int | None = None
    shared_intermediate_size: int | None = None
    layers: int | None = None


def experts_of(text: Mapping[str, Any], read: Reader, layers: int | None) -> Experts | None:
    """The experts in a configuration; None without experts."""
    count = read.size("num_experts", "moe_num_experts", "n_routed_experts", "num_local_experts") or _of_blocks(text)
    if count is None:
        return None
    # In Mixtral and gpt-oss, intermediate_size is the size of the experts.
    size = read.size("moe_intermediate_size") or read.size("intermediate_size")
    shared = read.size("shared_expert_intermediate_size")
    if shared is None and size and (number := read.size("n_shared_experts")):
        shared = number * size
    return Experts(
        count=count,
        per_token=read.size("num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_topk", "moe_top_k"),
        intermediate_size=size,
        shared_intermediate_size=shared,
        layers=_expert_layers(text, layers),
    )


def _of_blocks(text: Mapping[str, Any]) -> int | None:
    """The most experts of a block, for an architecture whose blocks differ."""
    blocks = [as_dict(block) for block in as_list(text.get("block_configs"))]
    counts = (positive(block.get("n_routed_experts")) for block in blocks if block.get("block_type") == "moe")
    return max(filter(None, counts), default=None)


def _expert_layers(text: Mapping[str, Any], layers: int | None) -> int | None:
    """The number of layers with experts. DeepSeek's first layers are dense. Qwen lists dense layers, or gives a step:
    then only every step-th layer has experts. MiMo has a list with 0 for each dense layer."""
    if layers is None:
        return None
    dense = set(range(min(positive(text.get("first_k_dense_replace")) or 0, layers)))
    dense |= {index for index in as_list(text.get("mlp_only_layers")) if isinstance(index, int)}
    dense |= {index for index, has_experts in enumerate(as_list(text.get("moe_layer_freq"))) if not has_experts}
    steps = ("decoder_sparse_step", "moe_layer_freq", "interleave_moe_layer_step")
    step = next((found for key in steps if (found := positive(text.get(key)))), 1)
    return sum(index not in dense and (index + 1) % step == 0 for index in range(layers))
