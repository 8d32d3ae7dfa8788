# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Latent attention, where the engine has it."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.latent import Mla, cached_size, latent
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.values import Reader

KEYS = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128}


@pytest.mark.parametrize(
    ("model_type", "keys", "found"),
    [
        ("deepseek_v3", KEYS, Mla(512, 64, 128, 128)),
        ("deepseek_v3", {**KEYS, "q_lora_rank": 1536}, Mla(512, 64, 128, 128, 1536)),
        # The engine serves this type with keys and values for each head.
        ("minicpm3", KEYS, None),
        ("llama", KEYS, None),
        # The engine runs this type with the code of transformers: the keys decide.
        ("youtu", KEYS, Mla(512, 64, 128, 128)),
        # For an unknown type, the keys decide.
        ("new_type", KEYS, Mla(512, 64, 128, 128)),
        (None, KEYS, Mla(512, 64, 128, 128)),
        ("new_type", {"kv_lora_rank": 512}, None),
        ("new_type", {}, None),
        ("deepseek_v3", {**KEYS, "is_causal": False}, None),
        # All query heads share one KV head, whose keys are also its values.
        (
            "deepseek_v4",
            {"compress_ratios": [0, 4, 128], "head_dim": 512, "qk_rope_head_dim": 64, "q_lora_rank": 1024},
            Mla(448, 64, None, None, 1024),
        ),
        ("deepseek_v4", {"compress_ratios": [0], "qk_rope_head_dim": 64}, None),
    ],
)
def test_latent_attention_is_read_if_the_engine_uses_it(
    model_type: str | None, keys: dict[str, Any], found: Mla | None
) -> None:
    assert latent(Reader(keys), model_type) == found


def test_the_size_of_a_head_is_what_a_token_takes_in_the_kv_cache() -> None:
    assert cached_size(Mla(512, 64), "deepseek_v3") == 576
    # For types outside of MLA_TYPES, the engine reports the configuration's own size.
    assert cached_size(Mla(512, 64), "new_type") is None and cached_size(None, "deepseek_v3") is None
