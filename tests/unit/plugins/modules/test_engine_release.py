# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module engine_release: its options and its secrets. Its implementation has tests of its own."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.modules import engine_release

from .conftest import RunModule


def test_the_implementation_gets_the_options(take: RunModule) -> None:
    given = take(
        engine_release,
        instances=[],
        models={},
        image="i",
        user="u",
        places={},
        secret_environment={"VLLM_API_KEY": "s3cret-value"},
    )
    assert "node_call" not in given and "s3cret-value" not in str(given)


def test_the_option_places_is_required(run_module: RunModule) -> None:
    said = run_module(engine_release, instances=[], models={}, image="i", user="u")
    assert said["failed"] and "places" in said["msg"]
