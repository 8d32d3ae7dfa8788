# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of what GPUs and the engine support."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.module_utils.models.fit import capabilities
from ansible_collections.baremetal.inference.plugins.module_utils.models.fit.capabilities import same_family


def test_names_of_one_family_of_quantization_are_recognised() -> None:
    assert same_family("gptq", "gptq_marlin")
    assert same_family("mxfp4", "gpt_oss_mxfp4")
    assert not same_family("awq", "gptq")
    assert not same_family("", "gptq")


def test_the_table_has_the_bytes_of_dtypes_of_the_kv_cache() -> None:
    assert {kind: size for kind, size in capabilities.KV_BYTES.items() if size == 2} == {"float16": 2, "bfloat16": 2}
    assert set(capabilities.KV_BYTES) > {"fp8", "fp8_e4m3", "fp8_e5m2"}
    assert capabilities.KV_CACHE["fp8"] == (8, 9)


def test_methods_have_the_compute_capability_that_the_engine_requires() -> None:
    least = capabilities.QUANTIZATION
    assert (least["gptq"], least["fp8"], least["mxfp4"], least["fp_quant"]) == ((6, 0), (7, 5), (8, 0), (10, 0))
    assert capabilities.ACTIVATIONS["mxfp4"] == ("bfloat16",)
    assert set(capabilities.ACTIVATIONS) <= set(least)
    assert set(least) >= capabilities.MXFP4
    assert set(least) >= capabilities.ONLINE
