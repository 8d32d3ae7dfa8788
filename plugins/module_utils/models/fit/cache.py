# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The KV cache: how large a request's is, and how many fit. Private to the collection.

The engine cuts its cache into blocks of some tokens for some layers, all of one size in bytes, and gives them to
requests (vLLM 0.32.0, vllm/v1/core/kv_cache_utils.py). Layers that keep the same tokens form a group; with layers of
two kinds, groups have as many layers as there are of the rarer kind (_get_kv_cache_groups_uniform_page_size).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from ..config.config import Config
from ..config.heads import Heads
from ..config.state import State
from .capabilities import DTYPE_BYTES, KV_BYTES
from .flags import Flags
from .weights import stages

GPU_BLOCK, CPU_BLOCK, CPU_MLA_BLOCK = 16, 128, 16
"""Tokens of a block without --block-size (vllm/config/cache.py, vllm/platforms/cpu.py). Backends that want larger ones
change the rounding alone."""

FEW_MORE = 1.5
"""With less than this times as many layers of the other kind, groups take the larger number of layers."""


@dataclass(frozen=True)
class Cache:
    """How the cache of one GPU is cut. `full_groups` keep every token of a request, `sliding_groups` no more than
    `window_tokens`. A block is `block_tokens` tokens of one group's layers, `block_bytes` on this GPU.
    Layers whose heads are of another size have blocks of `sliding_block_tokens`. Each of `state_groups` takes one block
    for a request, however long."""

    block_tokens: int
    block_bytes: int
    full_groups: int
    sliding_groups: int
    window_tokens: int
    sliding_block_tokens: int | None = None
    state_groups: int = 0

    def blocks(self, length: int) -> int:
        """Blocks of a request of so many tokens (max_memory_usage_bytes in vllm/v1/kv_cache_interface.py)."""
        full = math.ceil(length / self.block_tokens)
        # One more, for a window may begin in the middle of a block.
        tokens = self.sliding_block_tokens or self.block_tokens
        sliding = math.ceil(min(self.window_tokens, length) / tokens) + 1
        return self.full_groups * full + self.sliding_groups * sliding + self.state_groups

    def needed(self, length: int) -> int:
        """Bytes for one request of so many tokens, with the block that the engine keeps back."""
        return (self.blocks(length) + 1) * self.block_bytes

    def beside(self, token_bytes: int) -> Cache:
        """The cache with layers of a draft, in which each token of a request leaves so many bytes.

        Where all layers keep every token, those of a draft have a part in the same blocks. Else they are groups of
        their own, each as large as the others.
        """
        if not token_bytes:
            return self
        more = self.block_tokens * token_bytes
        if self.full_groups == 1 and not self.sliding_groups and not self.state_groups:
            return replace(self, block_bytes=self.block_bytes + more)
        return replace(self, full_groups=self.full_groups + math.ceil(more / self.block_bytes))

    def concurrency(self, available: int, length: int) -> float:
        """Requests of so many tokens that this many bytes hold (get_max_concurrency_for_kv_cache_config)."""
        return max(0, available) // self.block_bytes / self.blocks(length)

    def longest(self, available: int, limit: int) -> int:
        """The longest request that this many bytes hold, up to a limit; 0 where not even one token fits."""
        return largest(lambda length: self.needed(length) <= available, limit)


