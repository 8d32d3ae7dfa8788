# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the heads of keys and values, also if kinds of layers have different heads. Private to the collection."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .attention import FULL, SLIDING
from .declared import layer_sizes
from .values import Reader, as_dict, as_list, positive, text_or_none

FALCON_TYPES = frozenset({"falcon", "RefinedWeb", "RefinedWebModel"})
"""Types for which `multi_query` wins over a number of KV heads (FalconModelArchConfigConvertor)."""

LARGEST_RATIO = 1000
"""Upper limit of `head_ratio`, far above that of any model."""


@dataclass(frozen=True)
class Heads:
    """Number and size of the heads of keys and values in a layer. None if unknown."""

    count: int | None = None
    size: int | None = None


def heads_by_kind(
    text: Mapping[str, Any], usual: Heads, words: Sequence[str], model_type: str | None
) -> tuple[Heads | None, Heads | None]:
    """Heads of the layers that keep every token, and of those with a window; None if all layers have equal heads."""
    full, sliding = _overrides(text, words, model_type)
    if not full and not sliding:
        return None, None
    return _with(usual, full), _with(usual, sliding)


def _with(usual: Heads, changes: Mapping[str, int]) -> Heads:
    return Heads(changes.get("num_key_value_heads", usual.count), changes.get("head_dim", usual.size))


def _overrides(
    text: Mapping[str, Any], words: Sequence[str], model_type: str | None
) -> tuple[dict[str, int], dict[str, int]]:
    full: dict[str, int] = {}
    sliding: dict[str, int] = {}
    given = text.get("per_layer_config")
    for index, layer in as_dict(given).items():
        position = int(index) if re.fullmatch(r"[0-9]{1,4}", str(index)) else len(words)
        word = words[position] if position < len(words) else ""
        for kind, changes in ((FULL, full), (SLIDING, sliding)):
            if word in kind:
                _take(changes, as_dict(layer))
    # An empty dictionary means that all layers are alike.
    if isinstance(given, dict):
        return full, sliding
    for word, sizes in layer_sizes(model_type).items():
        if word in words:
            _take(full if word in FULL else sliding, sizes)
    own = {"head_dim": text.get("global_head_dim")}
    if text.get("attention_k_eq_v") is not False:
        own["num_key_value_heads"] = text.get("num_global_key_value_heads")
    if any(word in FULL for word in words):
        full |= {key: size for key, value in own.items() if (size := positive(value))}
    return full, sliding


def _take(changes: dict[str, int], sizes: Mapping[str, Any]) -> None:
    """Add the sizes of a layer, and keep the larger value of each: the engine uses the largest of a kind of layers."""
    for key in ("head_dim", "num_key_value_heads"):
        if size := positive(sizes.get(key)):
            changes[key] = max(size, changes.get(key, 0))


def head_size(text: Mapping[str, Any], hidden: int | None, heads: int | None) -> int | None:
    """The size of a head: its share of the hidden size. For some types, it is larger by a factor."""
    if not hidden or not heads:
        return None
    ratio = text.get("head_ratio")
    return int(hidden * (ratio if isinstance(ratio, (int, float)) and 0 < ratio < LARGEST_RATIO else 1)) // heads


def kv_heads(text: Mapping[str, Any], read: Reader, heads: int | None) -> int | None:
    """The number of KV heads. Without a key, it equals the number of attention heads; multi-query models have one."""
    one = text.get("multi_query") is True and not text.get("new_decoder_architecture")
    if one and text_or_none(text.get("model_type")) in FALCON_TYPES:
        return 1
    if text.get("model_type") == "dbrx":
        return positive(as_dict(text.get("attn_config")).get("kv_n_heads")) or 1
    if heads and (group := _group(text)):
        return heads // group
    names = ("n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num", "num_attention_groups")
    return read.size(*names) or (1 if one else heads)


def _group(text: Mapping[str, Any]) -> int | None:
    """The heads for each KV head in the first block with attention, for an architecture with `block_configs`."""
    blocks = (as_dict(as_dict(block).get("attention")) for block in as_list(text.get("block_configs")))
    with_attention = (one for one in blocks if one and not (one.get("no_op") or one.get("replace_with_linear")))
    return next((positive(block.get("n_heads_in_group")) for block in with_attention), None)
