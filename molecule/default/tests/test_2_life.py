# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults and changes in a node's life, in an order in which tests share the starts of engines."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest
from node import READY_SECONDS, Node, changed_tasks, changes, wait_for


def test_an_engine_keeps_running_while_docker_restarts_or_dies(node: Node, api_key: str) -> None:
    pid = node.engine_pid()
    for action in ("systemctl restart docker", "systemctl kill --signal=KILL docker"):
        node.run(action)
        wait_for("docker answers again", lambda: node.run("docker info", check=False), 60)
        assert node.ask(key=api_key) == "I am tiny-a."
        assert node.engine_pid() == pid
        assert node.unit("NRestarts") == "0"


@pytest.mark.full
def test_a_changed_setting_is_pending_and_restarts_nothing(deb12: Node, api_key: str, tmp_path: Path) -> None:
    pid = deb12.engine_pid()
    predicted, _output = changed_tasks(deb12, tmp_path, "--check", vllm_drain_timeout=31)
    done, output = changed_tasks(deb12, tmp_path, vllm_drain_timeout=31)
    assert done
    assert done == predicted
    assert "release 2 is staged and pending" in output
    assert "baremetal.inference.update_model" in output
    assert deb12.engine_pid() == pid
    assert deb12.ask(key=api_key) == "I am tiny-a."
    assert deb12.run("readlink /var/lib/inference/releases/main/active") == "1"
    # With the old input again, no release is pending, and there is no third release.
    output = deb12.site()
    assert "pending" not in output
    assert deb12.run("ls /var/lib/inference/releases/main").split() == ["1", "2", "active", "current"]


@pytest.mark.full
def test_a_docker_setting_that_needs_a_restart_waits(deb12: Node, api_key: str) -> None:
    """While an engine serves, the role does not restart Docker: it reports that a restart is due."""
    pid, daemon = deb12.engine_pid(), deb12.run("systemctl show --value --property=MainPID docker")
    output = deb12.site(docker_log_max_size="49m")
    assert "docker.service waits for a restart, because containers run" in output
    assert "docker_restart_allowed=true" in output
    assert deb12.run("systemctl show --value --property=MainPID docker") == daemon
    assert deb12.engine_pid() == pid
    assert deb12.ask(key=api_key) == "I am tiny-a."
    deb12.site()


@pytest.mark.full
def test_damaged_files_of_a_serving_engine_are_put_back(deb12: Node, api_key: str) -> None:
    """site.yml repairs the files for the next restart while the engine serves, also with damaged state."""
    pid, environment = deb12.engine_pid(), "/etc/inference/env/main.env"
    before = deb12.run(f"sha256sum {environment} /etc/systemd/system/vllm@main.service")
    deb12.run(f"rm {environment}; echo '# edited' >> /etc/systemd/system/vllm@main.service")
    deb12.run("truncate -s 0 /etc/inference/registry.json /etc/inference/instances/main.json")
    deb12.run("truncate -s 0 /var/lib/inference/releases/main/2/release.json")
    assert changes(deb12.site()) > 0
    assert deb12.run(f"sha256sum {environment} /etc/systemd/system/vllm@main.service") == before
    assert deb12.run("systemctl show --value --property=NeedDaemonReload vllm@main") == "no"
    assert deb12.engine_pid() == pid
    assert deb12.ask(key=api_key) == "I am tiny-a."
    assert changes(deb12.site()) == 0
    deb12.run("inferctl wait-ready main --timeout 5")


# In CI, requests of the scenario `recovery` kill the core (test_requests_of_death.py): systemd starts the engine again.
@pytest.mark.full
def test_systemd_restarts_an_engine_whose_core_dies(deb12: Node, api_key: str) -> None:
    """vLLM exits with 0 when its core dies: systemd must restart the unit also then."""
    pid = deb12.engine_pid()
    deb12.run("pkill -KILL -f VLLM::EngineCor[e]")
    wait_for("systemd restarts the engine", lambda: deb12.unit("NRestarts") == "1", 120)
    deb12.wait_ready()
    assert deb12.ask(key=api_key) == "I am tiny-a."
    assert deb12.engine_pid() != pid


@pytest.mark.full
def test_systemd_restarts_an_engine_that_docker_kills(deb13: Node, api_key: str) -> None:
    deb13.run("docker kill vllm-main")
    wait_for("systemd restarts the engine", lambda: deb13.unit("NRestarts") == "1", 120)
    deb13.wait_ready()
    assert deb13.ask(key=api_key) == "I am tiny-a."


