# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Computes the size of a model's weights on each GPU. Private to the collection.

Source: vLLM 0.32.0.

- Column- and row-parallel layers: divided by the tensor-parallel size (vllm/model_executor/layers/linear.py).
- KV heads: divided by their number at most, and repeated on further GPUs (QKVParallelLinear in the same file).
- Experts: divided by all GPUs of tensor and data parallelism. A GPU has some experts, or a slice of every expert
  (FusedMoEParallelConfig in vllm/model_executor/layers/fused_moe/config.py).
- Layers: divided among the pipeline stages (get_pp_indices in vllm/distributed/utils.py).
"""

from __future__ import annotations

import math

from ..config.config import Config
from ..config.weights import Weights
from .capabilities import DTYPE_BYTES, MXFP4, ONLINE
from .devices import Device
from .flags import Flags
from .share import WHOLE, Share

HOPPER = 9
"""Major number of the compute capability of Hopper GPUs."""


def stages(layers: int, count: int) -> list[int]:
    """Number of layers of each pipeline stage. The remainder goes to the stages before the last one, one layer each."""
    sizes = [layers // count] * count
    for position in range(2, layers % count + 2):
        sizes[-position] += 1
    return sizes


def bytes_per_gpu(weights: Weights, config: Config, flags: Flags, device: Device, dtype: str, on: Share = WHOLE) -> int:
    """Bytes of weights on the GPU with the most weights, of the node with this share of the engine."""
    parts, tensor_parallel = weights.parts, flags.tensor_parallel_size
    in_layers = sum(parts.layers)
    whole = in_layers and parts.replicated / in_layers
    by_kv_head = in_layers and parts.kv_projections / in_layers
    by_expert = in_layers and parts.experts / in_layers
    evenly = 1 - whole - by_kv_head - by_expert if in_layers else 0
    kv_ways = min(tensor_parallel, config.kv_heads or tensor_parallel)
    # The share of a layer that one rank has.
    share = (
        whole
        + by_kv_head / kv_ways
        + by_expert / (tensor_parallel * flags.data_parallel_size) * _padding(config, flags, device)
        + evenly / tensor_parallel
    )
    largest, start = 0.0, 0
    scale = _scale(weights, config, flags, dtype)
    sizes = stages(len(parts.layers), flags.pipeline_parallel_size)
    here = on.stages(flags)
    for position, size in enumerate(sizes):
        stage = sum(parts.layers[start : start + size]) * share * scale[1] + parts.rest * scale[0]
        if position == 0:
            stage += parts.embedding / tensor_parallel * scale[0]
        if position == len(sizes) - 1:
            # A head that is tied to the embedding needs a second copy if it is on another stage.
            head = parts.head or (parts.embedding if position else 0)
            stage += head / tensor_parallel * scale[0]
        largest = max(largest, stage if position in here else 0)
        start += size
    return max(0, round(largest - flags.cpu_offload_gb * (1 << 30)))


def _padding(config: Config, flags: Flags, device: Device) -> float:
    """The factor by which MXFP4 experts grow: they are padded to sizes that their kernels require.

    Source: mxfp4_round_up_hidden_size_and_intermediate_size in vllm/model_executor/layers/fused_moe/oracle/mxfp4.py.
    Hopper uses Triton's kernels, other GPUs Marlin's or TensorRT-LLM's.
    """
    experts, hidden = config.experts, config.hidden_size
    if not (config.quantization and config.quantization.method in MXFP4 and experts and hidden):
        return 1
    inner = experts.intermediate_size or 0
    if not flags.enable_expert_parallel:
        inner = math.ceil(inner / (flags.tensor_parallel_size * flags.data_parallel_size))
    if not inner or device.is_cpu:
        return 1
    if device.compute_capability and device.compute_capability[0] == HOPPER:
        return _round_up(inner, 64) / inner
    return _round_up(inner, 128) / inner * _round_up(hidden, 256) / hidden


def _round_up(size: int, multiple: int) -> int:
    return math.ceil(size / multiple) * multiple


def _scale(weights: Weights, config: Config, flags: Flags, dtype: str) -> tuple[float, float]:
    """Bytes in memory for each byte in the files: first outside of the layers, then in the layers.

    The engine converts unquantized weights to the dtype in which it computes. A method that quantizes at load time
    stores 8 bits for each weight in the layers.
    """
    if config.quantization or not weights.bytes:
        return 1, 1
    held = weights.parameters * DTYPE_BYTES[dtype] / weights.bytes
    return held, held / DTYPE_BYTES[dtype] if flags.quantization in ONLINE else held
