# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counts the layers of a model that keep all tokens of a request, a window, or a state. Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .declared import layer_types
from .values import as_dict, as_list, positive

FULL = frozenset({"full_attention", "attention", "full", "global", "indexed_attention", "self_attention", "*"})
"""Words for layers that keep every token, in `layer_types` and similar keys of config.json."""

SLIDING = frozenset({"sliding_attention", "chunked_attention", "sliding", "local"})
"""Words for layers that keep a window, or the present chunk."""

STATE = frozenset({"linear_attention", "mamba", "mamba2", "recurrent", "conv", "linear", "M"})
"""Words for layers that keep a state, whose size does not depend on the length of the request."""

BOTH = frozenset({"hybrid"})
"""Words for layers that keep every token and a state."""

NOTHING = frozenset({"mlp", "moe", "dense", "sparse", "none", "-", "E"})
"""Words for layers that keep nothing."""

RECURRENT_KEYS = (
    *("attn_layer_period", "attn_type_list", "linear_attn_config"),
    *("mamba_d_state", "state_size", "ssm_state_size", "mamba_d_conv"),
)
"""Keys of models that keep a state instead of keys and values in some layers, or whose layers differ. The size of their
cache is unknown if no other key names the kinds of layers."""

ALL_SLIDING = frozenset({"mistral", "mixtral", "phi3", "phi3small", "phimoe", "starcoder2"})
"""Types whose window applies to every layer (`sliding_window` of their classes in transformers)."""

MIXED_BY_LAYER = frozenset({"qwen2", "qwen2_moe", "qwen3", "qwen3_moe"})
"""Types whose window applies from layer `max_window_layers` on (transformers, configuration_qwen2.py)."""


@dataclass(frozen=True)
class Attention:
    """How many layers keep every token, the tokens of the sliding window, a state, or something else. A layer that
    keeps both tokens and a state counts twice. A layer that keeps nothing does not count."""

    full_layers: int
    sliding_layers: int = 0
    other_layers: int = 0
    state_layers: int = 0


def kinds(text: Mapping[str, Any], layers: int | None, model_type: str | None) -> list[str]:
    """The words for the kinds of layers, in the layers' order; empty if unknown."""
    for key in ("layer_types", "layers_block_type"):
        listed = text.get(key)
        if isinstance(listed, list) and listed:
            return [str(one) for one in listed]
    if isinstance(marks := text.get("hybrid_override_pattern"), str):
        return [mark for mark in marks if mark != "|"]
    if blocks := [as_dict(block) for block in as_list(text.get("block_configs"))]:
        return [_block(block) for block in blocks]
    if layers is None:
        return []
    if interval := positive(text.get("full_attention_interval")):
        return _every(layers, interval, "linear_attention", "full_attention")
    if period := positive(text.get("attn_layer_period")):
        offset = text.get("attn_layer_offset")
        first = offset if isinstance(offset, int) else 0
        return ["full_attention" if index % period == first else "linear_attention" for index in range(layers)]
    if isinstance(listed := text.get("attn_type_list"), list):
        return ["full_attention" if one == 1 else "linear_attention" for one in listed]
    if pattern := positive(text.get("sliding_window_pattern")):
        return _every(layers, pattern, "sliding_attention", "full_attention")
    if interval := positive(text.get("no_rope_layer_interval")):
        return _every(layers, interval, "chunked_attention", "full_attention")
    if model_type in MIXED_BY_LAYER:
        return []
    return layer_types(model_type, layers)


def _block(block: Mapping[str, Any]) -> str:
    """The word for one block of a searched architecture (Nemotron NAS and Puzzle)."""
    if isinstance(kind := block.get("block_type"), str):
        return kind
    inner = block.get("attention")
    if not isinstance(inner, dict):
        return "unknown"
    return "none" if inner.get("no_op") or inner.get("replace_with_linear") else "attention"


def _every(layers: int, step: int, usual: str, rare: str) -> list[str]:
    """A list in which every step-th layer is of the rare kind."""
    return [usual if (index + 1) % step else rare for index in range(layers)]


def attention(
    text: Mapping[str, Any], layers: int | None, window: int | None, model_type: str | None, longest: int | None = None
) -> tuple[Attention | None, str]:
    """The counts of layers by kind, None if unknown; and the mistake in the configuration, empty without one.

    `longest` is the longest request in tokens.
    """
    if layers is None:
        return None, ""
    words = kinds(text, layers, model_type)
    if words and len(words) != layers:
        return None, f"names the kinds of {len(words)} layers (layer_types or a key like it), but has {layers} layers"
    if text.get("compress_ratios"):
        return None, ""
    if words:
        # The last layers may use the keys and values of earlier ones.
        shared = positive(text.get("num_kv_shared_layers")) or 0
        return _count(words[: max(layers - shared, 1)], window), ""
    if any(text.get(key) for key in RECURRENT_KEYS):
        return None, ""
    found = _by_window(text, layers, window, model_type)
    # A window as long as the longest request keeps every token, whichever layers have the window.
    return found or (Attention(layers) if window and longest and window >= longest else None), ""


def _count(words: Sequence[str], window: int | None) -> Attention:
    full = sum(word in FULL or word in BOTH for word in words)
    sliding = sum(word in SLIDING for word in words)
    state = sum(word in STATE or word in BOTH for word in words)
    nothing = sum(word in NOTHING for word in words)
    other = len(words) - sum(word in FULL | SLIDING | STATE | BOTH for word in words) - nothing
    # Without a window, a sliding layer keeps every token.
    return Attention(full, sliding, other, state) if window else Attention(full + sliding, 0, other, state)


def _by_window(text: Mapping[str, Any], layers: int, window: int | None, model_type: str | None) -> Attention | None:
    if window is None:
        return Attention(layers)
    if model_type in MIXED_BY_LAYER:
        first = text.get("max_window_layers")
        full = min(first, layers) if isinstance(first, int) and first >= 0 else None
        return None if full is None else Attention(full, layers - full)
    return Attention(0, layers) if model_type in ALL_SLIDING else None
