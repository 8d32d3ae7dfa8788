# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
# Its libraries are the engine image's, not the test tools'.
# mypy: disable-error-code="import-not-found"
"""Makes a tiny embedding model and a tiny cross-encoder. The seed is fixed and nothing is learned: the same text gives
the same numbers, and another text gives other numbers. Tests need no more.
"""

from __future__ import annotations

from transformers import LlamaConfig, LlamaForSequenceClassification, LlamaModel


def embedding(config: LlamaConfig) -> LlamaModel:
    """Texts become vectors of `hidden_size` numbers."""
    return LlamaModel(config)


def cross_encoder(config: LlamaConfig) -> LlamaForSequenceClassification:
    """Two texts become one score."""
    config.num_labels = 1
    return LlamaForSequenceClassification(config)
