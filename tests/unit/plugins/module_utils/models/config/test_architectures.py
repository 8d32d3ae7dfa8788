# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of architectures that `make catalogue` has written."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.module_utils.models.config import tasks
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.architectures import ARCHITECTURES


def test_the_table_has_the_abilities_of_architectures() -> None:
    assert len(ARCHITECTURES) > 350
    assert ARCHITECTURES["LlamaForCausalLM"][:2] == ("generates", "stages")
    assert "transcribes" in ARCHITECTURES["WhisperForConditionalGeneration"]
    assert "scores pairs" in ARCHITECTURES["BertForSequenceClassification"]
    assert "generates" not in ARCHITECTURES["BertModel"]


def test_tasks_py_explains_every_word_of_the_table() -> None:
    assert tasks.__doc__ is not None
    assert all(f"`{word}`" in tasks.__doc__ for words in ARCHITECTURES.values() for word in words)
