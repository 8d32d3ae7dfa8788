# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Renamed variables."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.module_utils.fleet.update.renamed import words


def test_each_renamed_variable_has_its_new_name() -> None:
    found = words(["vllm_update_watch_seconds", "vllm_address", "vllm_update_on_failure", "vllm_update_rollback"])
    assert found == (
        "vllm_update_on_failure is now called update_rollback; vllm_update_rollback is now called update_back;"
        " vllm_update_watch_seconds is now called update_watch_seconds"
    )
    assert words(["vllm_update_untold"]) == "vllm_update_untold is now called update_outdated_gateways"
    assert words(["update_watch_seconds", "vllm_user"]) == ""
