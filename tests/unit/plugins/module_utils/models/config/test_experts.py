# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The experts of a configuration."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.experts import Experts, experts_of
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.values import Reader


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ({}, None),
        ({"num_local_experts": 8, "intermediate_size": 14336}, Experts(8, None, 14336, None, 12)),
        (
            {"n_routed_experts": 64, "moe_intermediate_size": 1408, "n_shared_experts": 2, "first_k_dense_replace": 1},
            Experts(64, None, 1408, 2816, 11),
        ),
        # Counting a damaged, huge number of dense layers must not take memory.
        (
            {"n_routed_experts": 64, "moe_intermediate_size": 1408, "first_k_dense_replace": 1 << 40},
            Experts(64, None, 1408, None, 0),
        ),
        (
            {"num_experts": 60, "num_experts_per_tok": 4, "moe_intermediate_size": 1408, "decoder_sparse_step": 2},
            Experts(60, 4, 1408, None, 6),
        ),
        (
            {"n_routed_experts": 256, "moe_intermediate_size": 2048, "moe_layer_freq": [0, 0, *[1] * 10]},
            Experts(256, None, 2048, None, 10),
        ),
        (
            {
                "num_experts": 16,
                "moe_intermediate_size": 9,
                "shared_expert_intermediate_size": 7,
                "mlp_only_layers": [0, 5],
            },
            Experts(16, None, 9, 7, 10),
        ),
        (
            {
                "block_configs": [
                    {"block_type": "moe", "n_routed_experts": 96},
                    {"block_type": "moe"},
                    {"block_type": "mamba", "n_routed_experts": 128},
                ]
            },
            Experts(96, None, None, None, 12),
        ),
    ],
)
def test_experts_and_their_layers_are_counted(text: dict[str, Any], found: Experts | None) -> None:
    assert experts_of(text, Reader(text), 12) == found


def test_without_the_number_of_layers_the_layers_with_experts_are_unknown() -> None:
    text = {"num_experts": 8, "intermediate_size": 5}
    assert experts_of(text, Reader(text), None) == Experts(8, None, 5, None, None)
