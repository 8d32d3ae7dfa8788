# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The adapter of vLLM: command line, environment, metrics and requests."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.engine.adapters.contract import (
    CLASSIFY,
    EMBED,
    GENERATE,
    REWARD,
    SCORE,
    TOKEN_CLASSIFY,
    TOKEN_EMBED,
    TRANSCRIBE,
    Rank,
    Serving,
)
from ansible_collections.baremetal.inference.plugins.module_utils.engine.adapters.vllm import ADAPTER
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.catalogue import choose
from ansible_collections.baremetal.inference.plugins.module_utils.models.flags.check import OWNED_FLAGS

SERVING = Serving("10.0.0.5", 5005, start_timeout=1800, drain_timeout=300, cache_path="/cache/main")

SAMPLE = Path(__file__).parents[4] / "monitoring/samples/vllm-0.32.0.txt"
"""The names of all metrics of an engine, recorded."""


def test_the_command_line_has_the_model_and_the_address() -> None:
    assert ADAPTER.model_argv("/models/a", ["main", "a"]) == ["serve", "/models/a", "--served-model-name", "main", "a"]
    assert ADAPTER.model_argv("/models/a", ()) == ["serve", "/models/a"]
    assert " ".join(ADAPTER.server_argv(SERVING)) == "--host 10.0.0.5 --port 5005 --shutdown-timeout 300"


def test_the_flags_are_in_the_catalogue() -> None:
    words = [*ADAPTER.model_argv("/models/a", ["a"]), *ADAPTER.server_argv(SERVING), ADAPTER.config_file.flag]
    rendered = {word.removeprefix("--") for word in words if word.startswith("--")}
    assert rendered <= choose().flags.keys()
    assert ADAPTER.config_file.api_keys in choose().flags


def test_the_environment_has_the_timeouts_and_the_cache() -> None:
    assert ADAPTER.environment(SERVING) == {
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_WORKER_SHUTDOWN_TIMEOUT_SECONDS": "5",
        "VLLM_ENGINE_READY_TIMEOUT_S": "1800",
        "VLLM_CACHE_ROOT": "/cache/main",
    }
    assert ADAPTER.variables.api_key not in ADAPTER.variables.public


def test_each_rank_of_a_gang_has_its_own_flags() -> None:
    leader = Rank(0, nodes=2, address="10.0.0.1", leader="10.0.0.1", port=29510)
    follower = replace(leader, number=1, address="10.0.0.2")
    assert " ".join(ADAPTER.gangs.argv(leader)) == (
        "--distributed-executor-backend mp --nnodes 2 --node-rank 0 --master-addr 10.0.0.1 --master-port 29510"
    )
    assert ADAPTER.gangs.argv(follower)[-1] == "--headless" and "1" in ADAPTER.gangs.argv(follower)
    flags = {word.removeprefix("--") for word in ADAPTER.gangs.argv(follower) if word.startswith("--")}
    # The entry of a gang must not set these flags. On one node, an entry may set some of them.
    assert flags <= choose().flags.keys() & (OWNED_FLAGS.keys() | ADAPTER.gangs.flags)
    assert ADAPTER.gangs.flags == flags - OWNED_FLAGS.keys()


def test_the_environment_of_a_rank_has_its_address_and_network() -> None:
    network = {"GLOO_SOCKET_IFNAME": "bond0", "NCCL_IB_HCA": "=mlx5_0:1"}
    rank = Rank(1, nodes=2, address="10.0.0.2", leader="10.0.0.1", port=29510, network=network)
    assert ADAPTER.gangs.environment(rank) == {
        "VLLM_HOST_IP": "10.0.0.2",
        **network,
        "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS": "120",
    }
    assert ADAPTER.gangs.environment(replace(rank, network={})).keys() == {
        "VLLM_HOST_IP",
        "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS",
    }
    assert ADAPTER.gangs.computed.keys() <= ADAPTER.gangs.per_node


def test_the_engine_has_every_metric_that_the_adapter_names() -> None:
    names = set(SAMPLE.read_text().split())
    metrics = ADAPTER.metrics
    assert {
        *metrics.progress,
        *metrics.in_flight,
        *metrics.of_throughput,
        metrics.tokens_cached,
        metrics.started,
    } <= names


def test_every_task_has_a_request() -> None:
    tasks = {GENERATE, TRANSCRIBE, EMBED, SCORE, CLASSIFY, REWARD, TOKEN_EMBED, TOKEN_CLASSIFY}
    assert ADAPTER.requests.keys() == tasks


def test_the_script_that_checks_arguments_in_the_image_is_python() -> None:
    ast.parse(ADAPTER.argument_check.question)


@pytest.mark.parametrize(("entry", "share"), [({}, 0.92), ({"gpu-memory-utilization": 0.4}, 0.4)])
def test_the_share_of_memory_that_an_engine_claims_is_the_flag_or_the_default(
    entry: dict[str, Any], share: float
) -> None:
    assert ADAPTER.claimed_share(entry) == share
