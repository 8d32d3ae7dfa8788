# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Computes how the memory of each device is divided into weights, overhead and KV cache. Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..config.facts import ModelFacts
from ..flags.variables import CPU_CACHE
from . import cache as kv
from . import drafts, lora
from . import overhead as work
from .abilities import engine_dtype
from .cache import Cache
from .devices import Device
from .drafts import NO_DRAFT, Draft
from .flags import AUTO, Flags, count
from .overhead import GIB, MIB
from .share import WHOLE, Share
from .weights import bytes_per_gpu


@dataclass(frozen=True)
class Estimate:
    """The memory of an instance, in GiB on the GPU with the most to store; None if unknown.

    `budget_gib` is the memory of a GPU that the engine may take, and `kv_cache_gib` its remainder for the KV cache.
    `spare_gib` is the KV cache minus one request of `max_model_len` tokens; it is negative if the request does not fit.
    `kv_cache_tokens` and `max_concurrency` are sums over all data-parallel ranks, for requests of full length.
    `draft_gib` is the memory of the draft model, `adapters_gib` the reserved memory for LoRA adapters.
    """

    budget_gib: float | None = None
    weights_gib: float | None = None
    draft_gib: float | None = 0
    adapters_gib: float | None = 0
    overhead_gib: float | None = None
    kv_cache_gib: float | None = None
    kv_cache_tokens: int | None = None
    max_model_len: int | None = None
    max_concurrency: float | None = None
    spare_gib: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Division:
    """The division of a device's memory in bytes, for the checks; None if unknown."""

    weights: int | None
    draft: int | None
    adapters: int | None
    overhead: int | None
    budget: int | None
    available: int | None
    cache: Cache | None
    length: int | None
    explicit: bool
    """Whether a flag or variable sets the size of the cache, so the utilization does not matter."""

    @property
    def held(self) -> int:
        """Sum of the known parts without the KV cache, in bytes."""
        return sum(part or 0 for part in (self.weights, self.draft, self.adapters, self.overhead))

    @property
    def needed(self) -> int | None:
        """Bytes of KV cache for one request of full length."""
        return self.cache.needed(self.length) if self.cache and self.length else None

    def estimate(self, ranks: int) -> Estimate:
        """The estimate for the operator, for this number of data-parallel ranks."""
        concurrency = None
        if self.cache and self.length and self.available is not None:
            concurrency = self.cache.concurrency(self.available, self.length) * ranks
        needed = self.needed
        known = self.available is not None and needed is not None
        return Estimate(
            budget_gib=_gib(self.budget),
            weights_gib=_gib(self.weights),
            draft_gib=_gib(self.draft),
            adapters_gib=_gib(self.adapters),
            overhead_gib=_gib(self.overhead),
            kv_cache_gib=_gib(None if self.available is None else max(0, self.available)),
            kv_cache_tokens=None if concurrency is None else int(concurrency * (self.length or 0)),
            max_model_len=self.length,
            max_concurrency=None if concurrency is None else round(concurrency, 2),
            spare_gib=_gib((self.available or 0) - (needed or 0)) if known else None,
        )


def _gib(size: int | None) -> float | None:
    return None if size is None else round(size / GIB, 2)


def divide(
    facts: ModelFacts,
    flags: Flags,
    device: Device,
    environment: Mapping[str, str],
    draft: Draft = NO_DRAFT,
    share: Share = WHOLE,
) -> Division:
    """Divide the memory of `device`, the smallest of the used devices of the node with this share.

    For a GPU, budget = --gpu-memory-utilization x memory, and the cache is the budget minus all other parts
    (determine_available_memory in vLLM 0.32.0, vllm/v1/worker/gpu_worker.py). If the size of the cache is set, the
    utilization does not matter.
    """
    config = facts.config
    dtype = engine_dtype(config, flags, device)
    if dtype is None:
        return Division(None, None, None, None, None, None, None, None, False)
    weights = bytes_per_gpu(facts.weights, config, flags, device, dtype, share) if facts.weights else None
    draft_weights = drafts.weight_bytes(facts, draft, flags, device, dtype)
    adapters = lora.reserved(config, flags, dtype)
    longest = config.max_length if flags.max_model_len in (None, AUTO) else flags.max_model_len
    length = config.default_length if flags.max_model_len is None else longest
    size = work.batch(flags, device, length or 1)
    known = config.hidden_size and config.vocabulary_size
    overhead = work.overhead(config, flags, device, dtype, size) if known else None
    given = explicit_cache(flags, device, environment)
    memory = None if device.memory_mib is None else device.memory_mib * MIB
    budget = available = given
    if given is None:
        budget = None if memory is None else int(memory * flags.gpu_memory_utilization)
        if None not in (budget, weights, draft_weights, adapters, overhead):
            available = (budget or 0) - sum(part or 0 for part in (weights, draft_weights, adapters, overhead))
    elif memory is not None:
        budget = memory
    cache = kv.layout(config, flags, dtype, size.tokens, device.is_cpu)
    token = drafts.cache_bytes(facts, draft, flags, dtype)
    cache = None if cache is None or token is None else cache.with_draft(token)
    if flags.max_model_len == AUTO and cache and longest and available is not None:
        length = cache.longest(available, longest) or longest
    return Division(weights, draft_weights, adapters, overhead, budget, available, cache, length, given is not None)


def explicit_cache(flags: Flags, device: Device, environment: Mapping[str, str]) -> int | None:
    """The bytes of KV cache for each device that a variable or flag sets; None if the size must be computed."""
    asked = str(environment.get(CPU_CACHE) or "")
    if device.is_cpu and (space := count(asked)):
        return space * GIB
    return flags.kv_cache_memory_bytes
