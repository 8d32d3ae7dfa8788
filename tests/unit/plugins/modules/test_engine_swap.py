# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module engine_swap: its options. Its implementation has tests of its own."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.modules import engine_swap

from .conftest import RunModule


def test_the_implementation_gets_the_options(take: RunModule) -> None:
    given = take(engine_swap, name="main", release=2, run_id="run1", terms={"watch_seconds": "5", "force": "no"})
    assert "node_call" not in given and given["pin"] is True
    # For an omitted term, the node's own value counts.
    assert {key: value for key, value in given["terms"].items() if value is not None} == {
        "watch_seconds": 5,
        "force": False,
    }


def test_a_swap_that_begins_needs_a_release(run_module: RunModule) -> None:
    said = run_module(engine_swap, name="main", run_id="run1")
    assert said["failed"] and "release" in said["msg"]


def test_unknown_terms_are_refused(run_module: RunModule) -> None:
    said = run_module(engine_swap, name="main", release=2, run_id="run1", terms={"watch": 5})
    assert said["failed"] and "watch" in said["msg"]
