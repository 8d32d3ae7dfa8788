# Copyright: (c) 2026, the baremetal.inference contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client of Docker: its results and errors."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.baremetal.inference.plugins.module_utils.core.docker_api import (
    Docker,
    DockerError,
    DockerUnavailable,
)

from ..conftest import FakeDocker


def test_starting_and_removing_a_container_can_be_repeated(docker: FakeDocker) -> None:
    docker.create("vllm-main", exit_after=60)
    docker.images.add("registry.example.com:5000/vllm@sha256:00")
    client = Docker(docker.path)
    client.ping()
    assert client.inspect_image("registry.example.com:5000/vllm@sha256:00") is not None
    assert client.inspect_image("registry.example.com:5000/vllm@sha256:11") is None
    assert client.inspect("nobody") is None
    client.start("vllm-main")
    client.start("vllm-main")
    found = client.inspect("vllm-main")
    assert found is not None
    assert found["State"]["Pid"] == docker.processes["vllm-main"].pid
    client.remove("vllm-main")
    client.remove("vllm-main")
    assert docker.removed == ["vllm-main"]


@pytest.mark.parametrize(
    "answer",
    [
        {"LayersSize": 7, "Containers": [{"Id": "c"}], "Images": [{"Id": "i"}], "BuildCache": None, "Volumes": []},
        {"ContainerUsage": {"TotalCount": 1, "Items": [{"Id": "c"}]}, "ImageUsage": {"Items": [{"Id": "i"}]}}
        | {"BuildCacheUsage": {"TotalCount": 0}, "VolumeUsage": {}},
    ],
    ids=["1.41", "1.52"],
)
def test_the_lists_of_the_disk_usage_are_the_same_for_each_api_version(
    monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any]
) -> None:
    asked: list[tuple[str, ...]] = []

    def call(_docker: Docker, *given: str) -> str:
        asked.append(given)
        return json.dumps(answer)

    monkeypatch.setattr(Docker, "_call", call)
    assert Docker().disk_usage() == {"Containers": [{"Id": "c"}], "Images": [{"Id": "i"}], "BuildCache": []}
    assert asked == [("GET", "/system/df?verbose=1")]


def test_an_error_has_the_daemons_text(docker: FakeDocker) -> None:
    docker.create("vllm-main")
    docker.start_error = "OCI runtime create failed"
    with pytest.raises(DockerError, match=r"^OCI runtime create failed$") as caught:
        Docker(docker.path).start("vllm-main")
    assert caught.value.status == 500


def test_a_daemon_that_does_not_answer_is_unavailable(docker: FakeDocker, short_tmp: Path) -> None:
    docker.down()
    with pytest.raises(DockerUnavailable, match=r"docker\.sock does not answer: No such file"):
        Docker(docker.path).ping()
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(short_tmp / "deaf.sock"))
        deaf.listen()
        with pytest.raises(DockerUnavailable, match="timed out"):
            Docker(short_tmp / "deaf.sock", timeout=0.1).ping()
