# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module engine_probe: each state has what it needs. Its implementation has tests of its own."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.modules import engine_probe

from .conftest import RunModule


def test_the_implementation_gets_the_options(take: RunModule) -> None:
    given = take(engine_probe, name="main", release=2)
    assert "node_call" not in given and given["timeout"] == 300


def test_a_probe_needs_a_release(run_module: RunModule) -> None:
    said = run_module(engine_probe, name="main")
    assert said["failed"] and "release" in said["msg"]


def test_a_watch_needs_its_seconds(run_module: RunModule) -> None:
    said = run_module(engine_probe, name="main", state="watched")
    assert said["failed"] and "seconds" in said["msg"]
