# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module node_recovery: its options and its secret. Its implementation has tests of its own."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.modules import node_recovery

from .conftest import RunModule


def test_the_implementation_gets_the_options(take: RunModule) -> None:
    given = take(node_recovery, webhook="https://s3cret-value")
    assert "node_call" not in given and "s3cret-value" not in str(given)


def test_a_budget_is_a_number(run_module: RunModule) -> None:
    said = run_module(node_recovery, budget="many")
    assert said["failed"] and "budget" in said["msg"]
