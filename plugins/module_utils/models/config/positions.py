# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the longest possible request: positions, and the rope that stretches them. Private to the collection.

Sources: vLLM 0.32.0, vllm/config/model.py (_get_and_verify_max_len) and derive_max_model_len_and_key in
vllm/transformers_utils/model_arch_config_convertor.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .values import Reader, as_dict, positive, text_or_none

LENGTH_KEYS = (
    *("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length"),
    *("max_target_positions", "max_sequence_length", "max_seq_length", "seq_len"),
)
"""The smallest of these values is the length, but model_max_length wins over all (derive_max_model_len_and_key)."""

SCALED_ALREADY = frozenset(
    {"su", "longrope", "llama3", "yarn", "deepseek_yarn", "deepseek_llama_scaling", "telechat3-yarn"}
)
"""Kinds of rope for which max_position_embeddings already includes the factor."""

DEFAULT_LENGTH = 2048
"""The engine's length if neither config.json nor the class of the model type has one. --max-model-len may exceed it."""


@dataclass(frozen=True)
class Rope:
    """How positions are stretched; lengths in tokens."""

    type: str | None = None
    factor: float | None = None
    original_max_positions: int | None = None


def max_positions(read: Reader) -> int | None:
    """The number of positions in the configuration; None without one."""
    lengths = [length for key in LENGTH_KEYS if (length := read.size(key)) is not None]
    return read.size("model_max_length") or min(lengths, default=None)


def _ropes(text: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The parameters of rope. In `rope_parameters`, they may be grouped by kind of layer."""
    for key in ("rope_parameters", "rope_scaling"):
        parameters = as_dict(text.get(key))
        inner = [part for part in parameters.values() if isinstance(part, dict)]
        if parameters:
            yield from inner or [parameters]


def read_rope(text: Mapping[str, Any]) -> Rope | None:
    """The first rope of any layer that stretches positions; else the first rope; None without one."""
    found = [
        Rope(
            text_or_none(one.get("rope_type")) or text_or_none(one.get("type")),
            float(factor) if isinstance(factor := one.get("factor"), (int, float)) and 0 < factor < 1e9 else None,
            positive(one.get("original_max_position_embeddings"))
            or positive(text.get("original_max_position_embeddings")),
        )
        for one in _ropes(text)
    ]
    return next((rope for rope in found if rope.factor), found[0] if found else None)


def read_length(positions: int | None, rope: Rope | None, tokenizer: int | None, model_type: str | None) -> int | None:
    """The largest number of tokens of a request that the engine accepts. `tokenizer` is the tokenizer's limit."""
    if positions is None:
        return None
    length = min(positions, tokenizer or positions)
    # Gemma 3's length already includes the factor, for every rope.
    if rope and rope.factor and rope.type not in SCALED_ALREADY and "gemma3" not in (model_type or ""):
        length = int(length * rope.factor)
    return length


def default_length(text: Mapping[str, Any], rope: Rope | None, longest: int | None) -> int | None:
    """The length that the engine accepts without --max-model-len. For longrope, the length without stretching."""
    if longest and rope and rope.type == "longrope":
        return positive(text.get("original_max_position_embeddings")) or longest
    return longest
