# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The size of a state, by the shapes that the engine uses."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.state import State, state

MAMBA_2 = {"mamba_num_heads": 8, "ssm_state_size": 16, "conv_kernel": 4, "n_groups": 2}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ({}, None),
        (
            {
                "linear_num_key_heads": 16,
                "linear_num_value_heads": 32,
                "linear_key_head_dim": 128,
                "linear_value_head_dim": 128,
                "linear_conv_kernel_dim": 4,
            },
            State((2 * 16 * 128 + 32 * 128) * 3, 32 * 128 * 128),
        ),
        ({"conv_L_cache": 3}, State(64 * 2)),
        ({"conv_L_cache": 3, "conv_dim": 32}, State(32 * 2)),
        ({**MAMBA_2, "mamba_head_dim": 4}, State((32 + 64) * 3, 32 * 16)),
        ({**MAMBA_2, "expand": 2}, State((128 + 64) * 3, 128 * 16)),
        (MAMBA_2, None),
        ({"state_size": 16, "conv_kernel": 4, "expand": 2}, State(128 * 3, 128 * 16)),
        ({"state_size": 16, "conv_kernel": 4}, None),
        (
            {"state_size": 16, "conv_kernel": 4, "expand": 2, "mamba_ssm_cache_dtype": "float32"},
            State(128 * 3, 128 * 16, "float32"),
        ),
    ],
)
def test_the_state_of_a_layer_is_computed(text: dict[str, Any], expected: State | None) -> None:
    assert state(text, 64) == expected


def test_without_a_hidden_size_the_state_is_unknown() -> None:
    assert state({"conv_L_cache": 3}, None) is None
    assert state({"state_size": 16, "conv_kernel": 4, "expand": 2}, None) is None
