# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running containers with GPUs: how each container requested GPUs, and whether it can still open their device nodes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.baremetal.inference.plugins.module_utils.core.commands import Outcome
from ansible_collections.baremetal.inference.plugins.module_utils.hardware import container_gpus
from ansible_collections.baremetal.inference.plugins.modules import gpu_facts

NODES = ["/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidiactl"]


def container(number: int, name: str, *environment: str, **host: Any) -> dict[str, Any]:
    """A container in the form of `docker inspect`."""
    return {
        "Id": f"{number:064x}",
        "Name": f"/{name}",
        "State": {"Pid": number},
        "Config": {"Env": ["PATH=/bin", *environment]},
        "HostConfig": {"Runtime": "runc", "DeviceRequests": None, "Devices": [], **host},
    }


def request(driver: str, *devices: str, gpu: bool = False) -> list[dict[str, Any]]:
    return [{"Driver": driver, "Count": 0, "DeviceIDs": [*devices] or None, "Capabilities": [["gpu"]] if gpu else None}]


CONTAINERS = [
    container(1, "by-name", DeviceRequests=request("cdi", "nvidia.com/gpu=0")),
    container(2, "by-runtime", "NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=0", Runtime="nvidia"),
    container(3, "by-option", DeviceRequests=request("", gpu=True)),
    container(4, "by-node", Devices=[{"PathOnHost": "/dev/nvidia0", "PathInContainer": "/dev/nvidia0"}]),
    container(5, "none"),
    container(6, "runtime-alone", "NVIDIA_VISIBLE_DEVICES=void", Runtime="nvidia"),
    container(7, "another-card", DeviceRequests=request("cdi", "example.com/nic=0")),
    # Many images of NVIDIA have this variable. It has no effect without NVIDIA's runtime.
    container(8, "variable-alone", "NVIDIA_VISIBLE_DEVICES=all"),
]


class Docker:
    """In place of the program `docker`. Tests can set its answers."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.containers = CONTAINERS
        self.answers: dict[str, Outcome] = {}
        self.tried: list[list[str]] = []
        for entry in CONTAINERS:
            (root / f"proc/{entry['State']['Pid']}/root/dev").mkdir(parents=True)
        for pid in (1, 2, 3, 4):
            for node in [*NODES, "/dev/null", "/dev/nvidia-caps"]:
                (root / f"proc/{pid}/root{node}").touch()

    def run(self, command: list[str]) -> Outcome:
        if command[1] in self.answers:
            return self.answers[command[1]]
        if command[1] == "ps":
            return Outcome(0, "".join(f"{entry['Id']}\n" for entry in self.containers))
        if command[1] == "inspect":
            assert command[4:] == [entry["Id"] for entry in self.containers]
            return Outcome(0, json.dumps(self.containers))
        assert command[1] == "exec"
        self.tried.append(command)
        nodes = command[command.index("sh", 4) + 1 :]
        return Outcome(0, "".join(f"+ {node}\n" for node in nodes))

    def facts(self) -> dict[str, Any]:
        return container_gpus.facts(container_gpus.find(self.run, self.root))


@pytest.fixture
def docker(tmp_path: Path) -> Docker:
    return Docker(tmp_path)


def test_each_way_to_request_gpus_is_recognised(docker: Docker) -> None:
    facts = docker.facts()
    assert (facts["error"], facts["lost"]) == (None, [])
    assert {entry["name"]: entry["request"] for entry in facts["containers"]} == {
        "by-name": "cdi",
        "by-runtime": "runtime",
        "by-option": "gpus",
        "by-node": "devices",
    }
    assert all((entry["devices"], entry["lost"], entry["error"]) == (NODES, {}, None) for entry in facts["containers"])
    assert len(docker.tried) == 4


def test_a_container_that_cannot_open_its_gpus_has_lost_them(docker: Docker) -> None:
    docker.containers = CONTAINERS[2:3]
    words = f"+ {NODES[0]}\n- {NODES[1]} Operation not permitted\n- {NODES[2]} \n- /etc/passwd x\n"
    docker.answers["exec"] = Outcome(0, words)
    facts = docker.facts()
    assert facts["lost"] == ["by-option"]
    (entry,) = facts["containers"]
    assert entry["lost"] == {NODES[1]: "Operation not permitted", NODES[2]: "cannot be opened"}
    assert entry["error"] is None


@pytest.mark.parametrize(
    ("outcome", "error"),
    [
        (
            Outcome(126, "", "exec: sh: executable file not found in $PATH"),
            "the device nodes could not be tried: exec: sh",
        ),
        (Outcome(None, failure="timeout", message="docker did not end within 30 s"), "docker did not end within"),
        (Outcome(0, f"+ {NODES[0]}\n"), "the device nodes could not be tried"),
    ],
)
def test_device_nodes_that_cannot_be_tried_are_an_error_but_not_lost(
    docker: Docker, outcome: Outcome, error: str
) -> None:
    docker.containers = CONTAINERS[:1]
    docker.answers["exec"] = outcome
    facts = docker.facts()
    assert facts["lost"] == []
    assert error in facts["containers"][0]["error"]


def test_a_container_without_any_device_node_has_an_error(docker: Docker) -> None:
    for node in NODES:
        (docker.root / f"proc/1/root{node}").unlink()
    docker.containers = CONTAINERS[:1]
    assert "no device node" in docker.facts()["containers"][0]["error"]


@pytest.mark.parametrize(
    ("command", "outcome", "error"),
    [
        ("ps", Outcome(1, "", "Cannot connect to the Docker daemon"), "Cannot connect"),
        ("ps", Outcome(None, failure="not_installed", message="docker is not installed"), "not installed"),
        ("inspect", Outcome(1, "", "boom"), "boom"),
    ],
)
def test_an_error_of_docker_is_in_the_facts(docker: Docker, command: str, outcome: Outcome, error: str) -> None:
    docker.answers[command] = outcome
    facts = docker.facts()
    assert error in facts["error"]
    assert facts["containers"] == []


def test_without_containers_nothing_is_inspected(docker: Docker) -> None:
    docker.containers = []
    docker.answers["inspect"] = Outcome(1, "", "nothing to inspect")
    assert docker.facts() == {"error": None, "lost": [], "containers": []}


@pytest.mark.parametrize("inspected", [None, {}, [None, 7], [{"HostConfig": None, "Config": None}]])
def test_answers_in_another_form_have_no_containers(inspected: Any) -> None:
    assert container_gpus.parse(inspected) == []


def test_the_command_opens_each_device_node(tmp_path: Path) -> None:
    """The command runs in a shell of this machine. One name has blanks."""
    gone = tmp_path / "no such file"
    output = subprocess.run(
        ["sh", "-c", container_gpus.TRY, "sh", "/dev/null", str(gone)], capture_output=True, text=True, check=True
    ).stdout
    # Shells have different messages for this error.
    assert output.startswith(f"+ /dev/null\n- {gone} No such file")


def test_each_fact_of_containers_is_documented(docker: Docker) -> None:
    returned = yaml.safe_load(gpu_facts.RETURN)["ansible_facts"]["contains"]["container_gpus"]["contains"]
    facts = docker.facts()
    assert set(facts) == set(returned)
    assert set(facts["containers"][0]) == set(returned["containers"]["contains"])
