# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which layers of a model keep what of a request: all of it, a window, or a state. Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .values import positive

FULL, SLIDING = "full_attention", "sliding_attention"
"""Words of `layer_types` in config.json."""

RECURRENT_KEYS = (
    *("layers_block_type", "hybrid_override_pattern", "attn_layer_period", "attn_type_list", "block_configs"),
    *("linear_attn_config", "mamba_d_state", "state_size", "ssm_state_size", "mamba_d_conv"),
)
"""Keys of models that keep a state instead of keys and values in some layers, or differ from layer to layer: their
cache cannot be told from the other keys alone."""

ALL_SLIDING = frozenset({"mistral", "mixtral", "phi3", "phi3small", "phimoe", "starcoder2"})
"""Types whose window holds for every layer (`sliding_window` of their classes in transformers)."""

MIXED_BY_LAYER = frozenset({"qwen2", "qwen2_moe", "qwen3", "qwen3_moe"})
"""Types whose window begins at layer `max_window_layers` (transformers, configuration_qwen2.py)."""

PATTERNS: Mapping[str, int] = {"gemma2": 2, "gemma3_text": 6, "gemma3": 6, "cohere2": 4}
"""Types of which every n-th layer is full, where `sliding_window_pattern` does not say otherwise (transformers,
configuration_gemma2.py, configuration_gemma3.py, configuration_cohere2.py)."""


@dataclass(frozen=True)
class Attention:
    """How many layers keep every token, only those of the sliding window, or something else."""

    full_layers: int
    sliding_layers: int = 0
    other_layers: int = 0


def attention(
    text: Mapping[str, Any], layers: int | None, window: int | None, model_type: str | None
) -> tuple[Attention | None, str]:
    """The kinds of layers, None where the configuration does not tell; and what is wrong with it."""
    if layers is None:
        return None, ""
    types = text.get("layer_types")
    if isinstance(types, list) and types:
        if len(types) != layers:
            return None, f"has layer_types for {len(types)} layers, num_hidden_layers says {layers}"
        full = types.count(FULL)
        sliding = types.count(SLIDING) if window else 0
        # A layer that slides over no window keeps everything.
        full += 0 if window else types.count(SLIDING)
        return Attention(full, sliding, layers - full - sliding), ""
    if interval := positive(text.get("full_attention_interval")):
        return Attention(layers // interval, 0, layers - layers // interval), ""
    if any(text.get(key) for key in RECURRENT_KEYS) or text.get("compress_ratios"):
        return None, ""
    return _by_window(text, layers, window, model_type), ""


def _by_window(text: Mapping[str, Any], layers: int, window: int | None, model_type: str | None) -> Attention | None:
    if window is None:
        return Attention(layers)
    if pattern := positive(text.get("sliding_window_pattern")) or PATTERNS.get(model_type or ""):
        return Attention(layers // pattern, layers - layers // pattern)
    if model_type in MIXED_BY_LAYER:
        first = text.get("max_window_layers")
        full = min(first, layers) if isinstance(first, int) and first >= 0 else None
        return None if full is None else Attention(full, layers - full)
    return Attention(0, layers) if model_type in ALL_SLIDING else None
