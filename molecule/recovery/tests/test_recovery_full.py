# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Further faults, which take too long for CI.

Each test begins with an engine that serves and a full budget. The last test cuts the node's power."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from faults import (
    core_and_worker,
    given_up,
    load_seconds,
    more_steps,
    processor_seconds,
    recorded,
    recovered,
    serves,
    started_anew,
    steps,
    throttled,
    untouched,
)
from node import Node, wait_for

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("fresh")]

KILL_CORE = "pkill -KILL -f VLLM::EngineCor[e]"


def seconds_until_start(node: Node, fault: str) -> float:
    """Inject a death. Returns the seconds until systemd began to start the engine again, by systemd's times."""
    answered = started_anew(node)
    died = float(node.run(f"cut -d' ' -f1 /proc/uptime; {fault} >/dev/null").split()[0])
    wait_for("systemd starts the engine again", answered, 60)
    return int(node.unit("InactiveExitTimestampMonotonic")) / 1e6 - died


def test_systemd_restarts_a_dead_engine_within_seconds(deb12: Node) -> None:
    bare, began = load_seconds(deb12), time.time()
    assert seconds_until_start(deb12, KILL_CORE) < 5
    fault = recovered(deb12, "engine core killed", lambda: True, began=began)
    # The load time now and before distinguishes a slow machine from a slow recovery.
    assert fault.served is not None and fault.served < 1.1 * max(bare, load_seconds(deb12)) + 5
    assert steps(deb12) == []


def test_a_container_that_is_removed_comes_back(deb12: Node) -> None:
    began, answered = time.time(), started_anew(deb12)
    deb12.run("docker rm --force vllm-main")
    wait_for("systemd starts the engine again", answered, 60)
    # Docker kills at once, and removes the container seconds later.
    events = "docker events --since 2m --until $(date +%s) --filter container=vllm-main --filter event=die"
    died, now, uptime = map(
        float,
        deb12.run(
            f"{events} --format '{{{{.TimeNano}}}}' | tail -n 1; date +%s.%N; cut -d' ' -f1 /proc/uptime"
        ).split(),
    )
    assert int(deb12.unit("InactiveExitTimestampMonotonic")) / 1e6 - (uptime - (now - died / 1e9)) < 10
    recovered(deb12, "container removed", lambda: True, began=began)
    assert steps(deb12) == []


def test_an_engine_recovers_although_its_unit_file_and_the_model_registry_are_deleted(deb12: Node) -> None:
    unit = deb12.run("cat /etc/systemd/system/vllm@main.service")
    deb12.run("cp -a /etc/inference/registry.json /root/; rm /etc/inference/registry.json")
    deb12.run("rm /etc/systemd/system/vllm@main.service; systemctl daemon-reload")
    began, answered = time.time(), more_steps(deb12)
    deb12.run("docker kill vllm-main")
    recovered(deb12, "unit file and model registry deleted, engine killed", answered, began=began)
    assert deb12.run("cat /etc/systemd/system/vllm@main.service") == unit
    deb12.run("mv /root/registry.json /etc/inference/")


def test_the_death_of_docker_ends_no_engine(deb12: Node) -> None:
    pid, began = deb12.engine_pid(), time.time()
    deb12.run("systemctl kill --signal=KILL docker")
    wait_for("Docker is back", lambda: deb12.run("docker ps --quiet", check=False), 60)
    time.sleep(30)
    assert deb12.engine_pid() == pid and serves(deb12)
    untouched(deb12, "Docker killed", began, "the engine continues")
    assert steps(deb12) == []


def test_docker_is_restarted_when_an_engine_needs_its_missing_socket(deb12: Node) -> None:
    pid = deb12.engine_pid()
    deb12.run("rm /run/docker.sock")
    time.sleep(30)
    assert serves(deb12) and steps(deb12) == []
    began, answered = time.time(), more_steps(deb12)
    deb12.run(f"kill -KILL {pid}")
    recovered(deb12, "Docker's socket gone, engine killed", answered, 150, began=began)
    assert "restart-docker" in [step["act"] for step in steps(deb12)]


def test_another_process_at_the_port_is_named(deb12: Node) -> None:
    began = time.time()
    with given_up(deb12):
        seconds = round(time.time() - began, 1)
        said = deb12.run(
            "inferctl recover; inferctl status; journalctl --no-pager -u vllm@main --lines=50", check=False
        )
        assert "port 5005 is taken by" in said and "stranger.py" in said
    deb12.run("inferctl recover main --reset")
    recovered(deb12, "port taken by a stranger", lambda: True, began=began)
    assert seconds < 180


@contextmanager
def full(node: Node, directory: str, megabytes: int = 64) -> Iterator[None]:
    """The directory is on a separate disk without free space."""
    copy = f"/root/full{directory}"
    node.run(f"mkdir -p {copy} && mount -t tmpfs -o size={megabytes}m tmpfs {copy} && cp -a {directory}/. {copy}")
    node.run(f"mount --bind {copy} {directory}")
    # dd fails at the end of the disk, as intended.
    node.run(f"dd if=/dev/zero of={directory}/fill bs=4k", check=False)
    try:
        yield
    finally:
        node.run(f"rm -f {directory}/fill; umount --lazy {directory} {copy}")


