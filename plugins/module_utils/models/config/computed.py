# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Computes the size of a model's weights from its configuration, without its files. Private to the collection.

Only for known types of models, whose layers have attention with four projections or MLA, and a feed-forward of two or
three matrices, dense or with experts. For other types, the size is unknown.
"""

from __future__ import annotations

from .config import Config
from .latent import Mla
from .weights import Parts, Weights

GATED = frozenset(
    {
        *("axk1", "bitnet", "cohere", "cohere2", "cohere2_moe", "cwm", "deepseek_v2", "deepseek_v3", "deepseek_v32"),
        *("diffllama", "emu3", "ernie4_5", "exaone4", "flex_olmo", "gemma", "gemma2", "gemma3_text", "glm", "glm4"),
        *("glm4_moe", "glm_moe_dsa", "gpt_oss", "granite", "granite_swa", "granitemoe", "granitemoe_swa"),
        *("granitemoeshared", "helium", "hyperclovax", "kimi_k2", "llama", "mellum", "minimax_m2", "ministral3"),
        *("mistral", "mixtral", "olmo", "olmo2", "olmo3", "olmoe", "phi3", "phimoe", "qwen2", "qwen2_moe", "qwen3"),
        *("qwen3_moe", "seed_oss", "smollm3", "solar_open", "stablelm", "vaultgemma", "youtu"),
        # The language parts of models that also read images have the same layers.
        *("qwen2_vl_text", "qwen2_5_vl_text", "qwen3_vl_text", "qwen3_vl_moe_text"),
    }
)
"""Types whose feed-forwards have three matrices. The computed number of parameters differs by at most 0.4 % from their
classes in transformers 5.19."""

PLAIN = frozenset({"apertus", "arcee", "gpt_neox", "jais2", "lfm2", "nanochat", "persimmon", "phi", "starcoder2"})
"""Types whose feed-forwards have two matrices, with the same accuracy."""

KNOWN = GATED | PLAIN

EXPERTS_ONLY = frozenset({"mxfp4"})
"""Methods that quantize only the experts (modules_to_not_convert of gpt-oss)."""

SCALE_BYTES = 2
"""Bytes of a scale of GPTQ and AWQ. Each scale has a zero point with as many bits as a weight."""

BLOCK_SCALE_BYTES = 4
"""Bytes of a scale of block FP8."""

MXFP4_GROUP = 32
"""Weights that share a scale of one byte (OCP Microscaling Formats specification 1.0, section 5.3)."""

UNQUANTIZED_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}


def compute(config: Config) -> Weights | None:
    """The weights of a model with this configuration; None if unknown. Without biases, which are below 0.1 %."""
    layers, hidden, vocabulary = config.layers, config.hidden_size, config.vocabulary_size
    towers = config.tower_parameters
    if config.model_type not in KNOWN or towers is None or not layers or not hidden or not vocabulary:
        return None
    attention = _attention(config, hidden)
    matrices = 2 if config.model_type in PLAIN else 3
    dense = matrices * hidden * config.intermediate_size if config.intermediate_size else None
    experts = config.experts
    expert_layers = (experts.layers or 0) if experts else 0
    if attention is None or (dense is None and expert_layers < layers):
        return None
    split, replicated, kv_projections = attention
    expert = shared = router = 0
    if experts:
        if not experts.intermediate_size:
            return None
        expert = matrices * hidden * experts.intermediate_size * experts.count
        shared = matrices * hidden * (experts.shared_intermediate_size or 0)
        router = hidden * experts.count
    norms = 2 * hidden
    one = _unquantized(config)
    linear, experts_bytes = _linear(config), _expert(config)
    with_experts = round(
        (split + replicated + kv_projections + shared) * linear + expert * experts_bytes + (router + norms) * one
    )
    without = round((split + replicated + kv_projections + (dense or 0)) * linear + norms * one)
    # Dense layers count as the first ones, as in DeepSeek. Some models have them between layers with experts.
    by_layer = (without,) * (layers - expert_layers) + (with_experts,) * expert_layers
    table = vocabulary * hidden
    parts = Parts(
        embedding=table * one,
        head=0 if config.tied_embeddings else table * one,
        layers=by_layer,
        replicated=round(layers * (replicated * linear + norms * one) + expert_layers * router * one),
        kv_projections=round(layers * kv_projections * linear),
        experts=round(expert_layers * expert * experts_bytes),
        rest=(hidden + towers) * one,
    )
    parameters = (
        layers * (split + replicated + kv_projections + norms)
        + (layers - expert_layers) * (dense or 0)
        + expert_layers * (expert + shared + router)
        + table * (1 if config.tied_embeddings else 2)
        + hidden
        + towers
    )
    return Weights(parts.total, parameters, parts=parts, measured=False)


def _attention(config: Config, hidden: int) -> tuple[int, int, int] | None:
    """Parameters of one layer's attention: split over all ranks, replicated on each rank, split only by KV heads."""
    heads, kv_heads, size = config.attention_heads, config.kv_heads, config.head_size
    if not heads or not kv_heads or not size:
        return None
    if config.mla:
        return _latent(config.mla, hidden, heads)
    return 2 * hidden * heads * size, 0, 2 * hidden * kv_heads * size


def _latent(mla: Mla, hidden: int, heads: int) -> tuple[int, int, int] | None:
    """The same parts for MLA: each rank has all projections into the latent spaces; heads split the projections out."""
    nope, value = mla.qk_nope_head_dim, mla.v_head_dim
    if not nope or not value:
        return None
    query = mla.q_lora_rank
    query_out = (query or hidden) * heads * (nope + mla.qk_rope_head_dim)
    out = mla.kv_lora_rank * heads * (nope + value) + heads * value * hidden
    return query_out + out, hidden * (mla.kv_lora_rank + mla.qk_rope_head_dim) + hidden * (query or 0), 0


def _unquantized(config: Config) -> int:
    """Bytes of a weight that is not quantized. Without a dtype, the engine computes in 16 bits."""
    return UNQUANTIZED_BYTES.get(config.dtype or "", 2)


def _linear(config: Config) -> float:
    """Bytes of a weight in the matrices of a layer, with its share of the scales."""
    method = config.quantization
    if method is None or not method.bits or method.method in EXPERTS_ONLY:
        return _unquantized(config)
    size = method.bits / 8
    if method.block:
        return size + BLOCK_SCALE_BYTES / (method.block[0] * method.block[1])
    return size + (SCALE_BYTES + size) / method.group_size if method.group_size else size


def _expert(config: Config) -> float:
    """Bytes of a weight of an expert, with its share of the scales."""
    if config.quantization and config.quantization.method in EXPERTS_ONLY:
        return (config.quantization.bits or 4) / 8 + 1 / MXFP4_GROUP
    return _linear(config)
