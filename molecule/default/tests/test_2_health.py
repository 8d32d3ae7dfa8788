# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent's answers to a gateway about a real engine: healthy, hung, paused and drained."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from node import Node, changes, wait_for

ASK = "import socket; c = socket.create_connection(('127.0.0.1', 5004), 5); "
ASK += "c.sendall(b'{}\\n'); print(c.recv(500).decode())"


def agent_answer(node: Node, instance: str = "main") -> str:
    """The agent's answer to a gateway about an instance."""
    return node.run(f'python3 -c "{ASK.format(instance)}"', check=False)


def up(node: Node) -> bool:
    return agent_answer(node) == "up ready"


def verdict(node: Node, instance: str = "main") -> dict[str, Any]:
    """The agent's last record of the instance."""
    return dict(json.loads(node.run(f"cat /var/lib/inference/probe/{instance}.json", check=False) or "{}"))


@pytest.fixture
def resumed(used: list[Node]) -> Iterator[None]:
    """After the test, let stopped processes continue, and wait until the engine is healthy."""
    yield
    for node in used:
        node.run("pkill -CONT -f VLLM::EngineCor[e]; docker unpause vllm-main; inferctl undrain main", check=False)
        wait_for("the engine is healthy again", partial(up, node), 60)


def test_a_healthy_engine_is_up(node: Node) -> None:
    wait_for("the agent reports a healthy engine", partial(up, node), 30)
    assert verdict(node)["verdict"] == "healthy"
    assert agent_answer(node, "nobody").startswith("down #stopped: no instance of this name")
    answer = json.loads(node.run("inferctl probe --json"))
    assert [(item["instance"], item["verdict"]) for item in answer["instances"]] == [("main", "healthy")]
    entry = json.loads(node.run("journalctl INFERENCE_INSTANCE=main --output=json --lines=1"))
    assert entry["INFERENCE_VERDICT"] == "healthy" and entry["_SYSTEMD_UNIT"] == "inference-agent.service"


@pytest.mark.full
@pytest.mark.usefixtures("resumed")
def test_a_hung_engine_core_is_down_within_45_seconds(deb12: Node, api_key: str) -> None:
    """/health still answers 200; the probe, the answer to the gateway and the status report the hang."""
    pid = deb12.engine_pid()
    deb12.run("pkill -STOP -f VLLM::EngineCor[e]")
    began = time.monotonic()
    wait_for("the agent sees the hang", lambda: agent_answer(deb12).startswith("down #hung"), 60)
    assert time.monotonic() - began < 45
    assert deb12.request("/health")[0] == 200
    assert json.loads(deb12.run("inferctl status --json", check=False))["healthy"] is False
    assert json.loads(deb12.run("inferctl probe main --json", check=False))["instances"][0]["verdict"] == "hung"
    # A new agent does not admit the engine.
    deb12.run("systemctl restart inference-agent")
    assert agent_answer(deb12).startswith("down #hung")
    deb12.run("pkill -CONT -f VLLM::EngineCor[e]")
    wait_for("the engine is healthy again", partial(up, deb12), 40)
    assert deb12.ask(key=api_key) == "I am tiny-a."
    # The agent does not restart engines: recovery does.
    assert deb12.engine_pid() == pid


@pytest.mark.full
@pytest.mark.usefixtures("resumed")
def test_a_paused_container_is_down(deb13: Node) -> None:
    """A paused engine answers nothing, not even /metrics."""
    deb13.run("docker pause vllm-main")
    wait_for("the agent sees the hang", lambda: agent_answer(deb13).startswith("down #hung"), 75)
    assert "/metrics does not answer either" in verdict(deb13)["detail"]
    deb13.run("docker unpause vllm-main")
    wait_for("the engine is healthy again", partial(up, deb13), 40)


@pytest.mark.full
@pytest.mark.usefixtures("resumed")
def test_a_drain_lasts_until_undrain_or_its_time(deb13: Node, api_key: str) -> None:
    drained = json.loads(deb13.run("inferctl drain main --reason 'a test' --for 1h --json"))
    assert drained["changed"] is True
    assert agent_answer(deb13) == "drain"
    # The engine still answers requests that reach it.
    assert deb13.ask(key=api_key) == "I am tiny-a."
    assert "a test" in deb13.run("inferctl status") and "a test" in deb13.run("inferctl drains")
    # site.yml does not fail because of the drain, and does not end it.
    assert changes(deb13.site()) == 0
    assert agent_answer(deb13) == "drain"
    assert json.loads(deb13.run("inferctl undrain main --json"))["changed"] is True
    assert agent_answer(deb13) == "up ready"
    deb13.run("inferctl drain main --reason 'a test' --for 3s")
    wait_for("the drain ends by itself", partial(up, deb13), 10)


def test_an_engine_keeps_running_while_the_agent_restarts_or_dies(deb13: Node, api_key: str) -> None:
    def invocation() -> str:
        return deb13.run("systemctl show --value --property=InvocationID inference-agent")

    pid, seen = deb13.engine_pid(), set()
    for action in ("restart", "kill --signal=STOP", "kill --signal=KILL"):
        seen.add(invocation())
        deb13.run(f"systemctl {action} inference-agent")
        wait_for(f"another agent after {action}", lambda: invocation() not in seen, 90)
        wait_for("the agent answers", partial(up, deb13), 30)
    assert deb13.engine_pid() == pid
    assert deb13.ask(key=api_key) == "I am tiny-a."


def test_metrics_appear_where_node_exporter_reads_them(deb13: Node) -> None:
    """The directory appears after the agent has started, as when node_exporter is installed later."""
    place = "/var/lib/prometheus/node-exporter"
    deb13.run(f"mkdir -p {place}")
    try:
        metrics = f"cat {place}/inference-probe.prom"
        wait_for("metrics", lambda: "inference_probe_timestamp_seconds" in deb13.run(metrics, check=False), 60)
        assert 'inference_probe_verdict{name="main",verdict="healthy"} 1' in deb13.run(metrics)
        assert deb13.run(f"stat -c %a {place}/inference-probe.prom") == "644"
    finally:
        deb13.run("rm -r /var/lib/prometheus; systemctl restart inference-agent")
