# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the quantization of a model's weights. Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .values import as_dict, positive

BITS: Mapping[str, int] = {
    **dict.fromkeys(["fp8", "fbgemm_fp8", "modelopt", "modelopt_mxfp8", "mxfp8", "experts_int8"], 8),
    **dict.fromkeys(["awq", "mxfp4", "modelopt_fp4", "nvfp4"], 4),
}
"""Bits of a weight by method, if the configuration has no number."""

MODELOPT: Mapping[str, str] = {
    **dict.fromkeys(["FP8", "FP8_PER_CHANNEL_PER_TOKEN", "FP8_PB_WO"], "modelopt"),
    "NVFP4": "modelopt_fp4",
}
"""The engine's method for Model Optimizer's algorithms (_normalize_quantization_config in vLLM 0.32.0,
vllm/transformers_utils/model_arch_config_convertor.py)."""


@dataclass(frozen=True)
class Quantization:
    """`bits` of a weight; `group_size`: weights that share a scale; `block`: rows and columns that do, for FP8."""

    method: str
    bits: int | None = None
    group_size: int | None = None
    block: tuple[int, int] | None = None


def quantization(config: Mapping[str, Any], file: Mapping[str, Any] | None = None) -> Quantization | None:
    """Read `quantization_config` of a config.json, or else hf_quant_config.json. None without both."""
    if not config and file:
        config = file
    if not config:
        return None
    method = _method(config)
    weights = _compressed(config)
    inner = as_dict(config.get("quantization"))
    bits = next((found for key in ("bits", "w_bit", "weight_bits") if (found := positive(config.get(key)))), None)
    if bits is None:
        bits = positive(weights.get("num_bits")) or BITS.get(method)
    groups = (config.get("group_size"), config.get("q_group_size"), weights.get("group_size"), inner.get("group_size"))
    block = config.get("weight_block_size") or weights.get("block_structure")
    return Quantization(
        method,
        bits,
        next((found for one in groups if (found := positive(one))), None),
        _block(block),
    )


def _method(config: Mapping[str, Any]) -> str:
    """The engine's name for the method; empty if unknown."""
    given = str(config.get("quant_method") or "").lower().replace("compressed_tensors", "compressed-tensors")
    algorithm = as_dict(config.get("quantization")).get("quant_algo") or config.get("quant_algo")
    if not given or given == "modelopt":
        return MODELOPT.get(str(algorithm).upper(), given)
    return given


def _compressed(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The scheme of weights in compressed-tensors, if all groups of layers have the same; else empty."""
    schemes = [as_dict(as_dict(group).get("weights")) for group in as_dict(config.get("config_groups")).values()]
    return schemes[0] if schemes and all(scheme == schemes[0] for scheme in schemes) else {}


def _block(value: Any) -> tuple[int, int] | None:
    if isinstance(value, list) and len(value) == 2:
        rows, columns = positive(value[0]), positive(value[1])
        return (rows, columns) if rows and columns else None
    return None
