# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a model is quantized, as different tools write it."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.quantization import (
    Quantization,
    quantization,
)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, Quantization("gptq", 4, 128)),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, Quantization("gptq", 8)),
        ({"quant_method": "awq", "w_bit": 4, "q_group_size": 64}, Quantization("awq", 4, 64)),
        ({"quant_method": "mxfp4"}, Quantization("mxfp4", 4)),
        (
            {
                "quant_method": "compressed_tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 4, "group_size": 32}}},
            },
            Quantization("compressed-tensors", 4, 32),
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"a": {"weights": {"num_bits": 8}}, "b": {"weights": {"num_bits": 4}}},
            },
            Quantization("compressed-tensors"),
        ),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, Quantization("modelopt_fp4", 4)),
        ({"bits": 4}, Quantization("", 4)),
        ({"quant_method": "fp8", "weight_block_size": [128, 64]}, Quantization("fp8", 8, None, (128, 64))),
        ({"quant_method": "fp8", "weight_block_size": [128]}, Quantization("fp8", 8)),
        ({"quant_method": "fp8", "weight_block_size": [128, 0]}, Quantization("fp8", 8)),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 8, "block_structure": [128, 128]}}},
            },
            Quantization("compressed-tensors", 8, None, (128, 128)),
        ),
        ({}, None),
    ],
)
def test_quantization_is_read_in_the_forms_of_several_tools(raw: dict[str, Any], expected: Quantization | None) -> None:
    assert quantization(raw) == expected


def test_the_file_of_model_optimizer_is_read_after_config_json() -> None:
    file = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4", "group_size": 16}}
    assert quantization({}, file) == Quantization("modelopt_fp4", 4, 16)
    # The quantization in config.json comes first.
    assert quantization({"quant_method": "awq"}, file) == Quantization("awq", 4)
