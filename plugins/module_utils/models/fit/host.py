# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Estimates the host's memory that an engine takes, without the memory of its GPUs. Private to the collection. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..config.facts import ModelFacts
from . import flags as engine_flags
from .abilities import engine_dtype
from .capabilities import DTYPE_BYTES
from .devices import Device
from .flags import Flags
from .memory import explicit_cache
from .overhead import GIB, MIB

GPU_PROCESS = 8 * GIB
"""Assumed, and too high rather than too low: Python, torch, CUDA and pinned buffers of a process that compiles."""

CPU_PROCESS = 4 * GIB
"""Assumed for a process on processors. Measured with vLLM 0.32: 1.9 GB for both processes, with a tiny model."""

LOADING = 0.1
"""Assumed: the share of weights and cache that comes on top while an engine loads."""


@dataclass(frozen=True)
class HostMemory:
    """Parts of the host's memory that one engine takes, in bytes. `weights` is None if unknown."""

    weights: int | None
    offloaded: int
    """KV cache and weights that flags of a GPU engine put into the host's memory."""
    cache: int
    """The KV cache of an engine on processors."""
    certain: bool
    """Whether `cache` is a given size. Otherwise it is the most that the engine would take, and less may be enough."""
    shared: int
    processes: int

    @property
    def least(self) -> int:
        """Without this, the engine does not load."""
        return (self.weights or 0) + self.offloaded + (self.cache if self.certain else 0)

    @property
    def needed(self) -> int | None:
        """Enough for a load, and for full use. None if unknown."""
        if self.weights is None:
            return None
        held = self.weights + self.offloaded + self.cache
        return round(held * (1 + LOADING)) + self.shared + self.processes


def estimate(
    facts: ModelFacts,
    draft: ModelFacts | None,
    entry: Mapping[str, Any],
    device: Device,
    environment: Mapping[str, str],
    shared: int,
    nodes: int = 1,
) -> HostMemory:
    """The memory of the host that an engine with the flags `entry` takes; `shared` is the size of its /dev/shm.
    With several `nodes`, the memory of one node: its share of the ranks and of --kv-offloading-size, and all weights.

    needed = 1.1 x (weights + offloaded + cache) + shared + processes, where

    - weights: every page of the files that an engine reads counts for its container (memory.stat of cgroup v2, `file`);
      an engine on processors holds them in its own dtype;
    - offloaded: --kv-offloading-size is the sum over all ranks in GiB (vllm/config/cache.py of vLLM 0.32.0),
      --cpu-offload-gb is for each GPU (vllm/config/offload.py);
    - cache: on processors, CPU_CACHE of models/flags/variables.py or --kv-cache-memory-bytes for each rank; else
      --gpu-memory-utilization of the memory of a NUMA node for each rank, less the weights (vllm/platforms/cpu.py);
    - shared: files in /dev/shm count for the container (memory.stat, `shmem`);
    - processes: one for each rank and for each server, of which there are --api-server-count, else one for each
      data-parallel rank; in models with images or sound, --mm-processor-cache-gb for each server and each data-parallel
      rank (vllm/config/multimodal.py).
    """
    flags = engine_flags.read(entry)[0]
    ranks = max(1, flags.world_size // nodes)
    sizes = [_weights(each, flags, device) for each in (facts, draft) if each is not None]
    weights = None if None in sizes or not sizes else sum(size or 0 for size in sizes)
    servers = flags.api_server_count or flags.data_parallel_size
    processes = (GPU_PROCESS if not device.is_cpu else CPU_PROCESS) * (ranks + servers)
    if facts.config.modalities:
        processes += round(flags.mm_processor_cache_gb * GIB) * (servers + flags.data_parallel_size)
    given = explicit_cache(flags, device, environment) if device.is_cpu else 0
    cache = (given or 0) * ranks
    if given is None:
        budget = round((device.memory_mib or 0) * MIB * flags.gpu_memory_utilization) * ranks
        cache = max(0, budget - (weights or 0))
    offloaded = 0 if device.is_cpu else round((flags.kv_offloading_size / nodes + flags.cpu_offload_gb * ranks) * GIB)
    return HostMemory(weights, offloaded, cache, given is not None, shared, processes)


def _weights(facts: ModelFacts, flags: Flags, device: Device) -> int | None:
    """Bytes of a model's weights in the host's memory; None if unknown."""
    weights = facts.weights
    if weights is None:
        return None
    dtype = engine_dtype(facts.config, flags, device) if device.is_cpu and not facts.config.quantization else None
    return max(weights.bytes, weights.parameters * DTYPE_BYTES[dtype]) if dtype else weights.bytes
