# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node after site.yml."""

from __future__ import annotations

import json
import socket
from pathlib import Path

from fixtures import on_deb13
from node import Node, changes, playbook, recorded_changes

# Tasks that check mode cannot run on a bare node, each with the task that reports the change instead.
ANNOUNCED = {
    "common : Firewall | Install nftables": "common : Firewall | Report what a run outside check mode would do",
    "common : Firewall | Load the rules on trial": "common : Firewall | Report what a run outside check mode would do",
    "docker : Install | Install the packages": "docker : Install | Report what a run outside check mode would do",
    "model_store : Publish | Copy the models from the controller": (
        "model_store : Publish | Report what would be copied"
    ),
}


def test_check_mode_predicted_the_converge() -> None:
    """Check mode reported every task that changed a node, or another task reported the change."""
    predicted, done = recorded_changes("check"), recorded_changes("converge")
    surprises = {(host, task) for host, task in done - predicted if (host, ANNOUNCED.get(task, "")) not in predicted}
    assert len(done) > 8, "the converge changed almost nothing: was the node not fresh?"
    assert not surprises


def test_a_second_run_with_the_installed_collection_changes_nothing(
    deb12: Node, deb13: Node, installed_collection: dict[str, str]
) -> None:
    """A second run, with the playbook of the built and installed collection, changes nothing.

    This replaces the scenario's step `idempotence`."""
    output = playbook(f"{deb12.name},{deb13.name}", environment=installed_collection)
    assert changes(output) == 0, output[-3000:]


def test_the_model_that_was_asked_for_answers(node: Node, api_key: str) -> None:
    assert node.ask("main", key=api_key) == "I am tiny-a."
    assert node.ask("tiny-a", key=api_key) == "I am tiny-a."
    status, answer = node.request("/v1/chat/completions", {"model": "tiny-b", "messages": []}, key=api_key)
    assert status == 404, answer


@on_deb13
def test_status_has_a_line_for_each_node_also_if_it_cannot_be_reached(node: Node, tmp_path: Path) -> None:
    """The nodes report their status. A node that cannot be reached gets a line, and does not fail the run."""
    dark = tmp_path / "dark.yml"
    dark.write_text("inference: {hosts: {dark1: {ansible_host: 192.0.2.1, ansible_ssh_timeout: 1}}}\n")
    said = playbook(f"{node.name},dark1", "--inventory", str(dark), name="baremetal.inference.status")
    row = next(line for line in said.splitlines() if line.strip(' ",').startswith(f"{node.name} "))
    assert " main " in row and " tiny-a " in row and " healthy " in row, said
    assert "dark1: UNREACHABLE" in said


def test_the_engine_is_not_reachable_from_outside(node: Node) -> None:
    assert node.ask("main") == "", "the engine answers without the key"
    with socket.socket() as client:
        client.settimeout(3)
        assert client.connect_ex((node.address, 5005)) != 0


@on_deb13
def test_no_output_process_log_or_readable_file_has_the_key(node: Node, api_key: str) -> None:
    assert api_key not in node.run("ps axwww -o args")
    assert api_key not in node.run("systemctl cat 'vllm@*'; systemctl show 'vllm@*'")
    assert api_key not in node.run("journalctl --no-pager --output=export")
    places = "/etc /usr/local /var/lib/inference /run /mnt /root /tmp"
    found = node.run(f"grep -rlsI --exclude-dir=containerd -- {api_key} {places}", check=False).split()
    assert found, "no file has the key: this test searches the wrong places"
    readable = [path for path in found if int(node.run(f"stat -c %a {path}"), 8) & 0o077]
    assert not readable
    # Another secret makes a new release. The diff must have neither the key nor the new secret.
    output = node.site("--check", "--diff", "-vvv", vllm_secret_environment={"TOKEN": "another-secret-55"})
    assert api_key not in output
    assert "another-secret-55" not in output
    assert "environment: TOKEN" in output


def test_the_units_are_sound(node: Node) -> None:
    node.run("systemd-analyze verify /etc/systemd/system/vllm@main.service /etc/systemd/system/inference.target")
    assert node.run("systemctl is-enabled vllm@main.service inference.target").split() == ["enabled", "enabled"]
    assert "docker create" in node.run("systemctl cat vllm@main").replace(" \\\n    ", " ")


