# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads from a model registry entry the engine's flags that decide whether a model fits. Private to the collection.

models/flags checks names and values of flags with the engine's catalogue. Here, a value that cannot be read is a
misfit, and the flag's default counts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .misfit import Misfit

UTILIZATION = 0.92
"""Default of --gpu-memory-utilization (vLLM 0.32.0, vllm/config/cache.py)."""

AUTO = -1
"""Value of --max-model-len for the longest length that fits."""

DTYPES: Mapping[str, str] = {"half": "float16", "float": "float32"}
"""Other names for dtypes (_STR_DTYPE_TO_TORCH_DTYPE in vllm/config/model.py)."""

MULTIPLIERS: Mapping[str, int] = {
    **{letter: 1000 ** (power + 1) for power, letter in enumerate("kmgt")},
    **{letter: 1024 ** (power + 1) for power, letter in enumerate("KMGT")},
}
"""Endings of numbers: small letters are decimal, capitals binary (human_readable_int in
vllm/utils/argparse_utils.py)."""

DATA_PARALLEL = "data-parallel-size"

PARALLEL_SIZES = (*("tensor-parallel-size", "pipeline-parallel-size", "prefill-context-parallel-size", DATA_PARALLEL),)
"""Flags whose product is the number of GPUs of an engine (vllm/config/parallel.py)."""

MOST_RANKS = 1024
"""Largest value of such a flag, more than any instance has."""

NUMBER = re.compile(r"(\d+(?:\.\d+)?)([kKmMgGtT]?)")


@dataclass(frozen=True)
class Flags:
    """Flags by the engine's names; sizes in the engine's units, tokens, bytes or GiB. None: not set."""

    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    prefill_context_parallel_size: int = 1
    data_parallel_size: int = 1
    enable_expert_parallel: bool = False
    max_model_len: int | None = None
    gpu_memory_utilization: float = UTILIZATION
    kv_cache_memory_bytes: int | None = None
    kv_cache_dtype: str = "auto"
    dtype: str = "auto"
    quantization: str | None = None
    block_size: int | None = None
    mamba_cache_dtype: str = "auto"
    mamba_ssm_cache_dtype: str = "auto"
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    enable_chunked_prefill: bool = True
    async_scheduling: bool = True
    enforce_eager: bool = False
    disable_hybrid_kv_cache_manager: bool = False
    cpu_offload_gb: float = 0
    kv_offloading_size: float = 0
    mm_processor_cache_gb: float = 4
    api_server_count: int | None = None
    enable_lora: bool = False
    max_loras: int = 1
    max_lora_rank: int = 16
    lora_dtype: str = "auto"
    fully_sharded_loras: bool = False

    @property
    def world_size(self) -> int:
        """Number of GPUs of the instance."""
        return world_size({flag: getattr(self, _field(flag)) for flag in PARALLEL_SIZES})


ALIASES: Mapping[str, str] = {"device-memory-utilization": "gpu-memory-utilization"}

RANKS = frozenset(flag.replace("-", "_") for flag in PARALLEL_SIZES)
COUNTS = frozenset(
    {
        *("kv_cache_memory_bytes", "block_size", "max_num_seqs", "max_num_batched_tokens", "max_loras"),
        *("max_lora_rank", "api_server_count"),
    }
)
FRACTIONS = frozenset({"gpu_memory_utilization", "cpu_offload_gb", "kv_offloading_size", "mm_processor_cache_gb"})
LENGTHS = frozenset({"max_model_len"})


def read(entry: Mapping[str, Any]) -> tuple[Flags, list[Misfit]]:
    """The flags of a model registry entry, and misfits of values that cannot be read. Ignores other keys."""
    values: dict[str, Any] = {}
    misfits: list[Misfit] = []
    for key, value in entry.items():
        name = _field(ALIASES.get(str(key), str(key)))
        if name not in Flags.__dataclass_fields__ or value is None:
            continue
        parsed = _parse(name, value)
        if parsed is None:
            misfits.append(Misfit("value", str(key), value, _allowed(name)))
        else:
            values[name] = parsed
    return Flags(**values), misfits


def mistake(flag: str, value: Any) -> str:
    """The mistake in the value of one flag; empty without one, and for flags that are not read here."""
    _flags, misfits = read({flag: value})
    return misfits[0].message if misfits else ""


def world_size(entry: Mapping[str, Any]) -> int:
    """Number of GPUs of an engine with a model registry entry's flags. A size that is not a number counts as 1."""
    return math.prod(count(entry.get(flag)) or 1 for flag in PARALLEL_SIZES)


def _field(flag: str) -> str:
    return flag.replace("-", "_")


def _parse(name: str, value: Any) -> Any:
    """The value in the type of its flag; None if it cannot be read."""
    if name in LENGTHS and str(value).lower() in ("-1", "auto"):
        return AUTO
    if name in RANKS:
        return found if (found := count(value)) and found <= MOST_RANKS else None
    if name in COUNTS or name in LENGTHS:
        return count(value)
    if name in FRACTIONS:
        return _fraction(value, largest=1 if name == "gpu_memory_utilization" else 1e6)
    if isinstance(getattr(Flags, name), bool):
        return value if isinstance(value, bool) else None
    text = str(value).lower()
    return DTYPES.get(text, text) if name == "dtype" else text


def count(value: Any) -> int | None:
    """A whole number from 1 on, in the engine's forms: 8192, 32k (32 000), 32K (32 768). None for another value."""
    match = None if isinstance(value, bool) else NUMBER.fullmatch(str(value).strip())
    if match is None:
        return None
    number, ending = float(match[1]), match[2]
    if math.isinf(number) or (not number.is_integer() and (not ending or ending.isupper())):
        return None
    return int(number * MULTIPLIERS.get(ending, 1)) or None


def _fraction(value: Any, largest: float) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    # Zero is not allowed as a utilization, but it means none for a number of GiB.
    return number if not isinstance(value, bool) and (0 < number <= largest or (largest > 1 and number == 0)) else None


def _allowed(name: str) -> str:
    if name in RANKS:
        return f"must be a whole number from 1 to {MOST_RANKS}"
    if name in COUNTS:
        return "must be a whole number from 1 on"
    if name in LENGTHS:
        return "must be a number of tokens, such as 32768 or 32K, or -1 for as long as fits"
    if name == "gpu_memory_utilization":
        return "must be more than 0 and at most 1"
    return "must be a number of GiB" if name in FRACTIONS else "must be true or false"
