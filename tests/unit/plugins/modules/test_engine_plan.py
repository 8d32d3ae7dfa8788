# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module engine_plan: its options and its secrets. Its implementation has tests of its own."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.modules import engine_plan

from .conftest import RunModule


def test_the_implementation_gets_the_options(take: RunModule) -> None:
    given = take(
        engine_plan, instances=[], models={}, image="i", user="u", secret_environment={"VLLM_API_KEY": "s3cret-value"}
    )
    assert "node_call" not in given and "s3cret-value" not in str(given)


def test_an_unknown_setting_is_refused(run_module: RunModule) -> None:
    said = run_module(engine_plan, instances=[], models={}, image="i", user="u", settings={"gpu": "0"})
    assert said["failed"] and "gpu" in said["msg"]


def test_an_agent_needs_a_port(run_module: RunModule) -> None:
    said = run_module(engine_plan, instances=[], models={}, image="i", user="u", agent={"address": "127.0.0.1"})
    assert said["failed"] and "port" in said["msg"]
