# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module node_cleanup: its options. Its implementation has tests of its own."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.modules import node_cleanup

from .conftest import RunModule


def test_the_implementation_gets_the_options(take: RunModule) -> None:
    given = take(node_cleanup, logs=False)
    assert "node_call" not in given and given["images"] is True


def test_an_unknown_option_is_refused(run_module: RunModule) -> None:
    said = run_module(node_cleanup, containers=True)
    assert said["failed"] and "containers" in said["msg"]
