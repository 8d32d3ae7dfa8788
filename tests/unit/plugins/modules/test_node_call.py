# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module node_call: it checks the options of the called module, and shows neither its own option nor secrets."""

from __future__ import annotations

from ansible_collections.baremetal.inference.plugins.modules import engine_drain, engine_plan, node_call

from .conftest import RunModule


def test_options_of_the_called_module_are_checked(run_module: RunModule) -> None:
    assert "reason" in run_module(engine_drain, name="main", owner="me")["msg"]
    assert "owner" in run_module(engine_drain, name="main")["msg"]
    assert "release" in run_module(engine_drain, name="main", owner="me", reason="x", release=2)["msg"]


def test_a_node_without_the_library_asks_for_the_library(run_module: RunModule) -> None:
    said = run_module(engine_drain, name="main", owner="me", state="undrained")
    assert said["library_missing"] and not said["changed"]
    assert "node_call" not in said.get("invocation", {}).get("module_args", {})


def test_secrets_of_the_called_module_stay_secret(run_module: RunModule) -> None:
    given = {"instances": [], "models": {}, "image": "i", "user": "u"}
    said = run_module(engine_plan, **given, secret_environment={"VLLM_API_KEY": "s3cret-value"})
    assert said["library_missing"] and "s3cret-value" not in str(said)


def test_a_task_that_calls_this_module_is_refused(run_module: RunModule) -> None:
    said = run_module(node_call)
    assert said["failed"] and "needs its action plugin" in said["msg"]
