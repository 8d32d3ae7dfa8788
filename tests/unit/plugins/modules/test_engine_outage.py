# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module engine_outage: its options. Its implementation has tests of its own."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.modules import engine_outage

from .conftest import RunModule


def test_the_implementation_gets_the_options(take: RunModule) -> None:
    given = take(engine_outage, names=["main"], owner="maintenance", state="ended")
    assert "node_call" not in given and (given["seconds"], given["last"]) == (20, [])


def test_an_outage_that_begins_needs_a_reason(run_module: RunModule) -> None:
    said = run_module(engine_outage, names=["main"], owner="maintenance")
    assert said["failed"] and "reason" in said["msg"]
