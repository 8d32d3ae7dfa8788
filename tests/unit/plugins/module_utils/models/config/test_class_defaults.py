# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of the values that the classes of models declare, which `make catalogue` has written."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.module_utils.models.config.class_defaults import TYPES
from ansible_collections.baremetal.inference.plugins.module_utils.models.config.declared import KEYS


def test_the_table_has_values_names_and_parts_that_the_classes_declare() -> None:
    assert len(TYPES) > 250
    assert TYPES["llama"].values["vocab_size"] == 32000
    assert TYPES["gpt2"].names["hidden_size"] == "n_embd"
    assert TYPES["gemma3"].parts["text_config"] == "gemma3_text"
    assert TYPES["gemma2"].layers == ("sliding_attention", "full_attention")
    assert TYPES["bitnet"].adopted and not TYPES["llama"].adopted


def test_the_library_reads_every_value_of_the_table() -> None:
    for name, row in TYPES.items():
        assert set(row.values) <= KEYS | set(row.names.values()), name
        assert {key for values in row.missing.values() for key in values} <= KEYS, name
