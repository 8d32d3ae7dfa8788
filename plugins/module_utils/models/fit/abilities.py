# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks whether the GPUs can run a model: dtype, quantization, KV cache, length, scheduler. Private to the
collection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..config.config import Config
from ..config.overrides import KEY as OVERRIDES
from ..config.positions import read_length
from ..flags import images
from ..flags.variables import LONGER
from . import capabilities
from .capabilities import BFLOAT16, Capability
from .devices import Device
from .division import TP
from .flags import AUTO, PARALLEL_SIZES, Flags
from .misfit import Misfit
from .share import WHOLE, Share

POSITIONS = "max_position_embeddings"

ARM_PRODUCTS = frozenset({"GH200", "GB200", "GB300", "GB10"})
"""GPUs that are combined with an arm64 processor (NVIDIA Grace)."""

DTYPE, QUANTIZATION, KV_CACHE, LENGTH = "dtype", "quantization", "kv-cache-dtype", "max-model-len"


def engine_dtype(config: Config, flags: Flags, device: Device) -> str | None:
    """The dtype in which the engine computes. None if the flag has an unknown value.

    Without the flag: the model's own, 16 bits instead of 32, and float16 where the GPU has no bfloat16
    (_resolve_auto_dtype in vLLM 0.32.0, vllm/config/model.py).
    """
    if flags.dtype != "auto":
        return flags.dtype if flags.dtype in capabilities.DTYPE_BYTES else None
    old = not device.is_cpu and _less(device, BFLOAT16)
    preferred = "float16" if old else "bfloat16"
    asked = preferred if config.dtype in (None, "float32") else config.dtype
    return preferred if asked == "bfloat16" and old else asked


def check(
    config: Config,
    flags: Flags,
    devices: Sequence[Device],
    sizes: Sequence[int],
    lowest: Capability | None,
    environment: Mapping[str, str] | None = None,
    share: Share = WHOLE,
) -> list[Misfit]:
    """All misfits of these devices, and of the engine's image by its lowest compute capability.

    `sizes` are tensor-parallel sizes that would fit on these devices. `share` is that of their node.
    """
    longer = longer_allowed(environment or {})
    misfits = [*_devices(devices, flags, sizes, share), *(() if longer else _length(config, flags)), *_scheduler(flags)]
    device = devices[0] if devices else None
    if device:
        misfits += [*_dtype(config, flags, device), *_quantization(config, flags, device)]
        misfits += [
            *_cache(config, flags, device),
            *_image(device, lowest),
            *_machine(device),
            *_head_size(config, device),
        ]
    return misfits


def _less(device: Device, needed: Capability) -> bool:
    """Whether the device is known to be too old."""
    return device.compute_capability is not None and device.compute_capability < needed


def _devices(devices: Sequence[Device], flags: Flags, sizes: Sequence[int], share: Share) -> Iterator[Misfit]:
    needed, there = share.gpus(flags), len(devices)
    if any(device.is_cpu for device in devices):
        return
    if needed > there:
        sizes_of = (f"{flag} {getattr(flags, flag.replace('-', '_'))}" for flag in PARALLEL_SIZES)
        each = f" on each of {share.nodes} nodes" if share.nodes > 1 else ""
        message = f"is too few: {' x '.join(sizes_of)} needs {needed}{each}"
        yield Misfit("gpus", "gpus", there, message, [{"gpus": needed}, *({TP: size} for size in sizes)])
    kinds = sorted(
        {(device.name, device.memory_mib, device.compute_capability) for device in devices[:needed]}, key=str
    )
    names = ", ".join(dict.fromkeys(kind[0] for kind in kinds))
    if len({kind[2] for kind in kinds if kind[2]}) > 1:
        message = f"are of different generations ({names}): an instance needs equal GPUs"
        yield Misfit("same_gpus", "gpus", needed, message)
    elif len(memory := [kind[1] for kind in kinds if kind[1]]) > 1 and min(memory) < 0.9 * max(memory):
        message = f"have from {min(memory)} to {max(memory)} MiB ({names}): the smallest one limits all"
        yield Misfit("same_gpus", "gpus", needed, message)


def _machine(device: Device) -> Iterator[Misfit]:
    if device.name in ARM_PRODUCTS:
        message = (
            f"{device.name} is only in machines with an arm64 processor, which shares memory with it: this collection "
            "sets up only x86_64 (amd64), and a plan does not support shared memory"
        )
        yield Misfit("machine", "gpus", device.name, message)


def _image(device: Device, lowest: Capability | None) -> Iterator[Misfit]:
    if lowest and _less(device, lowest):
        message = f"the engine's image has no code for it, only for {lowest[0]}.{lowest[1]} and later"
        message += f"; {last}" if (last := images.last(device.compute_capability)) else ""
        yield Misfit("image", "compute_capability", device.capability, f"{device.name}: {message}")


def _head_size(config: Config, device: Device) -> Iterator[Misfit]:
    sizes = capabilities.CPU_HEAD_SIZES
    if device.is_cpu and config.head_size and not config.mla and config.head_size not in sizes:
        message = f"the CPU engine would die at its first request: it supports {', '.join(map(str, sizes))}"
        yield Misfit("head_size", "head_size", config.head_size, message)