def test_the_unit_is_no_more_exposed_than_recorded(node: Node) -> None:
    """systemd 252 and 257 rate the sandbox 2.7; 10.0 is the worst."""
    node.run("systemd-analyze security --threshold=27 vllm@main.service")
    node.run("! systemd-analyze security --threshold=26 vllm@main.service")


def test_the_agent_runs_in_its_sandbox(node: Node) -> None:
    node.run("systemd-analyze verify /etc/systemd/system/inference-agent.service")
    assert node.run("systemctl is-enabled inference-agent; systemctl is-active inference-agent").split() == [
        "enabled",
        "active",
    ]
    node.run("systemd-analyze security --threshold=27 inference-agent.service")
    assert node.run("systemctl show --value --property=NRestarts inference-agent") == "0"


@on_deb13
def test_an_engine_writes_to_memory_and_its_cache_alone(node: Node) -> None:
    """The test writes from inside the container."""
    places = "/ /etc /var/tmp /usr/local /mnt/models /tmp /dev/shm $HOME"
    said = node.run(f"docker exec vllm-main sh -c 'for at in {places}; do touch $at/x 2>&1 && echo $at; done'")
    home = node.run("docker exec vllm-main printenv HOME")
    assert [line for line in said.splitlines() if line.startswith("/")] == ["/tmp", "/dev/shm", home]
    # The container's files are read-only also in /var/tmp, where every user may write.
    assert said.count("Read-only file system") >= 3, said
    node.run(f"docker exec vllm-main rm /tmp/x /dev/shm/x {home}/x")
    # Engines compile code in /tmp, and run it there.
    node.run("docker exec vllm-main sh -c 'cp /bin/true /tmp/true && /tmp/true && rm /tmp/true'")


def test_docker_is_as_declared(node: Node) -> None:
    info = json.loads(node.run("docker info --format '{{json .}}'"))
    assert info["LiveRestoreEnabled"] is True
    assert "inference-registry:5000" in info["RegistryConfig"]["IndexConfigs"]
    assert "docker.io" in node.run("apt-mark showhold")


def test_docker_gives_devices_to_containers_by_cdi(deb13: Node) -> None:
    """Docker 26 resolves CDI devices: the device of the test sets a variable; Docker refuses an unknown name."""
    spec = '{"cdiVersion": "0.6.0", "kind": "test.example/device", "devices": [{"name": "one", "containerEdits": '
    spec += '{"env": ["CDI_DEVICE=one"]}}]}'
    image = deb13.run("docker images --quiet | head -n1")
    deb13.run(f"mkdir -p /etc/cdi && printf '%s' '{spec}' > /etc/cdi/test.json")
    run = "docker run --rm --network none --entrypoint printenv"
    assert deb13.run(f"{run} --device test.example/device=one {image} CDI_DEVICE") == "one"
    refusal = deb13.run(f"{run} --device test.example/device=two {image} CDI_DEVICE 2>&1", check=False)
    assert "unresolvable CDI devices test.example/device=two" in refusal
    deb13.run("rm -r /etc/cdi")


def test_status_shows_the_instance(node: Node) -> None:
    status = json.loads(node.run("inferctl status --json"))
    assert [item["name"] for item in status["instances"]] == ["main"]
    assert "tiny-a" in node.run("inferctl status")
    assert status["instances"][0]["probe"]["verdict"] == "healthy"


def test_the_gpu_facts_of_a_node_without_a_driver_have_an_error(node: Node) -> None:
    """The module returns facts and does not fail; the PCI bus is the test machine's."""
    result = node.module("baremetal.inference.gpu_facts")
    facts = result["ansible_facts"]
    gpus = node.run("cat /sys/bus/pci/devices/*/vendor 2>/dev/null | grep -c 0x10de", check=False)
    assert (facts["gpus"] == []) == (gpus == "0")
    assert not facts["gpu_driver"]["ok"] and facts["gpu_driver"]["error"]["kind"] == "not_installed"
    assert not result["changed"]
