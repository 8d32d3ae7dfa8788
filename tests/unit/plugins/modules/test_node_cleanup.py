# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module node_cleanup: what it leaves alone. Its implementation has tests of its own."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.modules import node_cleanup

from .conftest import RunModule


def test_a_node_without_the_library_asks_for_the_library(run_module: RunModule) -> None:
    said = run_module(node_cleanup, logs=False)
    assert said["library_missing"] and not said["changed"]
    given = said["invocation"]["module_args"]
    assert "node_call" not in given and given["images"] is True


def test_an_option_that_there_is_not(run_module: RunModule) -> None:
    said = run_module(node_cleanup, containers=True)
    assert said["failed"] and "containers" in said["msg"]
