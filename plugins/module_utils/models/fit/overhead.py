# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an engine needs besides weights and KV cache: an estimate, on the high side. Private to the collection.

The engine measures this itself when it starts, by a run with the largest batch and by capturing its graphs; nothing
short of that is exact. What is assumed here and not worked out has a name below.
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
"""Assumed: buffers of NCCL and of custom all-reduce, where several GPUs compute together."""

GRAPHS = GIB
"""Assumed: captured CUDA graphs. Operators report 0.5 to 1.3 GiB."""

CPU_PROCESS = GIB
"""Assumed: Python and torch in the worker's process of a CPU engine."""

HIDDEN_COPIES = 4
"""Assumed: hidden states alive at once in a layer (residual, input, output, and one between)."""

GATED_COPIES = 3
"""A gated feed-forward has its two inner halves and their product alive at once."""

LOGIT_BYTES = 10
"""For each logit: 16 bits as computed, 32 as sampled from, and 32 while they are sorted (vllm/v1/sample/sampler.py)."""


@dataclass(frozen=True)
class Batch:
    """The most tokens and the most requests in one step."""

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
    """Bytes on one GPU, or of one process of a CPU engine."""
    work = activations(config, flags, dtype, size) + size.sequences * (config.vocabulary_size or 0) * LOGIT_BYTES
    if device.is_cpu:
        return CPU_PROCESS + work
    together = COLLECTIVES if flags.tensor_parallel_size * flags.pipeline_parallel_size > 1 else 0
    return CONTEXT + together + (0 if flags.enforce_eager else GRAPHS) + work


def activations(config: Config, flags: Flags, dtype: str, size: Batch) -> int:
    """Bytes of what one layer computes with the largest batch, on one GPU."""
    hidden, ranks = config.hidden_size or 0, flags.tensor_parallel_size
    values = GATED_COPIES * (config.intermediate_size or 0) // ranks
    experts = config.experts
    if experts:
        inner = GATED_COPIES * (experts.intermediate_size or 0) // ranks
        values = max(values, (experts.per_token or 1) * (inner + hidden))
    return size.tokens * (HIDDEN_COPIES * hidden + values) * DTYPE_BYTES[dtype]
