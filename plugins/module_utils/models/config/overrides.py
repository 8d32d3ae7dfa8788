# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Applies `hf-overrides` of an entry to a configuration, as far as they change the length of a request or the model's
tasks. Private to the collection."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from . import labels
from .config import Config
from .declared import TEXT_CONFIGS
from .positions import read_length, read_rope
from .values import as_dict, as_list, positive

KEY = "hf-overrides"
"""The flag."""

UNDERSTOOD = frozenset(
    {"max_position_embeddings", "rope_parameters", "rope_scaling", "original_max_position_embeddings", "architectures"}
    | labels.KEYS
)
"""Keys whose effect is computed."""

_UNDERSTOOD_IN_PART = UNDERSTOOD - {"architectures", "id2label", "num_labels", "is_original_qwen3_reranker"}
"""Keys whose effect is computed also in a dictionary of TEXT_CONFIGS."""


def read(value: Any) -> dict[str, Any]:
    """The overrides, from a dictionary or a text with JSON; empty for another value."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return as_dict(value)


def unknown(overrides: Mapping[str, Any]) -> list[str]:
    """The keys whose effect is not computed; `PART.KEY` for the key of a language part."""
    found = [str(key) for key in set(overrides) - UNDERSTOOD - set(TEXT_CONFIGS)]
    for part in TEXT_CONFIGS:
        found += [f"{part}.{key}" for key in set(as_dict(overrides.get(part))) - _UNDERSTOOD_IN_PART]
    return sorted(found)


def of_entry(config: Config, flags: Mapping[str, Any]) -> Config:
    """The configuration with the `hf-overrides` of an entry's flags applied."""
    return overridden(config, read(flags.get(KEY)))


def overridden(config: Config, overrides: Mapping[str, Any]) -> Config:
    """The configuration with the overrides in UNDERSTOOD applied. Raises nothing, for any values."""
    text = dict(overrides)
    for key in TEXT_CONFIGS:
        text |= as_dict(overrides.get(key))
    names = tuple(name for name in as_list(overrides.get("architectures")) if isinstance(name, str))
    number = labels.labels(overrides, text)
    if names or number:
        config = replace(config, architectures=names or config.architectures, labels=number or config.labels)
    return _longer(config, text)


def _longer(config: Config, text: Mapping[str, Any]) -> Config:
    """The configuration with its length and its rope replaced."""
    positions = positive(text.get("max_position_embeddings")) or config.max_positions
    rope = read_rope(text) if {"rope_parameters", "rope_scaling"} & set(text) else config.rope
    if (positions, rope) == (config.max_positions, config.rope) or positions is None:
        return config
    # If the length is less than the positions allow, another file limits it, and overrides do not change this.
    old = read_length(config.max_positions, config.rope, None, config.model_type)
    limited = config.max_length if config.max_length and old and config.max_length < old else None
    longest = read_length(positions, rope, None, config.model_type)
    longest = min(longest, limited) if longest and limited else longest
    default = config.default_length if config.rope and config.rope.type == "longrope" else longest
    return replace(config, max_positions=positions, rope=rope, max_length=longest, default_length=default)
