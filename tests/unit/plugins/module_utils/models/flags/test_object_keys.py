# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of keys of JSON flags: its flags exist, and each flag has sorted keys, each once."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.module_utils.models.flags import object_keys, versions


def test_each_flag_of_the_table_is_a_flag_of_its_version() -> None:
    flags = versions.known()[object_keys.VERSION]
    assert object_keys.KEYS, "the table has flags"
    for name, keys in object_keys.KEYS.items():
        assert name in flags, name
        assert list(keys) == sorted(set(keys)) and keys, name
    for name, choices in object_keys.CHOICES.items():
        assert choices and set(choices) <= set(object_keys.KEYS[name]), name
        assert all(list(values) == sorted(set(values)) and values for values in choices.values()), name


def test_keys_that_operators_write_are_known() -> None:
    """The engine's documentation of these flags has the keys."""
    assert "method" in object_keys.KEYS["speculative-config"]
    assert {"mode", "cudagraph_mode"} <= set(object_keys.KEYS["compilation-config"])
    assert "kv_connector" in object_keys.KEYS["kv-transfer-config"]
    assert "pooling_type" in object_keys.KEYS["pooler-config"]
    assert {"ngram", "draft_model", "mtp"} <= set(object_keys.CHOICES["speculative-config"]["method"])
