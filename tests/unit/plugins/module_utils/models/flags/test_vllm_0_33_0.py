# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The differences of vLLM 0.33.0. tests/unit/tools/test_catalogue.py shows that the tool has written them."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.module_utils.models.flags import vllm_0_32_0, vllm_0_33_0


def test_the_table_has_the_differences_that_the_engine_printed() -> None:
    assert vllm_0_33_0.VERSION == "0.33.0"
    assert set(vllm_0_33_0.ADDED) == {"monokernel", "reasoning-effort-map", "sleep-mode-backend", "watchdog-config"}
    assert vllm_0_33_0.REMOVED == ()
    assert vllm_0_33_0.CHANGED["tool-strict-level"] == {"optional": True}
    assert vllm_0_33_0.REMOVED_VALUES == {"spec-method": {"choices": ["medusa", "mlp_speculator"]}}


def test_every_entry_of_the_table_differs_from_0_32_0() -> None:
    before = vllm_0_32_0.FLAGS
    assert not set(vllm_0_33_0.ADDED) & set(before)
    for name, facts in vllm_0_33_0.CHANGED.items():
        assert all(before[name].get(key) != fact for key, fact in facts.items())
    for name, lists in vllm_0_33_0.ADDED_VALUES.items():
        assert all(not set(values) & set(before[name][key]) for key, values in lists.items())
    for name, lists in vllm_0_33_0.REMOVED_VALUES.items():
        assert all(set(values) <= set(before[name][key]) for key, values in lists.items())
