# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module model_variants: its required options. Its implementation has tests of its own."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.modules import model_variants

from .conftest import RunModule


def test_the_implementation_gets_the_options(take: RunModule) -> None:
    given = take(model_variants, instances=[], models={}, state="checked")
    assert "node_call" not in given and given["origin"] == "node"


def test_a_published_variant_needs_a_store(run_module: RunModule) -> None:
    said = run_module(model_variants, instances=[], models={})
    assert said["failed"] and "store" in said["msg"]