def largest(fits: Callable[[int], bool], limit: int) -> int:
    """The largest number from 1 to a limit that fits, where all smaller ones fit as well; 0 where none does."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def bytes_per_token_and_layer(config: Config, flags: Flags, dtype: str, heads: Heads | None = None) -> int | None:
    """Bytes that one token leaves in one layer on one GPU. None where the model or the kind of cache is not known.

    Keys and values of each KV head: 2 x heads x size. At least one head is on each GPU, so that beyond as many GPUs as
    heads the cache is repeated and no longer shrinks (get_num_kv_heads in vllm/config/model.py). MLA keeps one latent
    vector and one key with positions, whole on every GPU (MLAAttentionSpec in vllm/v1/kv_cache_interface.py). `heads`
    are those of layers that have others than the model tells.
    """
    kind = flags.kv_cache_dtype
    size = DTYPE_BYTES[dtype] if kind == "auto" else KV_BYTES.get(kind)
    if size is None:
        return None
    if config.mla:
        return (config.mla.kv_lora_rank + config.mla.qk_rope_head_dim) * size
    count, width = (heads.count, heads.size) if heads else (config.kv_heads, config.head_size)
    if not count or not width:
        return None
    return 2 * max(1, count // flags.tensor_parallel_size) * width * size


def state_bytes(state: State, flags: Flags, dtype: str) -> int:
    """Bytes that one layer's state of one request takes on one GPU. The engine has it in its own dtype where neither
    flag nor configuration tells another."""
    asked = flags.mamba_cache_dtype
    cache = DTYPE_BYTES[asked] if asked in DTYPE_BYTES else DTYPE_BYTES[dtype]
    told = flags.mamba_ssm_cache_dtype if flags.mamba_ssm_cache_dtype in DTYPE_BYTES else state.dtype
    recurrence = DTYPE_BYTES[told] if told else cache
    return math.ceil((state.convolution * cache + state.recurrence * recurrence) / flags.tensor_parallel_size)


def layout(config: Config, flags: Flags, dtype: str, batch_tokens: int, on_cpu: bool) -> Cache | None:
    """How the engine will cut its cache. None for a model whose layers keep something else, or are not known."""
    attention = config.attention
    if attention is None or attention.other_layers or (attention.state_layers and config.state is None):
        return None
    per_full = bytes_per_token_and_layer(config, flags, dtype, config.full_heads)
    per_sliding = bytes_per_token_and_layer(config, flags, dtype, config.sliding_heads)
    full, sliding, states = attention.full_layers, attention.sliding_layers, attention.state_layers
    if (full and per_full is None) or (sliding and per_sliding is None):
        return None
    if full and flags.disable_hybrid_kv_cache_manager:
        full, sliding = full + sliding, 0
    group = _group_layers(full, sliding, states)
    if not group:
        return None
    block = flags.block_size or (GPU_BLOCK if not on_cpu else CPU_MLA_BLOCK if config.mla else CPU_BLOCK)
    # All blocks are of one size: layers that leave less of a token have more tokens in a block.
    leave = [size for layers, size in ((full, per_full), (sliding, per_sliding)) if layers and size]
    page = block * max(leave, default=0)
    if states and config.state:
        state = state_bytes(config.state, flags, dtype)
        page = page * math.ceil(state / page) if page else state
    # The stage with the most layers; layers of each kind are dealt out evenly.
    layers = max(stages(group, flags.pipeline_parallel_size))
    return Cache(
        block_tokens=page // per_full if full and per_full else block,
        block_bytes=layers * page,
        full_groups=math.ceil(full / group),
        sliding_groups=math.ceil(sliding / group),
        window_tokens=(config.sliding_window or 1) - 1 + _batches(flags, on_cpu) * batch_tokens,
        sliding_block_tokens=page // per_sliding if sliding and per_sliding else None,
        state_groups=math.ceil(states / group),
    )


def _group_layers(*kinds: int) -> int:
    """Layers of a group."""
    there = [layers for layers in kinds if layers]
    few, many = min(there, default=0), max(there, default=0)
    return many if many < few * FEW_MORE else few


def _batches(flags: Flags, on_cpu: bool) -> int:
    """Batches under way at once: one for each pipeline stage, and one more where the next one is prepared meanwhile
    (max_concurrent_batches in vllm/config/vllm.py). Tokens that left the window stay until their batch is done."""
    return flags.pipeline_parallel_size + (flags.async_scheduling and not on_cpu)
