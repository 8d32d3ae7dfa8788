# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module engine_drain: a drain has a reason. Its implementation has tests of its own."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.modules import engine_drain

from .conftest import RunModule


def test_the_implementation_gets_the_options(take: RunModule) -> None:
    given = take(engine_drain, name="main", owner="me", state="undrained")
    assert "node_call" not in given and given["reason"] is None


def test_a_drain_needs_a_reason(run_module: RunModule) -> None:
    said = run_module(engine_drain, name="main", owner="me")
    assert said["failed"] and "reason" in said["msg"]
