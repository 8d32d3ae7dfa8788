# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of the compute capability that dtypes, quantizations and kinds of KV cache need. Private to the collection.

Sources are paths in vLLM 0.32.0.
"""

from __future__ import annotations

from collections.abc import Mapping

Capability = tuple[int, int]

BFLOAT16: Capability = (8, 0)
"""vllm/platforms/cuda.py, check_if_supports_dtype."""

QUANTIZATION: Mapping[str, Capability] = {
    **dict.fromkeys(["gptq", "gptq_marlin", "auto_gptq", "inc"], (6, 0)),
    **dict.fromkeys(["compressed-tensors", "quark", "moe_wna16"], (7, 0)),
    **dict.fromkeys(["awq", "awq_marlin", "auto_awq", "fp8", "torchao", "modelopt_fp4", "humming"], (7, 5)),
    **dict.fromkeys(["fp8_per_tensor", "fp8_per_block", "fp8_per_channel", "int8_per_channel_weight_only"], (7, 5)),
    **dict.fromkeys(["mxfp4", "gpt_oss_mxfp4", "fbgemm_fp8", "modelopt", "modelopt_mxfp8", "experts_int8"], (8, 0)),
    "fp_quant": (10, 0),
}
"""The least compute capability on which a method runs, fast or slow (get_min_capability in
vllm/model_executor/layers/quantization; checked by vllm/config/vllm.py)."""

ACTIVATIONS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(["gptq", "gptq_marlin", "awq", "awq_marlin", "fp8", "fbgemm_fp8"], ("bfloat16", "float16")),
    **dict.fromkeys(["mxfp4", "gpt_oss_mxfp4"], ("bfloat16",)),
}
"""Dtypes in which a method can compute (get_supported_act_dtypes, same place)."""

FAMILIES: tuple[frozenset[str], ...] = (
    frozenset({"gptq", "gptq_marlin", "auto_gptq", "moe_wna16", "humming"}),
    frozenset({"awq", "awq_marlin", "auto_awq", "moe_wna16", "humming"}),
    frozenset({"mxfp4", "gpt_oss_mxfp4", "humming"}),
    frozenset({"fp8", "deepseek_v4_fp8", "humming"}),
    frozenset({"modelopt", "modelopt_fp4", "modelopt_mxfp8", "modelopt_mixed"}),
)
"""Groups of methods with which one checkpoint can be served (override_quantization_method, same place)."""

ONLINE: frozenset[str] = frozenset({"fp8", "fp8_per_tensor", "fp8_per_block", "fp8_per_channel"})
"""Methods that quantize a model's own 16-bit weights to 8 bits while they are loaded."""

MXFP4: frozenset[str] = frozenset({"mxfp4", "gpt_oss_mxfp4"})

KV_CACHE: Mapping[str, Capability] = {
    **dict.fromkeys(["fp8", "fp8_e4m3", "fp8_e5m2"], (8, 9)),
    "bfloat16": BFLOAT16,
    **dict.fromkeys(["nvfp4", "nvfp4_4over6"], (10, 0)),
}
"""The least compute capability for a kind of KV cache (vllm/v1/attention/backends/triton_attn.py; FP4 needs Blackwell's
tensor cores)."""

KV_BYTES: Mapping[str, int] = {
    **dict.fromkeys(["float16", "bfloat16"], 2),
    **dict.fromkeys(["fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc"], 1),
}
"""Bytes of a value in the KV cache. Without kinds that pack values with their scales."""

DTYPE_BYTES: Mapping[str, int] = {"float32": 4, "float16": 2, "bfloat16": 2}

NO_FLOAT16 = frozenset({"gemma2", "gemma3", "gemma3_text", "glm4"})
"""Types of models that overflow in float16, and are refused (vllm/config/model.py)."""

CPU_HEAD_SIZES = (32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512)
"""Head sizes of the CPU engine. With another size, the engine starts and reports that it is healthy, but dies at its
first request (vllm/v1/attention/backends/cpu_attn.py)."""

CPU_KV_CACHES = frozenset({"auto", "fp8", "fp8_e4m3", "fp8_e5m2"})
"""Kinds of KV cache of the CPU engine (same place)."""


def same_family(stored: str, asked: str) -> bool:
    """Whether a checkpoint of one method can be served under the name of another."""
    return stored == asked or any({stored, asked} <= family for family in FAMILIES)
