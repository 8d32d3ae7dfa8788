# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module node_facts: its subsets. Its implementation has tests of its own."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.modules import node_facts

from .conftest import RunModule


def test_the_implementation_gets_the_options(take: RunModule) -> None:
    given = take(node_facts, gather_subset=["status"])
    assert "node_call" not in given and given["fail_on"] == "never"


def test_an_unknown_subset_is_refused(run_module: RunModule) -> None:
    said = run_module(node_facts, gather_subset=["gpus"])
    assert said["failed"] and "maintenance" in said["msg"]
