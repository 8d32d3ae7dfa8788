# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the sizes of multi-head latent attention (MLA). Private to the collection."""

from __future__ import annotations

from dataclasses import dataclass

from .class_defaults import TYPES
from .values import Reader

MLA_TYPES = frozenset(
    {
        *("axk1", "deepseek_v2", "deepseek_v3", "deepseek_v32", "deepseek_v4", "deepseek_v41", "dots3_note"),
        *("deepseek_mtp", "k3_dspark", "glm5_next", "glm5_next_text", "glm_moe_dsa", "glm4_moe_lite"),
        *("glm4_moe_lite_mtp", "kimi_k2", "kimi_linear", "longcat_flash", "pangu_ultra_moe", "pangu_ultra_moe_mtp"),
        *("bailing_hybrid", "bailing_hybrid_mtp", "bailing_hybrid_v3_mtp", "hy_v4", "hy_v4_mtp"),
    }
)
"""Types that the engine serves with latent attention (is_deepseek_mla). For other types, such as minicpm3, the engine's
own classes keep keys and values for each head."""


@dataclass(frozen=True)
class Mla:
    """Multi-head latent attention: one compressed vector for all heads instead of keys and values for each."""

    kv_lora_rank: int
    qk_rope_head_dim: int
    qk_nope_head_dim: int | None = None
    v_head_dim: int | None = None
    q_lora_rank: int | None = None


def latent(read: Reader, model_type: str | None) -> Mla | None:
    """Latent attention, if the engine uses it for this type; else None.

    An unknown type, and a type that the engine runs with transformers' code, has latent attention if the configuration
    has the keys for it (use_mla in vllm/config/model.py).

    The engine's kernels only look back, so a model that also looks ahead (`is_causal` false) has keys and values.
    """
    row = TYPES.get(model_type or "")
    own = row is not None and not row.adopted
    if (own and model_type not in MLA_TYPES) or read.value("is_causal") is False:
        return None
    if read.value("compress_ratios") is not None and model_type in MLA_TYPES:
        return _one_head(read)
    rank, rope = read.size("kv_lora_rank"), read.size("qk_rope_head_dim")
    if rank is None or (rope is None and model_type not in MLA_TYPES):
        return None
    nope, value, query = (read.size(key) for key in ("qk_nope_head_dim", "v_head_dim", "q_lora_rank"))
    return Mla(rank, rope or 0, nope, value, query)


def _one_head(read: Reader) -> Mla | None:
    """The sizes of a model that compresses tokens, such as DeepSeek V4: one head of keys, which are also the values.

    The last `qk_rope_head_dim` numbers of a head have the positions.
    """
    size, rope = read.size("head_dim"), read.size("qk_rope_head_dim") or 0
    return Mla(size - rope, rope, q_lora_rank=read.size("q_lora_rank")) if size and size > rope else None


def cached_size(mla: Mla | None, model_type: str | None) -> int | None:
    """The size of a head as the engine reports it: what it keeps of a token.

    None without latent attention, and for a type outside of MLA_TYPES, whose own size the engine reports.
    """
    return mla.kv_lora_rank + mla.qk_rope_head_dim if mla and model_type in MLA_TYPES else None
