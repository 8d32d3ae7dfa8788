# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module model: each state has what it needs, and the token stays secret. Its implementation has own tests."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.modules import model

from .conftest import RunModule


def test_the_implementation_gets_the_options(take: RunModule) -> None:
    given = take(model, state="planned", store="/mnt/models", models={}, hub_token="s3cret-value")
    assert "node_call" not in given and "s3cret-value" not in str(given)


def test_what_is_published_needs_a_store(run_module: RunModule) -> None:
    said = run_module(model, models={})
    assert said["failed"] and "store" in said["msg"]


def test_an_origin_that_there_is_not(run_module: RunModule) -> None:
    said = run_module(model, store="/mnt/models", models={}, origin="hub")
    assert said["failed"] and "controller, node" in said["msg"]
