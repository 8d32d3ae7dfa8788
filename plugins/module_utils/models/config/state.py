# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Computes the size of the state that a layer without keys and values keeps of a request. Private to the collection.

Source: vLLM 0.32.0, MambaStateShapeCalculator in vllm/model_executor/layers/mamba/mamba_utils.py, and
get_mamba_state_shape_from_config of the models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .values import positive

LARGEST_FACTOR = 1000
"""Upper limit of the factor between the hidden size and the inner width, far above that of any model."""


@dataclass(frozen=True)
class State:
    """Number of values that one layer keeps of one request, on all tensor-parallel ranks together. Values of the
    convolution have the dtype of the cache; values of the recurrence have `dtype` (None: the cache's dtype)."""

    convolution: int
    recurrence: int = 0
    dtype: str | None = None


def state(text: Mapping[str, Any], hidden: int | None) -> State | None:
    """The state of one layer; None if unknown."""
    found = _delta_net(text) or _short_convolution(text, hidden) or _many_heads(text, hidden) or _plain(text, hidden)
    dtype = text.get("mamba_ssm_cache_dtype")
    known = isinstance(dtype, str) and dtype in ("float32", "float16", "bfloat16")
    return State(*found, dtype if known else None) if found else None


def _sizes(text: Mapping[str, Any], *names: tuple[str, ...]) -> list[int] | None:
    """One size for each group of names; None if a group has no size."""
    found = [next((size for key in group if (size := positive(text.get(key)))), None) for group in names]
    return [size for size in found if size] if all(found) else None


def _delta_net(text: Mapping[str, Any]) -> tuple[int, int] | None:
    """gated_delta_net_state_shape."""
    keys = ("linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim")
    sizes = _sizes(text, *((key,) for key in keys), ("linear_conv_kernel_dim",))
    if sizes is None:
        return None
    key_heads, value_heads, key_size, value_size, kernel = sizes
    width = 2 * key_heads * key_size + value_heads * value_size
    return width * (kernel - 1), value_heads * value_size * key_size


def _short_convolution(text: Mapping[str, Any], hidden: int | None) -> tuple[int, int] | None:
    """short_conv_state_shape."""
    sizes = _sizes(text, ("conv_L_cache",))
    width = positive(text.get("conv_dim")) or hidden
    return (width * (sizes[0] - 1), 0) if sizes and width else None


def _many_heads(text: Mapping[str, Any], hidden: int | None) -> tuple[int, int] | None:
    """mamba2_state_shape."""
    heads = ("mamba_num_heads", "mamba_n_heads", "n_mamba_heads", "num_heads")
    sizes = _sizes(
        text,
        heads,
        ("ssm_state_size", "mamba_d_state", "state_size"),
        ("conv_kernel", "mamba_d_conv"),
        ("n_groups", "mamba_n_groups", "mamba_ngroups"),
    )
    inner = positive(text.get("mamba_d_ssm")) or _inner(text, hidden)
    if sizes is None:
        return None
    count, states, kernel, groups = sizes
    if size := _sizes(text, ("mamba_head_dim", "mamba_d_head", "mamba_headdim")):
        inner = count * size[0]
    return None if inner is None else _with_groups(inner, groups, states, kernel)


def _with_groups(width: int, groups: int, states: int, kernel: int) -> tuple[int, int]:
    return (width + 2 * groups * states) * (kernel - 1), width * states


def _plain(text: Mapping[str, Any], hidden: int | None) -> tuple[int, int] | None:
    """mamba1_state_shape."""
    sizes = _sizes(text, ("state_size", "mamba_d_state"), ("conv_kernel", "mamba_d_conv"))
    inner = _inner(text, hidden)
    return (inner * (sizes[1] - 1), inner * sizes[0]) if sizes and inner else None


def _inner(text: Mapping[str, Any], hidden: int | None) -> int | None:
    """The inner width of a layer: a multiple of the hidden size."""
    factor = next((text[key] for key in ("mamba_expand", "expand") if isinstance(text.get(key), (int, float))), 0)
    return int(factor * hidden) if hidden and 0 < factor < LARGEST_FACTOR else None
