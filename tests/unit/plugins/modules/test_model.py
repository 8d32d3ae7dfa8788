# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module model: its required options, and its secret token. Its implementation has tests of its own."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.modules import model

from .conftest import RunModule


def test_the_implementation_gets_the_options(take: RunModule) -> None:
    given = take(model, state="planned", store="/mnt/models", models={}, hub_token="s3cret-value")
    assert "node_call" not in given and "s3cret-value" not in str(given)


def test_a_published_model_needs_a_store(run_module: RunModule) -> None:
    said = run_module(model, models={})
    assert said["failed"] and "store" in said["msg"]


def test_an_unknown_origin_is_refused(run_module: RunModule) -> None:
    said = run_module(model, store="/mnt/models", models={}, origin="hub")
    assert said["failed"] and "controller, node" in said["msg"]
