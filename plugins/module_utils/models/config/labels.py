# Copyright: (c) 2026, the baremetal.inference contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counts the classes of a classifier. Private to the collection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .values import as_dict, as_list, positive

KEYS = frozenset({"num_labels", "id2label", "classifier_from_token", "method", "is_original_qwen3_reranker"})
"""The keys of config.json and `hf-overrides` that decide the number."""

TWO_TOKENS = "from_2_way_softmax"
"""The method that computes one score from the probabilities of two tokens (vllm/model_executor/models/adapters.py)."""


def labels(raw: Mapping[str, Any], text: Mapping[str, Any]) -> int | None:
    """The number of classes. None without these keys: the engine then assumes 2 (PreTrainedConfig).

    A generating model that serves as a classifier names tokens in `classifier_from_token`. Each token is a class. But
    two tokens that give one score (TWO_TOKENS, original Qwen3 rerankers) are one class. Without such tokens, the number
    of entries in `id2label` counts, or else `num_labels`.
    """
    tokens = as_list(raw.get("classifier_from_token")) or as_list(text.get("classifier_from_token"))
    if tokens:
        method = raw.get("method") or text.get("method")
        return 1 if method == TWO_TOKENS or raw.get("is_original_qwen3_reranker") is True else len(tokens)
    return len(as_dict(raw.get("id2label"))) or positive(raw.get("num_labels"))