def _dtype(config: Config, flags: Flags, device: Device) -> Iterator[Misfit]:
    dtype = engine_dtype(config, flags, device)
    if dtype is None:
        known = ["auto", *capabilities.DTYPE_BYTES]
        yield Misfit(DTYPE, DTYPE, flags.dtype, f"must be one of {', '.join(known)}", [{DTYPE: "auto"}])
        return
    float16_fits = config.model_type not in capabilities.NO_FLOAT16
    if dtype == "bfloat16" and not device.is_cpu and _less(device, BFLOAT16):
        message = f"needs compute capability 8.0 or later, {device.name} has {device.capability}"
        yield Misfit(DTYPE, DTYPE, dtype, message, [{DTYPE: "float16" if float16_fits else "float32"}])
    elif dtype == "float16" and not float16_fits:
        message = f"overflows in models of type {config.model_type}"
        fits = "float32" if _less(device, BFLOAT16) else "bfloat16"
        yield Misfit(DTYPE, DTYPE, dtype, message, [{DTYPE: fits}])


def _quantization(config: Config, flags: Flags, device: Device) -> Iterator[Misfit]:
    stored, asked = config.quantization, flags.quantization
    if stored and asked and not capabilities.same_family(stored.method, asked):
        message = f"is not how the model is quantized: {stored.method or 'its method has no name'}"
        yield Misfit("quantization", QUANTIZATION, asked, f"{message}; remove the flag")
        return
    method = stored.method if stored else asked
    if not method or device.is_cpu:
        return
    needed = capabilities.QUANTIZATION.get(method)
    if needed and _less(device, needed):
        message = f"needs compute capability {needed[0]}.{needed[1]} or later, {device.name} has {device.capability}"
        yield Misfit("quantization", QUANTIZATION, method, message)
    dtype = engine_dtype(config, flags, device)
    able = capabilities.ACTIVATIONS.get(method)
    if dtype and able and dtype not in able:
        message = f"is not what {method} weights can be computed in: {', '.join(able)}"
        fits = [{DTYPE: one} for one in able if one != "bfloat16" or not _less(device, BFLOAT16)]
        yield Misfit("quantization", DTYPE, dtype, message, fits)


def _cache(config: Config, flags: Flags, device: Device) -> Iterator[Misfit]:
    kind = flags.kv_cache_dtype
    if device.is_cpu:
        if kind not in capabilities.CPU_KV_CACHES:
            able = ", ".join(sorted(capabilities.CPU_KV_CACHES))
            message = f"is not supported by the CPU engine, which has {able}"
            yield Misfit("kv_cache_dtype", KV_CACHE, kind, message, [{KV_CACHE: "auto"}])
        return
    needed = capabilities.KV_CACHE.get(kind)
    if needed and _less(device, needed):
        message = f"needs compute capability {needed[0]}.{needed[1]} or later, {device.name} has {device.capability}"
        yield Misfit("kv_cache_dtype", KV_CACHE, kind, message, [{KV_CACHE: "auto"}])


def longer_allowed(environment: Mapping[str, str]) -> bool:
    """Whether the engine accepts more tokens than the model's length (vllm/envs.py)."""
    return environment.get(LONGER, "").strip().lower() in ("1", "true")


def too_long(config: Config, flags: Flags) -> bool:
    """Whether max-model-len is more than the model's length. A model without positions has no limit."""
    asked, longest = flags.max_model_len, config.max_length
    return bool(asked and asked != AUTO and longest and config.max_positions and asked > longest)


def _length(config: Config, flags: Flags) -> Iterator[Misfit]:
    """Misfits of the length. Source: _get_and_verify_max_len in vllm/config/model.py, which also names the variable."""
    asked, longest, rope = flags.max_model_len, config.max_length, config.rope
    if not too_long(config, flags) or not asked or not longest:
        return
    message = f"is more than the model's {longest} tokens"
    if rope and rope.factor:
        message += f" (rope {rope.type or 'scaling'} with factor {rope.factor:g} is counted in)"
    fits: list[Mapping[str, object]] = [{LENGTH: longest}]
    reach = int((rope.original_max_positions or 0) * (rope.factor or 1)) if rope else 0
    raised = {OVERRIDES: {POSITIONS: asked}}
    own = read_length(config.max_positions, rope, None, config.model_type)
    if own and longest < own:
        message += (
            ", which a file beside config.json says: max_seq_length of Sentence Transformers, or model_max_length of "
            f"the tokenizer. {LONGER}: '1' in environment of the instance allows more"
        )
    elif asked <= reach:
        fits.append(raised)
        message += f". Its rope reaches {reach}: hf-overrides with {POSITIONS} raises the limit"
    else:
        message += (
            f". For more, write hf-overrides with {POSITIONS} and rope_parameters, as the model's card says. If the "
            f"weights are made for longer requests, set {LONGER}: '1' in environment of the instance instead"
        )
    yield Misfit("max_model_len", LENGTH, asked, message, fits)


def _scheduler(flags: Flags) -> Iterator[Misfit]:
    """Misfits of the scheduler. Source: vllm/config/scheduler.py, verify_max_model_len."""
    tokens, sequences = flags.max_num_batched_tokens, flags.max_num_seqs
    key = "max-num-batched-tokens"
    if tokens and sequences and tokens < sequences:
        message = f"is less than max-num-seqs, {sequences}: each running request takes a token of every step"
        yield Misfit("scheduler", key, tokens, message, [{key: sequences}, {"max-num-seqs": tokens}])
    length = flags.max_model_len
    if tokens and length and not flags.enable_chunked_prefill and tokens < length:
        message = f"is less than max-model-len, {length}, and without chunked prefill a prompt is read in one step"
        yield Misfit("scheduler", key, tokens, message, [{key: length}, {"enable-chunked-prefill": True}])
