# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Computes the memory for LoRA adapters on each GPU, which the engine reserves at its start. Private to the collection.

Source: vLLM 0.32.0, create_lora_weights in vllm/lora/layers. For each of `max-loras` adapters and each matrix, the
engine reserves a pair of matrices, of in-size x `max-lora-rank` and `max-lora-rank` x out-size:

- projections into heads and feed-forwards: the first matrix complete on each GPU, for each of the parts (query, key,
  value; gate, up); the second one divided by tensor-parallel-size (column_parallel_linear.py);
- projections out of them: the first matrix divided, the second one complete (base_linear.py, RowParallelLinear);
- experts: the same for each expert of which the GPU has a part (fused_moe.py);
- embedding and head, if the model's class names them: both complete (vocab_parallel_embedding.py, logits_processor.py).

With `fully-sharded-loras`, all complete matrices except those of embedding and head are divided, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..config.computed import GATED, KNOWN
from ..config.config import Config
from ..config.latent import Mla
from ..config.tasks import abilities
from .capabilities import DTYPE_BYTES
from .flags import Flags
from .misfit import ADAPTERS, Misfit
from .weights import stages

ENABLE, RANK = "enable-lora", "max-lora-rank"

LARGEST_VOCABULARY = 258_048
"""Largest vocabulary of a head that adapters can change, in tokens (logits_processor.py)."""

EMBEDDINGS = "adapted embeddings"
"""The word in ARCHITECTURES for classes that name embedding and head."""

_WAY = "remove the LoRA adapters that have this model as `base`"


def check(config: Config, flags: Flags) -> Iterator[Misfit]:
    """Misfits of adapters with this model."""
    words = abilities(config)
    if not flags.enable_lora or not words:
        return
    if "adapters" not in words:
        message = f"the engine has no adapters for {config.architectures[0]}: {_WAY}"
        yield Misfit(ADAPTERS, ENABLE, True, message)
    elif EMBEDDINGS in words and (config.vocabulary_size or 0) > LARGEST_VOCABULARY:
        message = f"adapters need a vocabulary of at most {LARGEST_VOCABULARY} tokens, this one has "
        message += f"{config.vocabulary_size}: {_WAY}"
        yield Misfit(ADAPTERS, ENABLE, True, message)


def reserved(config: Config, flags: Flags, dtype: str) -> int | None:
    """Bytes on the GPU with the most; 0 without adapters, None if the matrices of the layers are unknown."""
    if not flags.enable_lora:
        return 0
    layers, hidden = config.layers, config.hidden_size
    per_layer = _attention(config, flags)
    inner = _feed_forward(config, flags)
    if not layers or not hidden or per_layer is None or inner is None:
        return None
    experts = config.experts
    with_experts = min(layers, (experts.layers or 0) if experts else 0)
    # The stage with the most layers.
    share = max(stages(layers, flags.pipeline_parallel_size)) / layers
    values = share * (layers * per_layer + (layers - with_experts) * inner + with_experts * _experts(config, flags))
    if EMBEDDINGS in abilities(config):
        values += 2 * (hidden + (config.vocabulary_size or 0))
    size = DTYPE_BYTES.get(flags.lora_dtype) or DTYPE_BYTES[dtype]
    return round(values * flags.max_lora_rank * flags.max_loras * size)


def _into(flags: Flags, size: int, *outs: int) -> float:
    """Values of a column-parallel projection with these parts, for each unit of rank."""
    whole = len(outs) * size
    return (whole / flags.tensor_parallel_size if flags.fully_sharded_loras else whole) + sum(
        outs
    ) / flags.tensor_parallel_size


def _out_of(flags: Flags, size: int, out: int) -> float:
    """Values of a row-parallel projection, for each unit of rank."""
    ranks = flags.tensor_parallel_size
    return size / ranks + (out / ranks if flags.fully_sharded_loras else out)


def _attention(config: Config, flags: Flags) -> float | None:
    """Values of one layer's attention, for each unit of rank."""
    hidden, heads, kv_heads, size = config.hidden_size, config.attention_heads, config.kv_heads, config.head_size
    if config.model_type not in KNOWN or not hidden or not heads or not kv_heads or not size:
        return None
    if config.mla:
        return _latent(config.mla, hidden, heads, flags)
    # With more GPUs than KV heads, heads are repeated, not divided.
    keys = max(kv_heads, flags.tensor_parallel_size) * size
    return _into(flags, hidden, heads * size, keys, keys) + _out_of(flags, heads * size, hidden)


def _latent(mla: Mla, hidden: int, heads: int, flags: Flags) -> float | None:
    nope, value, query = mla.qk_nope_head_dim, mla.v_head_dim, mla.q_lora_rank
    if not nope or not value:
        return None
    out = heads * (nope + mla.qk_rope_head_dim)
    # Each GPU has the complete projections into the latent spaces (ReplicatedLinear).
    latent = hidden + mla.kv_lora_rank + mla.qk_rope_head_dim
    queries = hidden + query + _into(flags, query, out) if query else _into(flags, hidden, out)
    return (
        latent
        + queries
        + _into(flags, mla.kv_lora_rank, heads * (nope + value))
        + _out_of(flags, heads * value, hidden)
    )


def _feed_forward(config: Config, flags: Flags) -> float | None:
    """Values of one dense feed-forward, for each unit of rank; 0 if every layer has experts."""
    hidden, inner = config.hidden_size or 0, config.intermediate_size
    experts = config.experts
    if experts and experts.layers == config.layers:
        return 0
    if not inner:
        return None
    parts = (inner, inner) if config.model_type in GATED else (inner,)
    return _into(flags, hidden, *parts) + _out_of(flags, inner, hidden)


def _experts(config: Config, flags: Flags) -> float:
    """Values for one layer's experts on a GPU, its shared experts and its router, for each unit of rank."""
    experts, hidden = config.experts, config.hidden_size or 0
    if experts is None:
        return 0
    inner = experts.intermediate_size or 0
    parts = 2 if config.model_type in GATED else 1
    ranks = flags.tensor_parallel_size * flags.data_parallel_size
    whole = flags.enable_expert_parallel
    count, width = (-(-experts.count // ranks), float(inner)) if whole else (experts.count, inner / ranks)
    sharded = flags.tensor_parallel_size if flags.fully_sharded_loras and not whole else 1
    one = parts * (hidden / sharded + width) + width + hidden / sharded
    shared = experts.shared_intermediate_size or 0
    always = _into(flags, hidden, *[shared] * parts) + _out_of(flags, shared, hidden) if shared else 0
    return count * one + always + hidden + experts.count
