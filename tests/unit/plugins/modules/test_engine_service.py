# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module engine_service: its states, and the port of a bridge. Its implementation has tests of its own."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.modules import engine_service

from .conftest import RunModule


def test_the_implementation_gets_the_options(take: RunModule) -> None:
    given = take(engine_service, names=["main"])
    assert "node_call" not in given and given["state"] == "started"


def test_a_bridge_needs_a_port(run_module: RunModule) -> None:
    said = run_module(engine_service, names=["main"], bridge={"release": 1})
    assert said["failed"] and "port" in said["msg"]


def test_an_unknown_state_is_refused(run_module: RunModule) -> None:
    said = run_module(engine_service, names=["main"], state="restarted")
    assert said["failed"] and "started, ready, stopped, absent" in said["msg"]
