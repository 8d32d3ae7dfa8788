# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module engine_swap: what a swap is told. Its implementation has tests of its own."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.modules import engine_swap

from .conftest import RunModule


def test_the_implementation_gets_the_options(take: RunModule) -> None:
    given = take(engine_swap, name="main", release=2)
    assert "node_call" not in given and given["pin"] is True


def test_a_release_is_required(run_module: RunModule) -> None:
    said = run_module(engine_swap, name="main")
    assert said["failed"] and "release" in said["msg"]
