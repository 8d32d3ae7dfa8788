# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module node_tool: its states. Its implementation has tests of its own."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.modules import node_tool

from .conftest import RunModule


def test_the_implementation_gets_the_options(take: RunModule) -> None:
    given = take(node_tool, keep=["/var/lib/x"])
    assert "node_call" not in given and given["state"] == "present"


def test_an_unknown_state_is_refused(run_module: RunModule) -> None:
    said = run_module(node_tool, state="latest")
    assert said["failed"] and "present, absent" in said["msg"]
