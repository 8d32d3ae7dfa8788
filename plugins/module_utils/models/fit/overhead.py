# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Estimates the memory that an engine needs besides weights and KV cache. Private to the collection.

The estimate is rather too high than too low.

The engine measures this memory when it starts, by a run with the largest batch and by capturing its graphs. No other
method is exact. The constants below marked as assumed are not computed.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..config.config import Config
from .capabilities import DTYPE_BYTES
from .devices import Device
from .flags import Flags

GIB = 1 << 30
MIB = 1 << 20

CONTEXT = GIB // 2
"""Assumed: the CUDA context with the engine's kernels, in bytes."""

COLLECTIVES = GIB // 2
"""Assumed: buffers of NCCL and of custom all-reduce, with several GPUs, in bytes."""

GRAPHS = GIB
"""Assumed: captured CUDA graphs, in bytes. Operators report 0.5 to 1.3 GiB."""

CPU_PROCESS = GIB
"""Assumed: Python and torch in the worker's process of a CPU engine, in bytes."""

HIDDEN_COPIES = 4
"""Assumed: hidden states that exist at once in a layer (residual, input, output, and one intermediate)."""

GATED_COPIES = 3
"""In a gated feed-forward, its two inner halves and their product exist at once."""

LOGIT_BYTES = 10
"""Bytes for each logit: 16 bits when computed, 32 for sampling, and 32 while sorted (vllm/v1/sample/sampler.py)."""


@dataclass(frozen=True)
class Batch:
    """The largest numbers of tokens and of requests in one step."""

    tokens: int
    sequences: int


def batch(flags: Flags, device: Device, max_model_len: int) -> Batch:
    """The batch of `vllm serve` with these flags.

    Defaults depend on the memory of the device: get_batch_defaults and
    _set_default_max_num_seqs_and_batched_tokens_args in vLLM 0.32.0, vllm/engine/arg_utils.py.
    """
    memory = (device.memory_mib or 0) * MIB
    if device.is_cpu:
        ranks = flags.tensor_parallel_size * flags.pipeline_parallel_size
        tokens, sequences = 2048 * ranks, 128 * ranks
    elif memory >= 160 * GIB:
        tokens, sequences = 16384, 1024
    elif memory >= 70 * GIB and "a100" not in device.name.lower():
        tokens, sequences = 8192, 1024
    else:
        tokens, sequences = 2048, 256
    sequences = flags.max_num_seqs or sequences
    if flags.max_num_batched_tokens:
        tokens = flags.max_num_batched_tokens
    else:
        tokens = tokens if flags.enable_chunked_prefill else max(tokens, max_model_len)
        tokens = min(tokens, sequences * max_model_len)
    return Batch(tokens, sequences if flags.max_num_seqs else min(sequences, tokens))


def overhead(config: Config, flags: Flags, device: Device, dtype: str, size: Batch) -> int:
    """Bytes of overhead on one GPU, or of one process of a CPU engine."""
    work = activations(config, flags, dtype, size) + size.sequences * (config.vocabulary_size or 0) * LOGIT_BYTES
    if device.is_cpu:
        return CPU_PROCESS + work
    together = COLLECTIVES if flags.tensor_parallel_size * flags.pipeline_parallel_size > 1 else 0
    return CONTEXT + together + (0 if flags.enforce_eager else GRAPHS) + work


def activations(config: Config, flags: Flags, dtype: str, size: Batch) -> int:
    """Bytes of one layer's activations with the largest batch, on one GPU."""
    hidden, ranks = config.hidden_size or 0, flags.tensor_parallel_size
    values = GATED_COPIES * (config.intermediate_size or 0) // ranks
    experts = config.experts
    if experts:
        inner = GATED_COPIES * (experts.intermediate_size or 0) // ranks
        values = max(values, (experts.per_token or 1) * (inner + hidden))
    return size.tokens * (HIDDEN_COPIES * hidden + values) * DTYPE_BYTES[dtype]
