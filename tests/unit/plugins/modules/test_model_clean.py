# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module model_clean: its options. Its implementation has tests of its own."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.modules import model_clean

from .conftest import RunModule


def test_the_implementation_gets_the_options(take: RunModule) -> None:
    given = take(model_clean, store="/mnt/models")
    assert "node_call" not in given and given["keep"] == 2


def test_a_store_is_required(run_module: RunModule) -> None:
    said = run_module(model_clean, keep=1)
    assert said["failed"] and "store" in said["msg"]
