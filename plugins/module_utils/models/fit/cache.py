# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Computes the KV cache of a request, and how many requests fit. Private to the collection.

The engine divides its cache into blocks of the same size in bytes, each with some tokens of some layers, and assigns
blocks to requests (vLLM 0.32.0, vllm/v1/core/kv_cache_utils.py). Layers that keep the same tokens form groups. With
layers of several kinds, each group usually has as many layers as the rarest kind
(_get_kv_cache_groups_uniform_page_size).
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
"""Tokens of a block without --block-size (vllm/config/cache.py, vllm/platforms/cpu.py). Backends with larger blocks
only change the rounding."""

FEW_MORE = 1.5
"""If the more frequent kind has fewer than FEW_MORE times the layers of the rarer kind, each group has as many layers
as the more frequent kind."""


@dataclass(frozen=True)
class Cache:
    """The division of one GPU's cache into blocks.

    `full_groups` keep every token of a request, `sliding_groups` at most `window_tokens`. A block has `block_tokens`
    tokens of one group's layers, and `block_bytes` on this GPU. Blocks of sliding layers with heads of another size
    have `sliding_block_tokens`. Each of `state_groups` takes one block for a request of any length.
    """

    block_tokens: int
    block_bytes: int
    full_groups: int
    sliding_groups: int
    window_tokens: int
    sliding_block_tokens: int | None = None
    state_groups: int = 0

    def blocks(self, length: int) -> int:
        """Blocks of a request of `length` tokens (max_memory_usage_bytes in vllm/v1/kv_cache_interface.py)."""
        full = math.ceil(length / self.block_tokens)
        # One more block, because a window may start in the middle of a block.
        tokens = self.sliding_block_tokens or self.block_tokens
        sliding = math.ceil(min(self.window_tokens, length) / tokens) + 1
        return self.full_groups * full + self.sliding_groups * sliding + self.state_groups

    def needed(self, length: int) -> int:
        """Bytes for one request of `length` tokens, with the block that the engine reserves."""
        return (self.blocks(length) + 1) * self.block_bytes

    def with_draft(self, token_bytes: int) -> Cache:
        """The cache with the layers of a draft model. These layers keep `token_bytes` for each token of a request.

        If all layers keep every token, the draft's layers use the same blocks, which become larger. Otherwise the
        draft's layers form groups of their own, each as large as the others.
        """
        if not token_bytes:
            return self
        more = self.block_tokens * token_bytes
        if self.full_groups == 1 and not self.sliding_groups and not self.state_groups:
            return replace(self, block_bytes=self.block_bytes + more)
        return replace(self, full_groups=self.full_groups + math.ceil(more / self.block_bytes))

    def concurrency(self, available: int, length: int) -> float:
        """Requests of `length` tokens that fit into `available` bytes (get_max_concurrency_for_kv_cache_config)."""
        return max(0, available) // self.block_bytes / self.blocks(length)

    def longest(self, available: int, limit: int) -> int:
        """The longest request that fits into `available` bytes, up to a limit; 0 if no token fits."""
        return largest(lambda length: self.needed(length) <= available, limit)


def largest(fits: Callable[[int], bool], limit: int) -> int:
    """The largest number from 1 to a limit that fits, if all smaller numbers fit, too; 0 if none fits."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def bytes_per_token_and_layer(config: Config, flags: Flags, dtype: str, heads: Heads | None = None) -> int | None:
    """Bytes of cache for one token in one layer on one GPU. None if the model or the kind of cache is unknown.

    Keys and values of each KV head: 2 x heads x size. Each GPU has at least one head. So with more GPUs than heads,
    heads are repeated, and the cache does not shrink further (get_num_kv_heads in vllm/config/model.py).

    MLA keeps one latent vector and one key with positions, both complete on every GPU (MLAAttentionSpec in
    vllm/v1/kv_cache_interface.py). `heads` are the heads of layers that differ from the model's usual heads.
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
    """Bytes of one layer's state of one request on one GPU. Without a flag or a value in the configuration, its dtype
    is `dtype`."""
    asked = flags.mamba_cache_dtype
    cache = DTYPE_BYTES[asked] if asked in DTYPE_BYTES else DTYPE_BYTES[dtype]
    chosen = flags.mamba_ssm_cache_dtype if flags.mamba_ssm_cache_dtype in DTYPE_BYTES else state.dtype
    recurrence = DTYPE_BYTES[chosen] if chosen else cache
    return math.ceil((state.convolution * cache + state.recurrence * recurrence) / flags.tensor_parallel_size)


def layout(config: Config, flags: Flags, dtype: str, batch_tokens: int, on_cpu: bool) -> Cache | None:
    """The engine's division of its cache. None for layers of an unknown kind or size, and without any cache."""
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
    # All blocks have the same size. Layers with fewer bytes for a token have more tokens in a block.
    per_token = [size for layers, size in ((full, per_full), (sliding, per_sliding)) if layers and size]
    page = block * max(per_token, default=0)
    if states and config.state:
        state = state_bytes(config.state, flags, dtype)
        page = page * max(1, math.ceil(state / page)) if page else state
    if not page:
        return None
    # The stage with the most layers. Layers of each kind are distributed evenly.
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
    """The number of layers in a group."""
    there = [layers for layers in kinds if layers]
    few, many = min(there, default=0), max(there, default=0)
    return many if many < few * FEW_MORE else few


def _batches(flags: Flags, on_cpu: bool) -> int:
    """Batches in progress: one for each pipeline stage, and one more if the engine prepares the next batch meanwhile
    (max_concurrent_batches in vllm/config/vllm.py). Tokens outside of the window stay until their batch ends."""
    return flags.pipeline_parallel_size + (flags.async_scheduling and not on_cpu)
