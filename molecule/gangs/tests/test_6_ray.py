# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The same gang with Ray in its containers. The image has Ray, and a vLLM that accepts Ray on CPUs."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator

import pytest
from gang import ENDED, NAME, OUTLIVES, TIMES, Gang
from node import CACHE, PROJECT, playbook, wait_for

pytestmark = pytest.mark.full

INSTANCE = {
    "name": NAME,
    "model": "tiny-a",
    "port": 5005,
    "accelerator": "cpu",
    "nodes": ["deb12", "deb13"],
    "gang_port": 5110,
    "rendezvous_port": 29510,
    "executor": "ray",
}

ASK = "timeout 40 python3 -c 'import ray; ray.init(logging_level=\"ERROR\"); print(len(ray.nodes()))'"
"""Count the nodes of Ray with Ray's own client, in the leader's container."""


@pytest.fixture(scope="module")
def with_ray(gang: Gang) -> Iterator[Gang]:
    """The gang, once it has swapped to Ray. At the end, it swaps back."""
    subprocess.run([str(PROJECT / "images/build"), "ray"], check=True, cwd=PROJECT)
    image = json.loads((CACHE / "ray-image.json").read_text())["reference"]
    gang.wait_serving()
    before = gang.active()
    playbook("inference", instances=[{**INSTANCE, "image": image}])
    wanted = gang.status(gang.leader)["release"]["desired"]
    assert gang.active() == before and wanted != before[0]
    began = time.monotonic()
    gang.leader.run(f"inferctl swap {NAME} --to {wanted} --allow-downtime")
    TIMES.append(f"swap to Ray: {time.monotonic() - began:.0f} s")
    yield gang
    playbook("inference")
    gang.leader.run(f"inferctl swap {NAME} --to {before[0]} --allow-downtime")
    assert gang.active() == before and gang.serves()


def inside(gang: Gang, command: str) -> str:
    """Run a command in the leader's container, with the container's variables and the address of Ray's head."""
    quoted = command.replace("'", "'\\''")
    return gang.leader.run(
        f"docker exec --env RAY_ADDRESS={gang.leader.address}:29510 vllm-{NAME} sh -c '{quoted}' 2>&1", False
    )


def test_the_gang_answers_with_ray(with_ray: Gang) -> None:
    with_ray.reset_counts()
    assert with_ray.serves() and with_ray.answer() == "I am tiny-a."
    workers = [node.run("pgrep --count --full 'ray::RayWorkerPro[c]'", check=False) for node in with_ray.nodes]
    assert workers == ["1", "1"]
    assert inside(with_ray, ASK).splitlines()[-1] == "2"


def test_ray_refuses_clients_without_the_token_or_from_outside(with_ray: Gang) -> None:
    """One client has a wrong token. The firewall refuses the other client. No dashboard listens."""
    status = f"timeout 60 ray status --address {with_ray.leader.address}:29510"
    assert "Active" in inside(with_ray, status)
    assert "InvalidAuthToken" in inside(with_ray, f"RAY_AUTH_TOKEN=wrong {status}")
    for node in with_ray.nodes:
        listening = node.run("ss --listening --numeric --tcp --no-header")
        assert ":8265 " not in listening, listening
        for port in (29511, 29512):
            assert f":{port} " in listening, listening
            with pytest.raises(OSError):
                socket.create_connection((node.address, port), timeout=3)
        environment = node.run(f"cat /etc/inference/env/{NAME}.env")
        token = environment.partition("INFERENCE_RAY_TOKEN=")[2].splitlines()[0]
        assert len(token) == 64 and token not in node.run(f"systemctl cat vllm@{NAME}; ps -ewwo args")


def test_the_gang_ends_with_a_follower_and_serves_again(with_ray: Gang) -> None:
    with with_ray.fault("Ray: the follower's engine is killed, idle", ENDED):
        with_ray.kill_engine(with_ray.follower)


def test_the_gang_ends_with_a_worker_and_serves_again(with_ray: Gang) -> None:
    with with_ray.fault("Ray: a worker of the follower is killed, idle", 2 * OUTLIVES):
        with_ray.follower.run("pkill -KILL -f ray::RayWorkerPro[c]")
    wait_for("the gang answers", with_ray.answer, 60)
