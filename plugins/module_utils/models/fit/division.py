# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks whether a model can be divided as the flags require. Private to the collection.

These are the checks of vLLM 0.32.0, which makes some before it starts its workers (vllm/config/model.py), and some by
assertions minutes later, when it builds the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..config.config import Config
from .flags import Flags
from .misfit import Misfit

TP, PP, EP = "tensor-parallel-size", "pipeline-parallel-size", "enable-expert-parallel"

VOCABULARY_PADDING = 64
"""The engine pads the vocabulary to a multiple of this (vllm/model_executor/layers/vocab_parallel_embedding.py)."""

GROUPED = frozenset({"gptq", "gptq_marlin", "auto_gptq", "awq", "awq_marlin", "auto_awq"})
"""Methods for which each GPU must have complete groups (verify_marlin_supports_shape in
vllm/model_executor/layers/quantization/utils/marlin_utils.py)."""


def check(config: Config, flags: Flags, sizes: Sequence[int]) -> list[Misfit]:
    """All misfits of a division by these flags; `sizes` are tensor-parallel sizes that would fit.

    Sizes that are not in the configuration are not checked.
    """
    fits = [{TP: size} for size in sizes]
    misfits = [
        Misfit(name, TP, flags.tensor_parallel_size, message, fits) for name, message in _by_tensor(config, flags)
    ]
    layers, stages = config.layers, flags.pipeline_parallel_size
    if layers and stages > layers:
        message = f"is more than the model's {layers} layers: each stage needs one"
        misfits.append(Misfit("layers", PP, stages, message, [{PP: layers}]))
    if flags.enable_expert_parallel:
        misfits += _by_expert(config, flags)
    return misfits


def tensor_parallel_sizes(config: Config, flags: Flags, most: int) -> list[int]:
    """The tensor-parallel sizes up to a number of GPUs by which this model can be divided."""
    sizes = range(1, most + 1)
    return [size for size in sizes if not any(_by_tensor(config, replace(flags, tensor_parallel_size=size)))]


def _by_tensor(config: Config, flags: Flags) -> Iterator[tuple[str, str]]:
    """The checks that a tensor-parallel size fails, each with a message."""
    ranks, heads, kv_heads = flags.tensor_parallel_size, config.attention_heads, config.kv_heads
    if heads and heads % ranks:
        yield "heads", f"does not divide the model's {heads} attention heads"
    # Fewer KV heads than ranks are repeated, and must divide the ranks. MLA has one latent vector and no KV heads.
    if kv_heads and not config.mla and (kv_heads % ranks if kv_heads >= ranks else ranks % kv_heads):
        yield "kv_heads", f"neither divides the model's {kv_heads} KV heads nor is a multiple of them"
    if config.vocabulary_size:
        padded = -(-config.vocabulary_size // VOCABULARY_PADDING) * VOCABULARY_PADDING
        if padded % ranks:
            yield "vocabulary", f"does not divide the vocabulary of {config.vocabulary_size}, filled up to {padded}"
    for name, size, ways in _inner_sizes(config, flags):
        if size % ways:
            yield "intermediate_size", f"does not divide the {name} of {size}"
        elif message := _quantized(config, size // ways, ways):
            yield "quantization_shape", f"leaves {size // ways} of the {name} of {size} on each GPU, {message}"


def _inner_sizes(config: Config, flags: Flags) -> Iterator[tuple[str, int, int]]:
    """The sizes of feed-forwards that are divided, with the number of parts. With expert parallelism, experts stay
    complete."""
    ranks, experts = flags.tensor_parallel_size, config.experts
    if config.intermediate_size and not (experts and experts.layers == config.layers):
        yield "intermediate size", config.intermediate_size, ranks
    if experts and experts.intermediate_size and not flags.enable_expert_parallel:
        yield "experts' intermediate size", experts.intermediate_size, ranks * flags.data_parallel_size


def _quantized(config: Config, size: int, ways: int) -> str:
    """Why a part of this size is impossible with the quantization; empty if it is possible.

    Block FP8: validate_fp8_block_shape in vllm/model_executor/layers/quantization/utils/fp8_utils.py.
    """
    method = config.quantization
    if method is None or ways == 1:
        return ""
    if method.block and (size % method.block[0] or size % method.block[1]):
        return (
            f"which is no multiple of the {method.block[0]} x {method.block[1]} blocks of its {method.method} weights"
        )
    if method.method in GROUPED and method.group_size and size % method.group_size:
        return f"which is no multiple of the groups of {method.group_size} of its {method.method} weights"
    return ""


def _by_expert(config: Config, flags: Flags) -> Iterator[Misfit]:
    """Misfits of expert parallelism, in which every GPU of tensor and data parallelism gets some complete experts."""
    if config.experts is None:
        # A configuration without a type may have experts under an unknown name.
        if config.model_type:
            yield Misfit("experts", EP, True, "needs a model with experts: this one has none", [{EP: False}])
        return
    ranks = flags.tensor_parallel_size * flags.data_parallel_size
    if ranks > config.experts.count:
        message = f"spreads {config.experts.count} experts over {ranks} GPUs, of which some would get none"
        yield Misfit("experts", EP, True, message, [{EP: False}])
