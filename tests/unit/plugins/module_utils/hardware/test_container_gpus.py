# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running containers and their GPUs: who asked for some, and who cannot open them any more."""

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
    """As `docker inspect` shows it."""
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
    # The variable is in every image of NVIDIA's, and says nothing without their runtime.
    container(8, "variable-alone", "NVIDIA_VISIBLE_DEVICES=all"),
]


class Docker:
    """A Docker that is told what its containers can open."""

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


def test_who_asked_for_gpus(docker: Docker) -> None:
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


def test_who_lost_them(docker: Docker) -> None:
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
        (Outcome(126, "", "exec: sh: executable file not found in $PATH"), "the trial failed: exec: sh"),
        (Outcome(None, failure="timeout", message="docker did not end within 30 s"), "docker did not end within"),
        (Outcome(0, f"+ {NODES[0]}\n"), "the trial failed"),
    ],
)
def test_who_could_not_be_tried_has_lost_nothing(docker: Docker, outcome: Outcome, error: str) -> None:
    docker.containers = CONTAINERS[:1]
    docker.answers["exec"] = outcome
    facts = docker.facts()
    assert facts["lost"] == []
    assert error in facts["containers"][0]["error"]


def test_a_container_without_any_device_node(docker: Docker) -> None:
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
def test_a_docker_that_does_not_tell(docker: Docker, command: str, outcome: Outcome, error: str) -> None:
    docker.answers[command] = outcome
    facts = docker.facts()
    assert error in facts["error"]
    assert facts["containers"] == []


def test_no_container_at_all(docker: Docker) -> None:
    docker.containers = []
    docker.answers["inspect"] = Outcome(1, "", "nothing to inspect")
    assert docker.facts() == {"error": None, "lost": [], "containers": []}


@pytest.mark.parametrize("inspected", [None, {}, [None, 7], [{"HostConfig": None, "Config": None}]])
def test_answers_of_no_known_form(inspected: Any) -> None:
    assert container_gpus.parse(inspected) == []


def test_what_is_run_in_a_container_tells_what_can_be_opened(tmp_path: Path) -> None:
    """The real thing, in a shell of this machine. A name with a blank would be a trap for the shell."""
    gone = tmp_path / "no such file"
    output = subprocess.run(
        ["sh", "-c", container_gpus.TRY, "sh", "/dev/null", str(gone)], capture_output=True, text=True, check=True
    ).stdout
    # Shells have words of their own for this.
    assert output.startswith(f"+ /dev/null\n- {gone} No such file")


def test_the_facts_are_documented(docker: Docker) -> None:
    returned = yaml.safe_load(gpu_facts.RETURN)["ansible_facts"]["contains"]["container_gpus"]["contains"]
    facts = docker.facts()
    assert set(facts) == set(returned)
    assert set(facts["containers"][0]) == set(returned["containers"]["contains"])
