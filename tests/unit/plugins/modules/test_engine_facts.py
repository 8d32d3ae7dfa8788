# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module engine_facts: its options. Its implementation has tests of its own."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.modules import engine_facts

from .conftest import RunModule


def test_the_implementation_gets_the_options(take: RunModule) -> None:
    given = take(engine_facts, names=["main"])
    assert given["gather_subset"] == ["instances"]


def test_an_unknown_subset_is_refused(run_module: RunModule) -> None:
    said = run_module(engine_facts, gather_subset=["all", "bridges"])
    assert said["failed"] and "instances, !instances, update" in said["msg"]