@pytest.mark.parametrize("directory", ["/var/lib/inference", "/mnt/nvme/workspace/vllm_cache", "/var/log/journal"])
def test_an_engine_starts_again_although_a_disk_is_full(deb12: Node, directory: str) -> None:
    """State, cache or log directory is full, the shared memory is full, and the engine's core dies."""
    with full(deb12, directory):
        deb12.run("systemctl restart inference-agent systemd-journald; mount -o remount,size=1m /dev/shm")
        deb12.run("dd if=/dev/zero of=/dev/shm/fill bs=4k", check=False)
        try:
            began, answered = time.time(), started_anew(deb12)
            deb12.run(KILL_CORE)
            wait_for("systemd starts the engine again", answered, 60)
            reacted = time.time() - began
            wait_for("the engine serves", lambda: deb12.ask() == "I am tiny-a.")
            assert reacted < 15
        finally:
            deb12.run("rm -f /dev/shm/fill; mount -o remount,size=2g /dev/shm")
        deb12.run(f"rm {directory}/fill")
        recovered(deb12, f"{directory} and /dev/shm full, core killed", lambda: True, began=began)
    deb12.run("systemctl restart inference-agent systemd-journald")


def test_a_long_prefill_is_no_fault(deb12: Node) -> None:
    """For more than a minute, neither the client nor the probe, whose request comes later, gets a token."""

    def prefill(first: int) -> float:
        """Seconds for a prompt with a unique beginning, so that no part of it is cached."""
        began = time.monotonic()
        body = {"model": "main", "prompt": [first] * 4000, "max_tokens": 1}
        assert deb12.request("/v1/completions", body)[0] == 200
        return time.monotonic() - began

    prefill(7)
    pids = core_and_worker(deb12)
    before = processor_seconds(deb12, pids)
    prefill(8)
    # The share of the processor with which such a prompt takes a minute and a half.
    cores = (processor_seconds(deb12, pids) - before) / 90
    invocation, began, verdicts = deb12.unit("InvocationID"), time.time(), set()
    with throttled(deb12, pids, cores), ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(prefill, 9)
        while not waiting.done():
            verdicts.add(recorded(deb12, "probe/main.json").get("verdict"))
            time.sleep(2)
        took = waiting.result()
    untouched(deb12, f"a prefill alone that takes {took:.0f} s", began)
    assert took > 60 and "busy" in verdicts and "hung" not in verdicts
    assert deb12.unit("InvocationID") == invocation and steps(deb12) == []


@pytest.mark.parametrize(("signal", "limit"), [("KILL", 20), ("STOP", 75)])
def test_an_agent_that_dies_or_hangs_is_replaced(deb12: Node, signal: str, limit: float) -> None:
    pid, began = deb12.engine_pid(), time.time()
    before = deb12.run("systemctl show --value --property=MainPID inference-agent")
    deb12.run(f"kill -{signal} {before}")

    def replaced() -> bool:
        now = deb12.run("systemctl show --value --property=MainPID inference-agent")
        return now not in ("0", before) and deb12.run("systemctl is-active inference-agent", check=False) == "active"

    wait_for("another agent", replaced, limit)
    wait_for("the agent reports the engine", lambda: serves(deb12), 30)
    untouched(
        deb12, f"agent {'killed' if signal == 'KILL' else 'stopped'}", began, f"back after {time.time() - began:.0f} s"
    )
    assert deb12.engine_pid() == pid and steps(deb12) == []


def test_a_slow_first_load_is_no_fault(deb12: Node) -> None:
    """The load pauses for longer than the agent needs to find a hang, and longer than PREPARE_TIMEOUT.

    A daemon-reload resets the timeout that a service has extended. The daemon-reload must not end the start.
    """
    deb12.run("systemctl stop vllm@main")
    began, answered = time.time(), started_anew(deb12)
    deb12.run("systemctl start --no-block vllm@main")
    wait_for("the engine is started", answered, 30)
    invocation = deb12.unit("InvocationID")
    pid = "docker inspect --format '{{.State.Pid}}' vllm-main"
    wait_for("the engine loads", lambda: deb12.run(pid, check=False) not in ("", "0"), 60)
    deb12.run("docker pause vllm-main")
    time.sleep(150)
    deb12.run("systemctl daemon-reload")
    time.sleep(5)
    assert deb12.unit("ActiveState") == "activating"
    deb12.run("docker unpause vllm-main")
    wait_for("the engine serves", lambda: deb12.ask() == "I am tiny-a.")
    untouched(deb12, "a load that pauses for 155 s", began)
    assert deb12.unit("InvocationID") == invocation and steps(deb12) == []


def test_an_engine_recovers_although_the_power_is_cut_after_a_step(deb12: Node) -> None:
    began, answered = time.time(), more_steps(deb12)
    deb12.run("pkill -STOP -f VLLM::EngineCor[e]")
    wait_for("a step", answered, 75)
    reacted = time.time() - began
    deb12.cut_power()
    wait_for("the node is up", lambda: deb12.run("systemctl is-active multi-user.target", check=False) == "active", 120)
    assert [step["act"] for step in steps(deb12)] == ["restart"]
    fault = recovered(deb12, "boot in the middle of a recovery", lambda: True, began=began)
    assert fault.served is not None and fault.served > reacted
    assert recorded(deb12, "recovery/main.json")["breaker"] is None
    assert recorded(deb12, "drain/main") == {}
