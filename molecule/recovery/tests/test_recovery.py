# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of a real engine: the node recovers the engine, or reports why it cannot.

The order matters: the first three faults are a series."""

from __future__ import annotations

import json
import os
import re
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from faults import RECORDS, Fault, load_seconds, more_steps, put, recorded, recovered, serves, steps, untouched
from node import PROJECT, Node, wait_for

LOAD = PROJECT / "molecule/shared/load.py"

SATURATED = float(os.environ.get("INFERENCE_SOAK_MINUTES") or 1) * 60
"""Seconds under load: at least twice the 20 to 30 s until the agent sees a hang."""


def alerts(node: Node) -> list[dict[str, Any]]:
    return [json.loads(line) for line in node.run("cat /root/alerts.jsonl", check=False).splitlines()]


def test_at_first_there_are_no_faults_no_steps_and_no_alerts(deb12: Node) -> None:
    wait_for("the engine serves", lambda: serves(deb12))
    assert steps(deb12) == [] and alerts(deb12) == []
    found = json.loads(deb12.run("inferctl doctor --json", check=False))
    assert [one for one in found["checks"] if one["status"] == "fail" or "broken" in one["message"]] == []
    assert json.loads(deb12.run("inferctl recover --json"))["instances"][0]["budget_left"] == 2
    RECORDS.append(Fault("(a load, for comparison)", None, load_seconds(deb12), 0, 0))


def at_work(node: Node) -> float:
    """The number of sequences in an engine, running or waiting."""
    counts = node.run("curl -s http://127.0.0.1:5005/metrics | grep '^vllm:num_requests_[rw][a-z]*{'", check=False)
    return sum(float(line.split()[-1]) for line in counts.splitlines())


def test_saturation_is_no_fault(deb12: Node) -> None:
    """The engine gets 200 requests at once, for longer than the agent needs to see a hang. `make soak` runs an hour."""
    wait_for("the engine serves", lambda: serves(deb12))
    pid, began, until = deb12.engine_pid(), time.time(), time.monotonic() + SATURATED
    before = len(steps(deb12))
    # One process on the node sends the requests: a process for each request would never reach 200 at once.
    put(deb12, "/root/load.py", LOAD.read_text())
    command = f"python3 /root/load.py http://127.0.0.1:5005 --close --clients 200 --seconds {SATURATED:.0f}"
    seen = []
    with ThreadPoolExecutor(1) as pool:
        load = pool.submit(deb12.run, command)
        while time.monotonic() < until - 2:
            time.sleep(2)
            seen.append(at_work(deb12))
        said = load.result()
    untouched(deb12, f"200 sequences at once for {SATURATED / 60:g} min", began, said)
    # Clients with answers at the same time ask again at the same time. Between two such waves, a fast engine is nearly
    # empty. During a wave, the engine is full, and the probe waits.
    assert statistics.quantiles(seen, n=10)[-1] >= 128 and statistics.median(seen) >= 32, seen
    assert deb12.engine_pid() == pid
    assert len(steps(deb12)) == before
    assert RECORDS[-1].lost == RECORDS[-1].refused == 0


def test_the_third_fault_in_a_row_opens_the_breaker(deb12: Node) -> None:
    deb12.run("pkill -STOP -f VLLM::EngineCor[e]")
    recovered(deb12, "engine core stopped", more_steps(deb12))
    deb12.run("docker pause vllm-main")
    recovered(deb12, "container paused", more_steps(deb12), 90)
    assert [(step["act"], step["verdict"]) for step in steps(deb12)] == [("restart", "hung")] * 2
    evidence = deb12.run("find /var/lib/inference/recovery/evidence/main -name processes.txt | sort | head -n1")
    assert " T " in deb12.run(f"cat {evidence}")

    deb12.run("docker rm --force vllm-main")
    began = time.time()
    wait_for("recovery gives up", lambda: recorded(deb12, "recovery/main.json").get("breaker"), 60)
    untouched(deb12, "third fault in a row", began, f"given up after {time.time() - began:.0f} s")
    assert recorded(deb12, "drain/main")["owner"] == "recovery"
    # systemd has restarted the engine, and it stays drained until an operator resets recovery.
    wait_for("the engine serves", lambda: deb12.ask() == "I am tiny-a.")
    time.sleep(5)
    (alert,) = alerts(deb12)
    assert (alert["event"], alert["instance"]) == ("recovery-gave-up", "main")
    assert "inferctl recover main --reset" in deb12.run("inferctl doctor engine", check=False)
    assert "BREAKER OPEN" in deb12.run("inferctl recover", check=False)
    deb12.run("inferctl recover main --reset")
    assert recorded(deb12, "drain/main") == {}


@pytest.mark.usefixtures("fresh")
def test_unit_and_environment_are_repaired(deb12: Node) -> None:
    good = deb12.run("cat /etc/systemd/system/vllm@main.service /etc/inference/env/main.env")
    deb12.run("echo rubbish >/etc/systemd/system/vllm@main.service; rm /etc/inference/env/main.env")
    assert json.loads(deb12.run("inferctl doctor engine-files --json", check=False))["verdict"] == "fail"
    answered = more_steps(deb12)
    deb12.run("docker kill vllm-main")
    recovered(deb12, "unit and environment damaged", answered)
    assert deb12.run("cat /etc/systemd/system/vllm@main.service /etc/inference/env/main.env") == good
    assert "rubbish" in deb12.run("cat /var/lib/inference/recovery/aside/main/*.service")
    assert "INFERENCE_ACT=repair" in deb12.run("journalctl INFERENCE_EVENT=recovery --output=export")


@pytest.mark.full
@pytest.mark.usefixtures("fresh")
def test_a_docker_that_hangs_is_restarted(deb12: Node) -> None:
    pid = deb12.engine_pid()
    answered = more_steps(deb12)
    deb12.run(f"systemctl kill --signal=STOP docker; kill -KILL {pid}")
    recovered(deb12, "Docker and engine hang", answered, 150)
    assert [step["act"] for step in steps(deb12)] == ["restart-docker"]


@pytest.mark.full
@pytest.mark.usefixtures("fresh")
def test_a_truncated_model_is_named_and_not_tried_for_ever(deb12: Node) -> None:
    weights = deb12.run("find /mnt/models -name '*.safetensors' | grep tiny-a | head -n1")
    deb12.run(f"cp {weights} /root/kept; truncate --size=1000 {weights}")
    sent = len(alerts(deb12))
    began = time.time()
    deb12.run("docker kill vllm-main")
    wait_for("recovery gives up", lambda: recorded(deb12, "recovery/main.json").get("breaker"), 240)
    untouched(deb12, "model truncated, engine killed", began, f"given up after {time.time() - began:.0f} s")
    breaker = recorded(deb12, "recovery/main.json")["breaker"]
    assert weights in breaker["reason"] and "1000 bytes" in breaker["reason"]
    wait_for("the loop ends", lambda: deb12.unit("ActiveState") in ("inactive", "failed"), 30)
    assert len(alerts(deb12)) == sent + 1
    assert weights in deb12.run("inferctl doctor engine-models", check=False)
    deb12.run(f"cp /root/kept {weights}; inferctl recover main --reset")
    wait_for("the engine serves", lambda: deb12.ask() == "I am tiny-a.")


def test_a_bundle_has_states_logs_and_evidence(deb12: Node) -> None:
    deb12.run("rm -f /root/case.tar.gz")
    bundle = json.loads(deb12.run("inferctl bundle --output /root/case.tar.gz --since 1h --json"))
    # A tool may be missing or fail on such a node, but no part of our own code.
    assert [part for part in bundle["parts"] if re.match(r"\w+Error: |did not end within", part["reason"])] == []
    parts = {part["file"]: part["status"] for part in bundle["parts"]}
    wanted = ("doctor.json", "status.json", "state.json", "journal/engine-main.log", "docker/vllm-main.json")
    assert {name: parts[name] for name in wanted} == dict.fromkeys(wanted, "collected")
    assert parts["nvidia-bug-report.log"] == "absent"
    assert deb12.run("stat --format '%a %U' /root/case.tar.gz") == "600 root"
    names = deb12.run("tar --list --gzip --file /root/case.tar.gz")
    assert "manifest.json" in names and "/recovery/evidence/main/" in names