def test_a_stop_lets_a_running_stream_end(deb13: Node, api_key: str) -> None:
    """A stream in flight at the stop of the unit ends normally, within the drain time."""
    body = '{"model": "main", "prompt": "Once", "max_tokens": 480, "ignore_eos": true, "stream": true,'
    body += ' "stream_options": {"include_usage": true}}'
    options = ["-H", f"Authorization: Bearer {api_key}", "-H", "Content-Type: application/json", "-d", body]
    address = "http://127.0.0.1:5005/v1/completions"
    # The engine gets a share of one core until the stop begins: otherwise the engine would generate all tokens before.
    deb13.run("docker update --cpus 0.3 vllm-main")
    with subprocess.Popen(
        deb13.argv("curl", "--silent", "--no-buffer", *options, address),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as client:
        assert client.stdout is not None
        # The first event proves that the engine has accepted the request.
        words = client.stdout.readline()
        deb13.run("systemctl stop --no-block vllm@main")
        wait_for("the stop has begun", lambda: deb13.unit("ActiveState") == "deactivating", 30)
        assert client.poll() is None, "the stream had ended before the stop began"
        deb13.run("docker update --cpus 2 vllm-main")
        words += client.stdout.read()
    wait_for("the unit has stopped", lambda: deb13.unit("ActiveState") == "inactive", 60)
    assert words.rstrip().endswith("data: [DONE]")
    assert '"error"' not in words
    # An event may have several tokens: a server that lacks processor time sends several at once.
    events = [json.loads(line.removeprefix("data: ")) for line in words.splitlines() if line.startswith("data: {")]
    assert events[-1]["usage"]["completion_tokens"] == 480
    assert deb13.unit("Result") == "success"


def test_a_stop_during_the_start_takes_seconds(deb13: Node) -> None:
    """The engine ignores SIGTERM during its load: the stop must not wait for the engine."""
    deb13.run("systemctl start --no-block vllm@main")
    wait_for("the container runs", lambda: deb13.run("docker ps -q --filter name=vllm-main", check=False), 60)
    time.sleep(3)
    started = time.monotonic()
    deb13.run("systemctl stop vllm@main")
    assert time.monotonic() - started < 20, "the stop waited for the drain time"
    assert deb13.run("docker ps -aq --filter name=vllm-main") == ""


@pytest.mark.full
def test_an_engine_starts_at_boot_despite_a_leftover_container(deb13: Node, api_key: str) -> None:
    """The unit removes a leftover container of the same name, and a slow load does not delay the boot."""
    image = deb13.run("docker images --quiet | head -n1")
    deb13.run(f"docker create --name vllm-main {image}")
    subprocess.run(["docker", "restart", "--time=1", deb13.container], check=True, capture_output=True)
    wait_for(
        "the node has booted",
        lambda: deb13.run("systemctl is-active multi-user.target", check=False) == "active",
        60,
    )
    assert deb13.unit("ActiveState") == "activating", "the boot waited for the engine"
    deb13.wait_ready()
    assert deb13.ask(key=api_key) == "I am tiny-a."


def test_a_node_restart_ends_in_a_serving_engine(deb12: Node, api_key: str) -> None:
    subprocess.run(["docker", "restart", "--time=1", deb12.container], check=True, capture_output=True)
    wait_for("systemd answers", lambda: deb12.run("systemctl is-system-running", check=False), 60)
    deb12.wait_ready()
    assert deb12.ask(key=api_key) == "I am tiny-a."


SECOND = {"name": "second", "model": "tiny-b", "port": 5006, "accelerator": "cpu"}
MAIN = {"name": "main", "model": "tiny-a", "port": 5005, "accelerator": "cpu"}


@pytest.mark.full
def test_two_instances_serve_on_one_node(deb13: Node, api_key: str) -> None:
    """The files of the second engine's image are writable. The first engine runs, so its container stays read-only."""
    # An earlier test may have stopped the engine.
    deb13.run("systemctl start vllm@main")
    pid = deb13.engine_pid()
    deb13.site(instances=[MAIN, SECOND], vllm_read_only=False)
    assert deb13.ask("main", 5005, api_key) == "I am tiny-a."
    assert deb13.ask("second", 5006, api_key) == "I am tiny-b."
    assert deb13.engine_pid() == pid
    # Every user may write in /var/tmp.
    deb13.run("docker exec vllm-second touch /var/tmp/x")
    assert "Read-only file system" in deb13.run("docker exec vllm-main touch /var/tmp/x 2>&1", check=False)
    # The second engine's release has served. It keeps its writable container: no new release is pending.
    assert "pending" not in deb13.site(instances=[MAIN, SECOND])
    # site.yml reports an instance that is no longer declared, and does not stop it.
    assert "still has second" in deb13.site()
    assert deb13.ask("second", 5006, api_key) == "I am tiny-b."


@pytest.mark.full
def test_a_broken_model_never_counts_as_ready(deb12: Node, api_key: str) -> None:
    """tiny-broken answers /health, and dies at its first completion: site.yml reports this and stops the engine."""
    broken = {"name": "broken", "model": "tiny-broken", "port": 5006, "accelerator": "cpu"}
    pid = deb12.engine_pid()
    started = time.monotonic()
    # The plan would refuse the model, so the check of the fit is off.
    output = deb12.site(check=False, instances=[MAIN, broken], vllm_check_fit=False)
    assert time.monotonic() - started < READY_SECONDS
    assert "broken did not start. Its last log lines:" in output
    assert "EngineCore" in output
    assert deb12.unit("ActiveState", "broken") in ("inactive", "failed")
    assert deb12.run("readlink /var/lib/inference/releases/broken/current", check=False) == ""
    # The other engine was not disturbed.
    assert deb12.ask(key=api_key) == "I am tiny-a."
    assert deb12.engine_pid() == pid
