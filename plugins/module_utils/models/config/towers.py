# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many parameters the parts of a model have that see or hear. Private to the collection.

Such a part is an encoder of equal layers: attention with four projections, and a feed-forward of two matrices, or of
three. With it goes a projector of two matrices into the language part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .values import Reader

GATED_TYPES = frozenset({"pixtral", "qwen2_5_vl", "qwen2_5_vl_vision"})
"""Types whose feed-forward has three matrices, whatever their activation is called."""

GATED_ACTIVATIONS = frozenset({"silu", "swish", "swiglu"})


def towers(parts: Sequence[Mapping[str, Any]], hidden: int | None) -> int | None:
    """Parameters of all parts together, 0 where there is none; None where one does not tell its sizes."""
    found = [_tower(part, hidden) for part in parts]
    return None if None in found else sum(size for size in found if size)


def _tower(part: Mapping[str, Any], hidden: int | None) -> int | None:
    # Problems of a part are not those of the language part: a size that is none leaves the answer open.
    read = Reader(part)
    width = read.size("embed_dim", "hidden_size", "d_model")
    layers = read.size("num_hidden_layers", "depth", "encoder_layers", "num_layers", most=1000)
    inner = read.size("intermediate_size", "encoder_ffn_dim")
    ratio = part.get("mlp_ratio")
    if inner is None and width and isinstance(ratio, (int, float)) and 0 < ratio < 100:
        inner = int(width * ratio)
    if not width or not layers or not inner or not hidden:
        return None
    gated = part.get("model_type") in GATED_TYPES or part.get("hidden_act") in GATED_ACTIVATIONS
    return layers * (4 * width * width + (3 if gated else 2) * width * inner) + width * hidden + hidden * hidden
