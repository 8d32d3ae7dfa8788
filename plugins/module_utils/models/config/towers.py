# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Computes the parameters of a model's parts for images and sound. Private to the collection.

Such a part is an encoder of equal layers: attention with four projections, and a feed-forward of two or three matrices.
A projector of two matrices connects it to the language part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .values import Reader, text_or_none

GATED_TYPES = frozenset({"pixtral", "qwen2_5_vl", "qwen2_5_vl_vision"})
"""Types whose feed-forward has three matrices, whatever the name of their activation is."""

GATED_ACTIVATIONS = frozenset({"silu", "swish", "swiglu"})


def towers(parts: Sequence[Mapping[str, Any]], hidden: int | None) -> int | None:
    """Parameters of all parts together, 0 without parts; None if the size of a part is unknown."""
    found = [_tower(part, hidden) for part in parts]
    return None if None in found else sum(size for size in found if size)


def _tower(part: Mapping[str, Any], hidden: int | None) -> int | None:
    # Wrong sizes of a part are not reported. They only make the result unknown.
    read = Reader(part)
    width = read.size("embed_dim", "hidden_size", "d_model")
    layers = read.size("num_hidden_layers", "depth", "encoder_layers", "num_layers", most=1000)
    inner = read.size("intermediate_size", "encoder_ffn_dim")
    ratio = part.get("mlp_ratio")
    if inner is None and width and isinstance(ratio, (int, float)) and 0 < ratio < 100:
        inner = int(width * ratio)
    if not width or not layers or not inner or not hidden:
        return None
    kind, activation = (text_or_none(part.get(key)) for key in ("model_type", "hidden_act"))
    gated = kind in GATED_TYPES or activation in GATED_ACTIVATIONS
    return layers * (4 * width * width + (3 if gated else 2) * width * inner) + width * hidden + hidden * hidden
